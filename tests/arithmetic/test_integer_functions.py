import math

import numpy as np
import pytest

from nnef_hw.arithmetic.integer_functions import (
    IntegerNormalizeRequant,
    integer_exponentials,
    integer_softmax_codes,
    shift_exponentials,
)


def c_quotient(dividend, divisor):
    """A quotient of C's integers."""
    return int(math.copysign(abs(dividend) // divisor, dividend))


def layer_norm(row, weight, bias, shift):
    """Deeploy's kernel, number by number, with quantlib's limits."""
    mean = c_quotient(sum(row), len(row))
    variance = c_quotient(sum((x - mean) * (x - mean) for x in row), len(row)) + 1
    deviation = math.isqrt(variance)
    found = [
        (c_quotient((x - mean) * w, deviation) + b) >> shift
        for x, w, b in zip(row, weight, bias, strict=True)
    ]
    return [min(max(y, -128), 127) for y in found]


def rms_norm(row, weight, shift):
    deviation = math.isqrt(c_quotient(sum(x * x for x in row), len(row)) + 1)
    found = [c_quotient(x * w, deviation) >> shift for x, w in zip(row, weight, strict=True)]
    return [min(max(y, -128), 127) for y in found]


def ita_max(row):
    """Deeploy's kernel: the sum is inverted first, and its inverse shifted for each code."""
    shifts = [(max(row) - x + 16) >> 5 for x in row]
    inverse = 255 * 256 // sum(256 >> shift for shift in shifts)
    return [inverse >> shift for shift in shifts]


def parabola_softmax(row, log2, a, b, c, levels):
    """quantlib's module, number by number."""
    e = []
    for x in row:
        below = x - max(row)
        z = -below // log2
        p = below + z * log2
        e.append((a * (p + b) ** 2 + c) // 2**z)
    return [x * (levels - 1) // sum(e) for x in e]


@pytest.fixture
def rows(rng):
    """Noise of every range, constant rows, both ends, sums that C and Python divide unlike."""
    codes = rng.integers(-128, 128, (60, 24))
    codes[::3] //= 16
    codes[0], codes[1], codes[2] = 5, -128, 127
    codes[3, ::2], codes[3, 1::2] = -128, 127
    codes[4], codes[4, 0] = 0, -1
    return codes


@pytest.mark.parametrize("shift", [0, 7, 14])
def test_normalization_is_that_of_the_published_kernel(rows, shift, rng):
    weight, bias = rng.integers(-1 << shift + 7, 1 << shift + 7, (2, 24))
    requant = IntegerNormalizeRequant(24, True, shift, -128, 127)
    expected = [layer_norm(row, weight.tolist(), bias.tolist(), shift) for row in rows.tolist()]
    assert requant.apply(rows, weight, bias).tolist() == expected
    plain = IntegerNormalizeRequant(24, False, shift, -128, 127)
    expected = [rms_norm(row, weight.tolist(), shift) for row in rows.tolist()]
    assert plain.apply(rows, weight, [0]).tolist() == expected
    assert len(np.unique(expected)) > 50


def test_shifted_softmax_is_that_of_the_published_kernel(rows):
    expected = [ita_max(row) for row in rows.tolist()]
    assert integer_softmax_codes(rows, shift_exponentials(), 256).tolist() == expected
    assert len(np.unique(expected)) > 10


@pytest.mark.parametrize("coefficients", [(64, 1, 86, 3888), (20, 1, 40, 700), (256, 2, 9, 1)])
@pytest.mark.parametrize("levels", [256, 16])
def test_parabola_softmax_is_that_of_the_published_module(rows, coefficients, levels):
    expected = [parabola_softmax(row, *coefficients, levels) for row in rows.tolist()]
    table = integer_exponentials(*coefficients)
    assert integer_softmax_codes(rows, table, levels).tolist() == expected


def test_other_axes(rows):
    image = rows.reshape(60, 2, 3, 4)
    found = integer_softmax_codes(image, shift_exponentials(), 256, axes=(1, 2, 3))
    expected = integer_softmax_codes(rows, shift_exponentials(), 256)
    np.testing.assert_array_equal(found.reshape(rows.shape), expected)


def test_integers_survive_json():
    requant = IntegerNormalizeRequant(24, True, 14, -128, 127)
    assert IntegerNormalizeRequant.from_json(requant.to_json()) == requant


@pytest.mark.parametrize(("shift", "lo"), [(32, 0), (-1, 0), (3, 9)])
def test_impossible_integers_are_refused(shift, lo):
    with pytest.raises(ValueError, match="integer normalize"):
        IntegerNormalizeRequant(4, True, shift, lo, 8)
