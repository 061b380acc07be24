"""Sweeps over the tiny network of the command line's tests."""

import pytest
from cli_cases import Result, tiny_graph, write_samples

from nnef_hw.boards import find_board
from nnef_hw.cli import main
from nnef_hw.explore import Sweep
from nnef_hw.frontend import save
from nnef_hw.samples import load_samples


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


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Folder with ``tiny.nnef.tgz`` and ``samples.npz``."""
    folder = tmp_path_factory.mktemp("tiny")
    save(tiny_graph(), folder / "tiny.nnef.tgz")
    write_samples(folder / "samples.npz", [1, 6, 6], lambda rng, n: rng.integers(0, 4, n))
    return folder


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Run a command in the test's own folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        return Result(status, *capsys.readouterr())

    return run
