"""Trained networks from the file to simulated hardware: exact, as fast as planned, as good."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.run.rtl import run_rtl
from nnef_hw.run.simulate import require_exact, simulation_row
from nnef_hw.samples.samples import load_samples
from nnef_hw.samples.scoring import score
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytestmark = [pytest.mark.zoo, pytest.mark.verilator]


def open_network(folder):
    """Return the canonical and the fixed graph, and the samples that did not calibrate."""
    graph = load(folder / "model.nnef.tgz")
    calibration, evaluation = load_samples(folder / "samples.npz", graph).split()
    canonical = simplify(graph)
    return canonical, quantize(canonical, calibration.inputs), evaluation


@pytest.mark.parametrize(
    ("name", "board", "frames"),
    [
        pytest.param("digits_mlp", "icebreaker", 100, marks=pytest.mark.nightly),
        ("tflm_hello_world", "icebreaker", 100),
        pytest.param("jvowels_conv1d_tanh", "icebreaker", 100, marks=pytest.mark.nightly),
        ("mnist_tiny_cnn", "icebreaker", 50),
        pytest.param("mnist_lenet5", "ulx3s_85f", 20, marks=pytest.mark.nightly),
    ],
)
def test_hardware_is_the_network(name, board, frames, zoo):
    canonical, fixed, evaluation = open_network(zoo / name)
    plan = schedule(fixed, find_board(board))
    # spread over the file, so that every class takes part
    samples = evaluation[:: max(1, len(evaluation) // frames)][:frames]
    codes = quantize_inputs(fixed, samples.inputs)
    expected = run_fixed(fixed, codes)
    (output,) = fixed.outputs
    verilog = to_verilog(Accelerator(plan, fixed))
    outcome = run_rtl(verilog, plan, fixed, codes)
    require_exact(simulation_row(plan, outcome, expected))
    assert (outcome.interval, outcome.latency) == (plan.interval, plan.latency)
    np.testing.assert_array_equal(outcome.codes[output], expected[output])

    few = {key: value[:4] for key, value in codes.items()}
    stalled = run_rtl(verilog, plan, fixed, few, stall=0.4, seed=1)
    np.testing.assert_array_equal(stalled.codes[output], expected[output][:4])
    assert stalled.cycles > outcome.latency

    # a lower bound of agreement that holds sample by sample, labels or not
    real = run_float(canonical, samples.inputs)[output]
    found = dequantize_outputs(fixed, outcome.codes)[output]
    noise, signal = np.square(found - real).mean(), np.square(real).mean()
    assert 10 * np.log10(signal / noise) > 20


@pytest.mark.parametrize("name", ["digits_mlp", "mnist_tiny_cnn", "jvowels_conv1d_tanh"])
def test_accuracy_is_kept(name, zoo):
    canonical, fixed, evaluation = open_network(zoo / name)
    (output,) = fixed.outputs
    codes = run_fixed(fixed, quantize_inputs(fixed, evaluation.inputs))
    outputs = (
        run_float(canonical, evaluation.inputs)[output],
        dequantize_outputs(fixed, codes)[output],
    )
    real, found = (score(y, evaluation.labels) for y in outputs)
    assert real.kind == "accuracy"
    assert found.value >= real.value - max(0.005, 1 / len(evaluation)) - 1e-9


def test_network_that_does_not_fit_is_refused(zoo):
    _, fixed, _ = open_network(zoo / "mnist_lenet5")
    with pytest.raises(TargetError) as raised:
        schedule(fixed, find_board("icebreaker"))
    assert str(raised.value) == (
        "model 'mnist_lenet5' does not fit icebreaker (up5k) with --arch streaming: its weights "
        "take 61,470 bytes (most in fc1_relu_conv 48,000, fc2_relu 10,080 and conv2_relu 2,400), "
        "and all block RAMs and LUTs of the device together hold 25,920"
    )
