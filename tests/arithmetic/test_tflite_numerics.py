"""TensorFlow Lite's arithmetic against its definition in exact fractions."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tflite.numerics import (
    TfliteAddRequant,
    TfliteAverage,
    TfliteRequant,
    tflite_add_requant,
    tflite_exp_table,
    tflite_mean_requant,
    tflite_requant,
    tflite_softmax_codes,
)

S8 = QType(8, signed=True, scale=0.1, zero_point=-7)


def half_away(value):
    return floor(value + Fraction(1, 2)) if value >= 0 else ceil(value - Fraction(1, 2))


def scaled(x, mult, shift):
    """The first rounding takes halves up, the second one away from 0."""
    product = Fraction(x * 2 ** max(shift, 0) * mult, 2**31)
    first = floor(product + Fraction(1, 2))
    return half_away(Fraction(first, 2 ** max(-shift, 0)))


@pytest.mark.parametrize("magnitude", [40, 5000, 10**6])
def test_layers_round_twice(magnitude, rng):
    requant = tflite_requant(2.0 ** rng.uniform(-12, 1, 8), S8)
    acc = rng.integers(-magnitude, magnitude, (50, 8))
    expected = [
        [
            min(max(scaled(int(x), m, s) - 7, -128), 127)
            for x, m, s in zip(row, requant.mult, requant.shift, strict=True)
        ]
        for row in acc
    ]
    np.testing.assert_array_equal(requant.apply(acc), expected)


def test_fully_connected_layers_round_once(rng):
    factors = 2.0 ** rng.uniform(-12, -1, 8)
    requant = tflite_requant(factors, S8, rounds_once=True)
    acc = rng.integers(-5000, 5000, (50, 8))
    pairs = list(zip(requant.mult, requant.shift, strict=True))
    exact = [Fraction(mult) * Fraction(2) ** (shift - 31) for mult, shift in pairs]
    expected = [
        [floor(int(x) * f + Fraction(1, 2)) - 7 for x, f in zip(row, exact, strict=True)]
        for row in acc
    ]
    expected = np.clip(expected, -128, 127)
    np.testing.assert_array_equal(requant.apply(acc), expected)


@pytest.mark.parametrize("factor", [1.0, 0.5, 1 - 2.0**-40, 1e-5, 2.0**-31, 3.7])
def test_multipliers_have_31_bits(factor):
    requant = tflite_requant(factor, S8)
    assert 2**30 <= requant.mult[0] < 2**31
    assert requant.mult[0] * 2.0 ** (requant.shift[0] - 31) == pytest.approx(factor, rel=2.0**-31)


def test_factors_too_small_for_any_shift_are_zero():
    assert tflite_requant(2.0**-40, S8).apply([[10**6]]).tolist() == [[-7]]


def test_sums_are_scaled_to_the_larger_step_first(rng):
    requant = tflite_add_requant((0.05, 0.3), S8, lo=-7)
    a, b = rng.integers(-255, 256, (2, 300))
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total = sum(
            scaled(value << 20, requant.mult[n], requant.shift[n]) for n, value in enumerate((x, y))
        )
        expected.append(min(max(scaled(total, requant.mult[2], requant.shift[2]) - 7, -7), 127))
    np.testing.assert_array_equal(requant.apply(a, b), expected)
    real = (a * 0.05 + b * 0.3) / 0.1 - 7
    assert np.abs(requant.apply(a, b) - real.clip(-7, 127)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("taps", [4, 9, 64])
def test_averages_round_halves_of_codes_away_from_zero(taps):
    average = TfliteAverage(taps, zero_point=-3, lo=-128, hi=127)
    totals = np.arange(-3 * taps, 3 * taps)
    expected = [half_away(Fraction(int(total), taps)) for total in totals]
    np.testing.assert_array_equal(average.apply(totals - taps * -3), expected)


@pytest.mark.parametrize("limits", [(-128, 127), (0, 255), (-8, 7)])
@pytest.mark.parametrize("taps", [1, 2, 3, 4, 9, 25, 49, 64, 125])
def test_averages_have_a_requantizer_that_is_equal_for_every_sum(taps, limits):
    lo, hi = limits
    average = TfliteAverage(taps, zero_point=0, lo=lo, hi=hi)
    sums = np.arange(taps * lo, taps * hi + 1)
    found = average.as_requant().apply(sums)
    np.testing.assert_array_equal(found, average.apply(sums))


def test_averages_of_different_counts_have_a_mult_each():
    average = TfliteAverage(9, zero_point=-3, lo=-128, hi=127)
    sums = np.arange(-400, 400)
    requant = average.as_requant([4, 6, 9])
    for taps, mult in zip((4, 6, 9), requant.mult, strict=True):
        found = replace(requant, mult=(mult,)).apply(sums)
        np.testing.assert_array_equal(found, average.apply(sums + 3 * taps, taps))


def test_means_divide_multipliers():
    """Rounded down; the shift keeps as many bits of the quotient as there are."""
    mean = tflite_mean_requant(0.75, 6, S8)
    assert mean.mult == ((int(0.75 * 2**31) << 2) // 6,)
    assert mean.shift == (-2,)
    assert mean.apply([[6 * 40]]).tolist() == [[30 + S8.zero_point]]


def test_swapped_operands_give_the_same_sums(rng):
    requant = tflite_add_requant((0.05, 0.3), S8, signs=(1, -1))
    a, b = rng.integers(-255, 256, (2, 300))
    np.testing.assert_array_equal(requant.swapped.apply(b, a), requant.apply(a, b))


@pytest.mark.parametrize("scale", [0.005, 0.06, 0.17, 0.5])
def test_exponentials_are_those_of_real_numbers(scale):
    """Where they are not 0: beyond -31, and far below one 256th."""
    expected = np.exp(-scale * np.arange(256))
    np.testing.assert_allclose(tflite_exp_table(scale) / 2.0**31, expected, rtol=0, atol=3e-7)


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("channels", [2, 10, 300])
def test_softmax_is_the_nearest_code_or_the_next(scale, channels, rng):
    codes = rng.integers(-128, 128, (200, channels))
    e = np.exp(scale * (codes - codes.max(axis=1, keepdims=True)))
    expected = (e / e.sum(axis=1, keepdims=True) * 256 - 128).clip(-128, 127)
    found = tflite_softmax_codes(codes, tflite_exp_table(scale))
    assert np.abs(found - expected).max() <= 0.51


@pytest.mark.parametrize(
    "value",
    [
        TfliteRequant((2**30, 2**31 - 1), (0, -9), 3, -128, 127, rounds_once=True),
        TfliteAddRequant((2**30, 5, 6), (0, -1, -19), 3, -128, 127, signs=(1, -1)),
        TfliteAverage(64, -128, -128, 127),
    ],
    ids=lambda value: type(value).__name__,
)
def test_json_round_trip(value):
    assert type(value).from_json(value.to_json()) == value
