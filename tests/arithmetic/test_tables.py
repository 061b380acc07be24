import math

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tables import look_up, table_size, unary_table


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def every_code(source):
    return np.arange(source.lo, source.hi + 1)


def largest_error(function, source, target):
    """Steps of ``target`` between results of a table and the function, over all codes."""
    codes = every_code(source)
    found = look_up(unary_table(function, source, target), codes, source)
    exact = function(source.dequantize(codes)) / target.scale + target.zero_point
    return np.abs(found - np.clip(exact, target.lo, target.hi)).max()


def test_table_has_every_code_and_maps_what_is_not_finite():
    source = QType(4, True, 1.0)
    target = QType(8, False, 0.1, zero_point=20)
    table = unary_table(np.log, source, target)
    assert table.shape == (16,)
    assert table[:9].tolist() == [0] * 9
    assert table[8 + 7] == 20 + 19
    assert unary_table(lambda x: 1 / x, source, target)[8] == 255


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [2, 5, 8])
def test_narrow_codes_have_entries_of_their_own(bits, signed):
    source, target = QType(bits, signed, 6.0 / (1 << bits)), QType(8, False, 1 / 256)
    assert largest_error(sigmoid, source, target) <= 0.5 + 1e-9


@pytest.mark.parametrize(("bits", "signed"), [(9, False), (12, True), (16, False), (16, True)])
def test_knots_are_the_results_of_every_256th_of_the_range(bits, signed):
    source, target = QType(bits, signed, 8.0 / (1 << bits)), QType(16, True, 2.0**-15)
    knots = unary_table(np.tanh, source, target)
    assert len(knots) == table_size(bits) == 257
    codes = every_code(source)[:: 1 << bits - 8]
    results = target.quantize(np.tanh(source.dequantize(codes)))
    np.testing.assert_array_equal(knots[:-1], results)
    np.testing.assert_array_equal(look_up(knots, codes, source), results)
    assert knots[-1] == target.quantize(np.tanh(source.dequantize(source.hi + 1)))


@pytest.mark.parametrize(("bits", "signed"), [(9, True), (11, False)])
def test_between_knots_lie_the_rounded_points_of_a_line(bits, signed, rng):
    source = QType(bits, signed, 1.0)
    knots = rng.integers(-32768, 32768, 257)
    low_bits = bits - 8
    expected = []
    for place in range(1 << bits):
        index, rest = divmod(place, 1 << low_bits)
        rise = (int(knots[index + 1]) - int(knots[index])) * rest / (1 << low_bits)
        expected.append(int(knots[index]) + math.floor(rise + 0.5))
        assert min(knots[index : index + 2]) <= expected[-1] <= max(knots[index : index + 2])
    assert look_up(knots, every_code(source), source).tolist() == expected


def test_last_knot_is_that_of_the_highest_code_where_the_function_ends():
    source, target = QType(12, True, 1 / 2047, zero_point=0), QType(8, False, 0.02)
    knots = unary_table(np.arccos, source, target)
    assert source.dequantize(source.hi + 1) > 1
    assert knots[-1] == target.quantize(np.arccos(source.dequantize(source.hi))) == 0
    infinite = unary_table(lambda x: 1 / (source.dequantize(source.hi + 1) - x), source, target)
    assert infinite[-1] == target.hi


def test_knots_that_are_not_finite_have_the_codes_at_the_ends():
    source, target = QType(10, True, 1.0), QType(8, False, 0.1, zero_point=20)
    knots = unary_table(np.log, source, target)
    assert (knots[:129] == target.lo).all()
    assert knots[129] == 20 + 14


@pytest.mark.parametrize("bits", [8, 12])
def test_a_narrow_format_lacks_one_of_the_entries(bits):
    wide, narrow = (QType(bits, True, 6.0 / (1 << bits), narrow=n) for n in (False, True))
    target = QType(8, False, 1 / 256)
    tables = [unary_table(sigmoid, source, target) for source in (wide, narrow)]
    np.testing.assert_array_equal(*tables)
    codes = every_code(narrow)
    np.testing.assert_array_equal(
        look_up(tables[1], codes, narrow), look_up(tables[0], codes, wide)
    )


@pytest.mark.parametrize(
    ("function", "reach", "target", "steps"),
    [
        (sigmoid, 8.0, QType(16, False, 1 / 65536), 4),
        (np.tanh, 4.0, QType(16, True, 1 / 32768), 4),
        (np.tanh, 2.0, QType(16, True, 1 / 32768), 2),
        (lambda x: x * sigmoid(x), 8.0, QType(16, False, 8.3 / 65536, zero_point=2200), 3),
        (lambda x: x / 3, 4.0, QType(16, True, 1 / 20000), 1),
        (lambda x: np.maximum(x, 0), 4.0, QType(16, False, 4 / 65536), 129),
    ],
    ids=["sigmoid", "tanh", "tanh of less", "silu", "line", "relu"],
)
def test_sixteen_bits_are_precise_but_near_kinks(function, reach, target, steps):
    """Of this relu knots rise by 512 steps: where it bends, a line is up to 128 off."""
    source = QType(16, True, reach / 32768, zero_point=100)
    assert largest_error(function, source, target) <= steps
