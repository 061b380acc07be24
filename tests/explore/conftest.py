"""Sweeps over the tiny network of the command line's tests."""

import pytest
from cli_cases import tiny_graph, write_samples

from nnef_hw.boards import find_board
from nnef_hw.explore import Sweep
from nnef_hw.samples.samples import load_samples


@pytest.fixture(scope="session")
def sweep_of(tmp_path_factory):
    """Return ``sweep_of(boards, **options)``: a sweep of the tiny network."""
    graph = tiny_graph()
    folder = tmp_path_factory.mktemp("explored")
    path = write_samples(folder / "s.npz", [1, 6, 6], lambda rng, n: rng.integers(0, 4, n))
    samples = load_samples(path, graph)

    def make(boards=("icebreaker",), **options):
        options = {"weight_bits": (8,), "until": "planned", "arch": "streaming", **options}
        return Sweep(graph, samples, [find_board(name) for name in boards], **options)

    return make
