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
    ],
)
def test_hardware_gives_the_codes_of_the_reference_kernels(name, tmp_path, simulate):
    case = quantized_cases()[name]
    graph = quantize(simplify(load(case.model.save(tmp_path / "model.tflite"))), None)
    [source], [result] = graph.inputs, graph.outputs
    with np.load(RESULTS) as stored:
        expected = stored[name].astype(np.int64)
    codes = case.inputs[0].astype(np.int64)
    if graph.states:  # sequences of one step
        codes = codes[:, np.newaxis, np.newaxis]
    found = run_fixed(graph, {source: codes})[result]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    plan = schedule(graph, find_board("ulx3s_85f"))
    simulate(plan, graph).check(FRAMES)
