"""A TensorFlow Lite file in hardware: its codes under stalls, in the cycles of the Plan."""

import numpy as np
import pytest
from sweeps import few
from tflite_cases import RESULTS
from tflite_quantized_cases import quantized_cases

from nnef_hw.boards import find_board
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.streaming.search.solver import schedule

FRAMES = 4


USUAL = (
    "network", "gate", "HARD_SWISH", "attention", "RESIZE_BILINEAR-thirds", "TANH-int16-any",
)  # fmt: skip
# Of what those above have as well; states go round in test_states.py.
MORE = ("resized-variance", "PRELU-channels", "DIV-network", "LSTM-one-step")


@pytest.mark.parametrize("name", few([*USUAL, *MORE], USUAL))
def test_hardware_gives_the_codes_of_the_reference_kernels(name, tmp_path, simulate):
    case = quantized_cases()[name]
    graph = quantize(simplify(load(case.model.save(tmp_path / "model.tflite"))), None)
    [result] = graph.outputs
    with np.load(RESULTS) as stored:
        expected = stored[name].astype(np.int64)
    inputs = [codes.astype(np.int64) for codes in case.inputs]
    if graph.states:  # sequences of one step
        inputs = [codes[:, np.newaxis, np.newaxis] for codes in inputs]
    found = run_fixed(graph, dict(zip(graph.inputs, inputs, strict=True)))[result]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    plan = schedule(graph, find_board("ulx3s_85f"))
    simulate(plan, graph).check(FRAMES)
