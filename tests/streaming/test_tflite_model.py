"""A TensorFlow Lite file in hardware: its codes under stalls, in the cycles of the Plan."""

import numpy as np
import pytest
from tflite_cases import RESULTS
from tflite_quantized_cases import quantized_cases

from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.streaming import find_board, schedule

FRAMES = 4


@pytest.mark.parametrize(
    "name",
    [
        "network",
        "gate",
        "HARD_SWISH",
        "resized-variance",
        "PRELU-channels",
        "attention",
        "RESIZE_BILINEAR-thirds",
        "LSTM-one-step",
        "TANH-int16-any",
        "DIV-network",
    ],
)
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
