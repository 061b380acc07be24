"""Histograms of activations, and the ranges that formats cover."""

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, observe, quantize
from nnef_hw.quantize.calibration.observe import Histogram
from nnef_hw.quantize.calibration.ranges import choose_range
from nnef_hw.testing import GraphBuilder


def observed(x):
    """Return the observation of an input whose values are all seen."""
    builder = GraphBuilder()
    builder.input("x", (1, *x.shape[1:]))
    builder.op("sin", "x")
    return observe(simplify(builder.build()), {"x": x})["x"]


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0, 2000.0])
def test_histograms_grow_with_the_values(scale, rng):
    histogram, parts = Histogram(), [scale * 3**n * rng.standard_normal(500) for n in range(4)]
    for n in range(4):
        magnitude = max(np.abs(part).max() for part in parts[: n + 1])
        histogram.add(parts[n], magnitude)
    x = np.concatenate(parts)
    assert histogram.counts.sum() == x.size
    assert np.abs(x).max() / 4096 < histogram.width <= np.abs(x).max() / 2048
    edges = np.append(histogram.centers - histogram.width / 2, np.inf)
    np.testing.assert_array_equal(histogram.counts, np.histogram(x, edges)[0])


def test_batches_give_the_observation_of_all_samples(rng):
    x = rng.standard_normal((150, 7))
    found = observed(x)
    assert (found.lo, found.hi) == (x.min(), x.max())
    assert found.histogram.counts.sum() == x.size
    np.testing.assert_allclose(found.mean, x.mean(axis=0, keepdims=True))


def test_progress_is_told_after_each_batch(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    builder.op("relu", "x")
    told = []
    observe(
        simplify(builder.build()),
        {"x": rng.standard_normal((150, 3))},
        lambda *progress: told.append(progress),
    )
    assert told == [("calibrating", n, 150) for n in (64, 128, 150)]


def test_layers_are_told_after_the_samples(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    builder.op("linear", "x", rng.standard_normal((2, 3)), 0.0)
    graph, told = simplify(builder.build()), []
    quantize(graph, {"x": rng.random((9, 3))}, progress=lambda *progress: told.append(progress))
    count = len(graph.nodes)
    layers = [("quantizing layers", n, count) for n in range(1, count + 1)]
    assert told == [("calibrating", 9, 9), *layers]


@pytest.mark.parametrize(
    ("arguments", "highest"),
    [
        ({"calibration": "minmax"}, 40.0),
        ({"calibration": "percentile", "percentile": 99.9}, 5.0),
        ({"calibration": "mse"}, 15.0),
        ({"calibration": "entropy"}, 25.0),
    ],
    ids=lambda value: value["calibration"] if isinstance(value, dict) else "",
)
def test_all_methods_but_minmax_ignore_rare_outliers(arguments, highest, rng):
    x = rng.standard_normal((100, 100))
    x[0, 0] = 40.0
    lo, hi = choose_range(observed(x), Scheme(activation_bits=4, **arguments))
    assert 2.0 < hi <= highest
    assert x.min() <= lo <= -2.0 or arguments["calibration"] == "entropy"


@pytest.mark.parametrize("calibration", ["percentile", "mse", "entropy"])
@pytest.mark.parametrize("value", [0.0, 3.0, -2.0, 1e-310])
def test_constant_activations_have_a_range(calibration, value):
    lo, hi = choose_range(observed(np.full((5, 4), value)), Scheme(calibration=calibration))
    assert lo <= 0 <= hi
    assert min(value, 0) - 1e-9 <= lo
    assert hi <= max(value, 0) + 1e-9


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_least_error_is_near_the_best_uniform_quantizer_of_noise(bits, rng):
    """Of normal numbers the best clipping is known: Banner et al. (2018), table 1."""
    best = {2: 1.71, 4: 2.83, 8: 3.92}[bits]
    _, hi = choose_range(
        observed(rng.standard_normal((400, 500))), Scheme(8, bits, calibration="mse")
    )
    assert hi == pytest.approx(best, rel=0.2)


@pytest.mark.parametrize("tiny", [0.0, 1e-20])
@pytest.mark.parametrize("calibration", ["mse", "entropy"])
def test_zeros_between_numbers_of_both_signs_cost_them_no_codes(calibration, tiny, rng):
    """Products with the weights of an attention mask are 0, or as good as 0, of any sign."""
    x = rng.uniform(-1, 1, (400, 7))
    x[rng.random(x.shape) < 0.8] *= tiny
    lo, hi = choose_range(observed(x), Scheme(calibration=calibration))
    assert lo < -0.9
    assert hi > 0.9


def input_format(x, **scheme):
    builder = GraphBuilder()
    builder.input("x", (1, x.shape[1]))
    builder.op("linear", "x", np.ones((2, x.shape[1])), 0.0)
    return quantize(simplify(builder.build()), {"x": x}, Scheme(**scheme)).tensor("x").qtype


@pytest.mark.parametrize("calibration", ["mse", "minmax", "percentile", "entropy"])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("step", [1.0, 1 / 255, 1 / 256])
def test_bytes_are_codes(step, single, calibration, rng):
    """Even where few are bright, of which a range would cut off some, and none is the brightest."""
    x = rng.integers(0, 20, (200, 9)) * step
    x[3, 4] = 241 * step
    found = input_format(x.astype(np.float32) if single else x, calibration=calibration)
    assert found == QType(8, signed=False, scale=step)


def test_signed_bytes_are_codes(rng):
    x = rng.integers(-90, 60, (50, 9)).astype(float)
    assert input_format(x) == QType(8, signed=True, scale=1.0)


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(np.arange(16.0).reshape(4, 4), id="a few integers"),
        pytest.param(np.linspace(0, 255, 300).reshape(100, 3), id="between bytes"),
        pytest.param(np.arange(0, 600.0).reshape(200, 3), id="more than bytes"),
    ],
)
def test_other_numbers_get_a_range(x):
    assert input_format(x, calibration="minmax").scale == pytest.approx(x.max() / 255)


def test_bytes_get_no_step_that_is_no_power_of_two(rng):
    x = rng.integers(0, 256, (200, 9)) / 255
    assert input_format(x, power_of_two=True).scale == 1 / 128
