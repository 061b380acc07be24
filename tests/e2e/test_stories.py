"""A trained Llama of 260 k parameters (stories260K), as PyTorch's exporters write a step of it."""

import numpy as np
import pytest

from nnef_hw.engine.architecture import SharedArray
from nnef_hw.frontend import load, name_states
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

EXPORTS = ["stories260k_step.onnx", "stories260k_step.nnef.tgz"]


@pytest.mark.parametrize("export", EXPORTS)
def test_a_step_runs_on_the_engine_and_writes_the_same_text(export, attention):
    """Rotations, groups of queries, SwiGLU; the greedy tokens that PyTorch gave."""
    folder = attention / "stories260k"
    graph = simplify(name_states(load(folder / export), "auto", export))
    assert not SharedArray().problems(graph)
    operators = [node.op for node in graph.nodes]
    # No cache is repeated for its groups of queries: only four rows of cosines and sines are.
    assert (operators.count("nearest_upsample"), operators.count("write_row")) == (4, 10)
    with np.load(folder / "stories.npz") as data:
        tokens = data["greedy"][:24]
    x = {"token": tokens[None, :, None], "position": np.arange(24)[None, :, None]}
    logits = run_float(graph, x)[graph.outputs[0]]
    assert logits.reshape(24, 512).argmax(axis=1)[:-1].tolist() == tokens[1:].tolist()
