import math
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.errors import CheckError, SampleError
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.report.model.checks import LayerNoise
from nnef_hw.report.model.conversion import to_json
from nnef_hw.run.rtl import RtlOutcome
from nnef_hw.run.simulate import (
    accuracies,
    layer_quality,
    random_codes,
    require_equal,
    require_exact,
    simulation_row,
)
from nnef_hw.samples.samples import Samples
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def canonical(rng):
    net = GraphBuilder("net")
    y = net.input("image", [1, 1, 4, 4])
    y = net.op("relu", net.conv(y, rng.normal(size=(3, 1, 3, 3)), name="conv1"), name="relu1")
    y = net.reshape(y, [1, 12], name="flat")
    net.op("linear", y, rng.normal(size=(4, 12)), rng.normal(size=(1, 4)), name="scores")
    return simplify(net.build())


@pytest.fixture
def samples(rng):
    return Samples({"image": rng.uniform(-1, 1, (50, 1, 4, 4))}, rng.integers(0, 4, 50))


@pytest.fixture
def fixed(canonical, samples):
    return quantize(canonical, samples.inputs)


@pytest.fixture
def plan(fixed):
    return schedule(fixed, find_board("icebreaker"))


def outcome(codes, plan, **changes):
    values = {"interval": plan.interval, "latency": plan.latency, **changes}
    return RtlOutcome(
        {"y": np.asarray(codes)},
        cycles=1000,
        cycles_per_second=12345.6,
        frames=len(codes),
        **values,
    )


# the verdict


def test_row_of_equal_outputs(plan):
    codes = np.arange(40).reshape(10, 4)
    assert to_json(simulation_row(plan, outcome(codes, plan), {"y": codes})) == {
        "frames": 10,
        "frames_given": 10,
        "bit_exact": True,
        "mismatches": 0,
        "cycles_per_inference": plan.interval,
        "latency_cycles": plan.latency,
        "predicted_cycles_per_inference": plan.interval,
        "predicted_latency_cycles": plan.latency,
        "steady_cycles_per_inference": plan.interval,
        "stall": 0.0,
        "cycles": 1000,
        "cycles_per_second": 12346,
    }


def test_a_short_run_is_compared_with_the_prediction_of_one(plan, monkeypatch):
    shorter = lambda _, plan, frames: plan.interval - frames  # noqa: E731
    monkeypatch.setattr(Streaming, "predict_interval", shorter)
    codes = np.zeros((3, 4))
    row = simulation_row(plan, outcome(codes, plan, interval=plan.interval - 3), {"y": codes})
    assert row.predicted_cycles_per_inference == plan.interval - 3
    assert row.steady_cycles_per_inference == plan.interval
    require_exact(row)


def test_mismatches_are_counted_by_frame(plan):
    expected = np.zeros((10, 2, 3, 3), np.int64)
    codes = expected.copy()
    codes[3, 1, 2, 2] = 1
    codes[7] = 5
    row = simulation_row(plan, outcome(codes, plan), {"y": expected})
    assert (row.bit_exact, row.mismatches) == (False, 2)
    with pytest.raises(CheckError, match="2 of 10 frames differ") as raised:
        require_exact(row)
    assert raised.value.exit_status == 1


def test_a_frame_of_which_any_output_is_wrong_counts_once(plan):
    right = {"y": np.zeros((4, 3)), "z": np.zeros((4, 2, 2))}
    found = {name: codes.copy() for name, codes in right.items()}
    found["y"][1] = found["z"][1] = found["z"][3, 0, 1] = 1
    row = simulation_row(plan, replace(outcome([], plan), codes=found, frames=4), right)
    assert (row.frames, row.mismatches) == (4, 2)


@pytest.mark.parametrize(
    ("frames", "stall", "change", "fails"),
    [
        (10, 0.0, {}, False),
        (10, 0.0, {"interval": 1}, True),
        (10, 0.0, {"latency": 1}, True),
        (10, 0.3, {"interval": 1, "latency": 1}, False),  # stalls cost cycles
        (2, 0.0, {"interval": 1}, True),
        (1, 0.0, {"interval": None}, False),
        (1, 0.0, {"latency": 1}, True),
    ],
)
def test_cycles_are_those_of_the_plan(frames, stall, change, fails, plan):
    codes = np.zeros((frames, 4))
    row = simulation_row(plan, outcome(codes, plan, **change), {"y": codes}, stall=stall)
    if not fails:
        require_exact(row)
        return
    with pytest.raises(CheckError, match=r"simulated \w+ 1 differ from the predicted \d+"):
        require_exact(row)


def test_require_equal():
    require_equal(0, 5)
    with pytest.raises(CheckError, match="1 of 5 frames differ"):
        require_equal(1, 5)


