"""Scales and codes of weights."""

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType, choose_requant
from nnef_hw.quantize import Scheme
from nnef_hw.quantize.calibration import simulate
from nnef_hw.quantize.calibration.adaptive import fit_weights, round_adaptively
from nnef_hw.quantize.calibration.simulate import Moments
from nnef_hw.quantize.weights import choose_scales, fit_multipliers


def codes_of(weights, scales, bits):
    qtype = Scheme(bits).weight_format(tuple(map(float, scales)))
    codes = qtype.quantize(weights)
    return codes, qtype.dequantize(codes) - weights


@pytest.mark.parametrize("bits", range(1, 9))
def test_scales_leave_the_least_squared_error(bits, rng):
    weights = rng.standard_normal((4, 3, 3, 3)) * np.array([1, 2, 0.5, 0.7]).reshape(4, 1, 1, 1)
    scales = choose_scales(weights, np.zeros(4), Scheme(bits), 0.1)
    noise = [(codes_of(weights, scales * f, bits)[1] ** 2).sum() for f in (1.0, 0.7, 1.4)]
    assert min(noise) == noise[0]
    assert (noise[0] / (weights**2).sum()) < 0.45 ** min(bits, 6)


@pytest.mark.parametrize("arguments", [{"per_channel": False}, {"power_of_two": True}], ids=str)
def test_one_scale_serves_all_channels(arguments, rng):
    weights = rng.standard_normal((4, 9)) * np.array([[1], [2], [0.1], [0.7]])
    scales = choose_scales(weights, np.zeros(4), Scheme(**arguments), 0.1)
    assert len(set(scales)) == 1
    assert not arguments.get("power_of_two") or np.log2(scales[0]) % 1 == 0


def test_dead_channels_take_the_scale_of_others(rng):
    weights = np.stack([np.zeros(9), rng.standard_normal(9)])
    scales = choose_scales(weights, [0.0, 0.0], Scheme(), 0.1)
    assert scales[0] == scales[1]


def test_an_all_zero_filter_has_a_scale():
    assert choose_scales(np.zeros((2, 3)), [0.0, 0.0], Scheme(), 0.1).tolist() == [1.0, 1.0]


def test_biases_need_at_most_24_bits():
    scales = choose_scales(np.array([[1.0], [1e-9]]), [0.0, 50.0], Scheme(), 0.01)
    assert 50.0 / (0.01 * scales[1]) <= 2**23


@pytest.mark.parametrize("mult_bits", [1, 2, 4, 8, 16, 24])
def test_multipliers_hold_fitted_scales_exactly(mult_bits, rng):
    scales = 10.0 ** rng.uniform(-4, -2, 32)
    fitted = fit_multipliers(scales, 0.37, mult_bits)
    assert (fitted >= scales * (1 - 1e-9)).all()
    requant = choose_requant(fitted * 0.37, QType(8, False, 1.0), mult_bits=mult_bits)
    exact = np.array(requant.mult) * 2.0**-requant.shift
    np.testing.assert_allclose(exact, fitted * 0.37, rtol=1e-12)
    largest = scales.argmax()
    assert fitted[largest] <= scales[largest] * (1 + 2.0 ** (1 - mult_bits))


def layer_data(rng, groups=2, rows=6, depth=24, count=800):
    """Weights, and correlated inputs of which the quantized ones are off and noisy."""
    weights = rng.standard_normal((groups, rows, depth))
    mixing = rng.standard_normal((groups, depth, depth)) * np.exp(-np.arange(depth) / 6)
    real = mixing @ rng.standard_normal((groups, depth, count))
    fixed = 0.9 * real + 0.05 * rng.standard_normal(real.shape)
    return weights, real, fixed, Moments.of(real, fixed, centered=False)


@pytest.mark.parametrize("most", [24, 9])
def test_fitted_weights_take_back_errors_of_layers_before(most, monkeypatch, rng):
    monkeypatch.setattr(simulate, "_MAX_INPUTS", most)
    weights, real, fixed, moments = layer_data(rng)
    assert len(moments.parts) == -(-24 // most)
    wanted = weights @ real
    error = ((fit_weights(weights, moments) @ fixed - wanted) ** 2).mean()
    assert error < 0.4 * ((weights @ fixed - wanted) ** 2).mean()


@pytest.mark.parametrize(("depth", "most"), [(24, 24), (90, 90), (90, 45)])
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
def test_adaptive_rounding_beats_rounding_to_the_nearest(bits, depth, most, monkeypatch, rng):
    """Windows of up to 32 values are rounded as one block, larger ones as several."""
    monkeypatch.setattr(simulate, "_MAX_INPUTS", most)
    weights, _, fixed, moments = layer_data(rng, groups=20, depth=depth)
    scheme = Scheme(bits)
    scales = choose_scales(weights.reshape(120, -1), np.zeros(120), scheme, 1.0).reshape(20, 6, 1)
    unit = scheme.weight_format(1.0)
    codes = round_adaptively(weights, scales, unit, moments)
    assert codes.min() >= unit.lo
    assert codes.max() <= unit.hi
    nearest, adaptive = (
        (((c * scales - weights) @ fixed) ** 2).mean()
        for c in (unit.quantize(weights / scales), codes)
    )
    assert adaptive < (0.35 if bits > 2 else 0.6) * nearest


def test_inputs_that_are_never_used_leave_weights_alone(rng):
    """The moments of constant inputs about their mean are 0: nothing can be inverted as it is."""
    weights = rng.standard_normal((1, 4, 6))
    zero = Moments.of(np.ones((1, 6, 3)), np.ones((1, 6, 3)), centered=True)
    unit = Scheme().weight_format(1.0)
    codes = round_adaptively(weights, np.full((1, 4, 1), 0.02), unit, zero)
    np.testing.assert_array_equal(codes, unit.quantize(weights / 0.02))
    np.testing.assert_array_equal(fit_weights(weights, zero), weights)