def test_random_codes_span_the_input_range(fixed):
    codes = random_codes(fixed, 200)["image"]
    qtype = fixed.tensor("image").qtype
    assert codes.shape == (200, 1, 4, 4)
    assert (codes.min(), codes.max()) == (qtype.lo, qtype.hi)
    np.testing.assert_array_equal(codes, random_codes(fixed, 200)["image"])


# how good it is


def test_accuracies(canonical, fixed, samples):
    name = fixed.outputs[0]
    codes = run_fixed(fixed, quantize_inputs(fixed, samples.inputs))[name]
    real = run_float(canonical, samples.inputs)[name]
    scores = accuracies(canonical, fixed, samples, {name: codes}, 7)
    assert scores.metric == "accuracy"
    assert (scores.samples, scores.calibration_samples) == (50, 7)
    assert scores.float == (real.argmax(axis=1) == samples.labels).mean()
    assert scores.rtl == scores.fixed == (codes.argmax(axis=1) == samples.labels).mean()

    # the score of the RTL is that of its own outputs
    perfect = np.eye(4, dtype=int)[samples.labels] * 50
    scores = accuracies(canonical, fixed, samples, {name: perfect}, 7)
    assert (scores.rtl, scores.rtl_equal) == (1.0, False)
    chosen = np.array([40, 3])
    scores = accuracies(canonical, fixed, samples, {name: codes[chosen]}, 7, chosen)
    assert (scores.rtl_samples, scores.rtl_equal) == (2, True)
    chosen = chosen[::-1]
    scores = accuracies(canonical, fixed, samples, {name: codes[[40, 3]]}, 7, chosen)
    assert scores.rtl_equal is False
    assert accuracies(None, fixed, samples, {name: codes}, 0).float is None
    assert accuracies(canonical, fixed, Samples(samples.inputs), {name: codes}, 7) is None


def test_mean_errors_for_real_labels(canonical, fixed, samples):
    name = fixed.outputs[0]
    real = run_float(canonical, samples.inputs)[name]
    codes = run_fixed(fixed, quantize_inputs(fixed, samples.inputs))
    scores = accuracies(canonical, fixed, Samples(samples.inputs, real + 1), codes, 0)
    assert scores.metric == "mae"
    assert scores.float == pytest.approx(1.0)
    error = np.abs(dequantize_outputs(fixed, codes)[name] - real - 1).mean()
    assert scores.rtl == scores.fixed == pytest.approx(error)
    with pytest.raises(SampleError, match=r"labels have shape \[50, 2\], not \[50, 4\]"):
        accuracies(canonical, fixed, Samples(samples.inputs, real[:, :2]), codes, 0)


def testlayer_quality(canonical, fixed, samples):
    layers = layer_quality(canonical, fixed, samples)
    assert [layer.name for layer in layers] == [
        node.name for node in fixed.nodes if node.op != "reshape"
    ]
    assert all(30 < layer.sqnr_db < 60 for layer in layers)
    assert layer_quality(None, fixed, samples) == ()

    # two bits fewer cost about 12 dB
    coarse = quantize(canonical, samples.inputs, Scheme(activation_bits=6))
    for fine, coarser in zip(layers, layer_quality(canonical, coarse, samples), strict=True):
        assert 6 < fine.sqnr_db - coarser.sqnr_db < 18


def testlayer_quality_by_hand():
    """A layer that copies: its noise is that of rounding to codes."""
    net = GraphBuilder("net")
    net.conv(net.input("x", [1, 1, 2, 2]), np.ones((1, 1, 1, 1)), name="y")
    canonical = simplify(net.build())
    values = np.array([0.0, 255.0, 100.25, 40.0]).reshape(1, 1, 2, 2)
    fixed = quantize(canonical, {"x": values})
    (layer,) = layer_quality(canonical, fixed, Samples({"x": values}))
    codes = run_fixed(fixed, quantize_inputs(fixed, {"x": values}))
    noise = dequantize_outputs(fixed, codes)["y"] - values
    expected = 10 * math.log10(np.square(values).sum() / np.square(noise).sum())
    assert layer == LayerNoise("y", "conv", round(expected, 2))


def test_silent_and_exact_layers_have_no_ratio():
    net = GraphBuilder("net")
    net.conv(net.input("x", [1, 1, 2, 2]), np.ones((1, 1, 1, 1)), name="y")
    canonical = simplify(net.build())
    fixed = quantize(canonical, {"x": np.array([0.0, 1.0, 0.5, 0.25]).reshape(1, 1, 2, 2)})
    (layer,) = layer_quality(canonical, fixed, Samples({"x": np.zeros((1, 1, 2, 2))}))
    assert layer.sqnr_db is None
