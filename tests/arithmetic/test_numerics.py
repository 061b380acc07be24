import math
import re
from fractions import Fraction

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import (
    MAX_SHIFT,
    AddRequant,
    QType,
    Requant,
    accumulator_range,
    argmax_codes,
    choose_add_requant,
    choose_division,
    choose_requant,
    fold_zero_point,
    signed_bits,
)
from nnef_hw.arithmetic.softmax import SOFTMAX_QTYPE, exp_table, softmax_codes

U8 = QType(bits=8, signed=False, scale=0.5, zero_point=10)


@pytest.mark.parametrize(
    ("lo", "hi", "bits"),
    [(0, 0, 1), (-1, 0, 1), (0, 1, 2), (-2, 1, 2), (-128, 127, 8), (-129, 0, 9), (0, 128, 9)],
)
def test_signed_bits_is_the_least_width(lo, hi, bits):
    assert signed_bits(lo, hi) == bits


@pytest.mark.parametrize(
    ("qtype", "limits"),
    [
        (QType(8, False, 1.0), (0, 255)),
        (QType(8, True, 1.0), (-128, 127)),
        (QType(8, True, 1.0, narrow=True), (-127, 127)),
        (QType(2, True, 1.0, narrow=True), (-1, 1)),
        (QType(1, False, 1.0), (0, 1)),
    ],
    ids=["u8", "i8", "narrow8", "narrow2", "u1"],
)
def test_code_limits(qtype, limits):
    assert (qtype.lo, qtype.hi) == limits


def test_halves_round_up_when_quantizing():
    assert U8.quantize([0.25, -0.25, 0.75, -0.75, 0.2499]).tolist() == [11, 10, 12, 9, 10]


def test_quantizing_saturates():
    assert U8.quantize([-1e9, 1e9]).tolist() == [0, 255]


def test_every_code_survives_the_round_trip():
    codes = np.arange(256)
    assert (U8.quantize(U8.dequantize(codes)) == codes).all()


def test_scales_belong_to_the_channel_axis():
    qtype = QType(8, True, (1.0, 2.0))
    np.testing.assert_array_equal(qtype.quantize([[4.0, 4.0]], axis=1), [[4, 2]])
    np.testing.assert_array_equal(qtype.dequantize([[4], [4]]), [[4.0], [8.0]])


def test_formats_survive_json():
    for qtype in (U8, QType(8, True, (0.1, 1e-7), narrow=True)):
        assert QType.from_json(qtype.to_json()) == qtype
    requant = choose_requant([0.1, 0.3], U8)
    assert Requant.from_json(requant.to_json()) == requant
    addition = choose_add_requant((0.1, -0.3), U8)
    assert AddRequant.from_json(addition.to_json()) == addition


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bits": 0}, "bits must be in 1..32, not 0"),
        ({"scale": 0.0}, "scale must be positive and finite, not 0.0"),
        ({"scale": float("nan")}, "scale must be positive and finite, not nan"),
        ({"zero_point": 256}, "zero_point must be in 0..255, not 256"),
    ],
    ids=["bits", "zero", "nan", "zero_point"],
)
def test_impossible_formats_are_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        QType(**{"bits": 8, "signed": False, "scale": 1.0, **arguments})


def test_requantize_is_floor_of_the_exact_quotient_plus_half(rng):
    requant = Requant((3, 40000), shift=17, zero_point=7, lo=0, hi=255)
    acc = rng.integers(-(2**24), 2**24, (5, 2, 3))
    halves = np.array([2**16, -(2**16), 3 * 2**16]).reshape(3, 1, 1) + np.zeros((3, 2, 3), np.int64)
    acc = np.concatenate([acc, halves])
    for index, value in np.ndenumerate(acc):
        exact = Fraction(int(value) * requant.mult[index[1]], 2**17) + Fraction(1, 2)
        expected = min(max(exact.numerator // exact.denominator + 7, 0), 255)
        assert requant.apply(acc)[index] == expected


def test_requantize_halves_round_up():
    requant = Requant((1,), shift=1, zero_point=0, lo=-100, hi=100)
    assert requant.apply([[-3, -1, 1, 3]]).tolist() == [[-1, 0, 1, 2]]


@pytest.mark.parametrize("offset", [(77,), (0, 1023, 500)])
def test_an_offset_is_added_to_products(offset, rng):
    requant = Requant((100, 3, 515), 10, 4, -128, 127, offset=offset)
    acc = rng.integers(-2000, 2000, (50, 3))
    found = requant.apply(acc)
    for row, codes in zip(acc.tolist(), found.tolist(), strict=True):
        for channel, (total, code) in enumerate(zip(row, codes, strict=True)):
            added = offset[channel % len(offset)]
            exact = Fraction(total * requant.mult[channel] + added, 1 << 10) + Fraction(1, 2)
            assert code == min(max(math.floor(exact) + 4, -128), 127)
    some = requant.of_channels(slice(1, 3))
    np.testing.assert_array_equal(some.apply(acc[:, 1:]), found[:, 1:])
    assert Requant.from_json(requant.to_json()) == requant


def test_an_offset_is_less_than_a_step_of_the_result():
    with pytest.raises(ValueError, match=r"offset must be in 0\.\.1023, not 1024"):
        Requant((1,), 10, 0, 0, 255, offset=(3, 1024))


@pytest.mark.parametrize("count", [3, 7, 49, 50, 196, 1000])
def test_division_by_a_count_is_exact_for_every_sum(count):
    requant = choose_division(count, QType(8, True, 1.0), acc_bits=15, lo=-100)
    acc = np.arange(-1 << 14, 1 << 14)
    expected = [
        min(max(math.floor(Fraction(n, count) + Fraction(1, 2)), -100), 127) for n in acc.tolist()
    ]
    assert requant.apply(acc).tolist() == expected


def test_requantize_clips_at_both_limits():
    requant = Requant((1,), shift=1, zero_point=3, lo=3, hi=9)
    assert requant.apply([[-1000, 0, 12, 11, 13, 1000]]).tolist() == [[3, 3, 9, 9, 9, 9]]


def test_requantize_refuses_wide_products():
    with pytest.raises(OverflowError, match=re.escape("2**62")):
        Requant((2**15,), shift=1, zero_point=0, lo=0, hi=1).apply([[2**47]])


@pytest.mark.parametrize("mult_bits", [8, 16, 24])
def test_chosen_requant_is_precise_and_within_its_limits(mult_bits, rng):
    for _ in range(200):
        factors = 2.0 ** rng.uniform(-20, 3) * rng.uniform(0.1, 1.0, 5)
        acc_bits = int(rng.integers(8, 33))
        requant = choose_requant(factors, U8, mult_bits=mult_bits, acc_bits=acc_bits)
        assert max(requant.mult).bit_length() + acc_bits - 1 <= 62
        assert max(requant.mult) < 2**mult_bits
        assert 1 <= requant.shift <= MAX_SHIFT
        real = np.array(requant.mult) / 2.0**requant.shift
        assert (np.abs(real - factors) <= 2.0 ** -(requant.shift + 1)).all()
        doubled = np.floor(factors * 2.0 ** (requant.shift + 1) + 0.5)
        exact = (doubled == 2 * np.array(requant.mult)).all()
        tight = doubled.max() >= 2**mult_bits or int(doubled.max()).bit_length() + acc_bits - 1 > 62
        assert exact or tight or requant.shift == MAX_SHIFT


def test_chosen_requant_keeps_output_limits():
    requant = choose_requant(0.5, U8, lo=10)
    assert (requant.zero_point, requant.lo, requant.hi) == (10, 10, 255)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.inf, np.nan])
def test_impossible_factors_are_refused(factor):
    with pytest.raises(ValueError, match="positive and finite"):
        choose_requant([1.0, factor], U8)


def test_too_large_a_factor_is_refused():
    with pytest.raises(ValueError, match="too large for 16 bits"):
        choose_requant(1e6, U8)


ADDITIONS = {
    "sum": AddRequant((3, 40000), shift=17, zero_point=7, lo=0, hi=255),
    "difference": AddRequant((65535, -65535), shift=16, zero_point=0, lo=-128, hi=127),
    "relu": AddRequant((-32768, 1), shift=15, zero_point=30, lo=30, hi=255),
    "one operand without effect": AddRequant((0, 1), shift=1, zero_point=0, lo=-(2**15), hi=2**15),
    "widest": AddRequant(
        (2**24 - 1, -(2**24 - 1)), shift=46, zero_point=3, lo=0, hi=255, mult_bits=24
    ),
}


@pytest.mark.parametrize("requant", ADDITIONS.values(), ids=ADDITIONS)
def test_addition_is_floor_of_the_exact_sum_plus_half(requant, rng):
    extremes = [-(2**36), -65535, -255, -1, 0, 1, 255, 65535, 2**36 - 1]
    numbers = np.array([*extremes, *rng.integers(-255, 256, 12)])
    a, b = (x.reshape(-1) for x in np.meshgrid(numbers, numbers))
    found = requant.apply(a, b)
    for x, y, code in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        exact = Fraction(x * requant.mult[0] + y * requant.mult[1], 2**requant.shift)
        rounded = (exact + Fraction(1, 2)).__floor__() + requant.zero_point
        assert code == min(max(rounded, requant.lo), requant.hi)


def test_addition_of_halves_rounds_up():
    requant = AddRequant((1, 1), shift=1, zero_point=0, lo=-100, hi=100)
    assert requant.apply([-2, -1, 0, 1], [-1, 0, 1, 2]).tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize("mult_bits", [8, 16, 24])
def test_chosen_addition_is_precise_and_within_its_limits(mult_bits, rng):
    for _ in range(200):
        factors = 2.0 ** rng.uniform(-20, 6, 2) * rng.choice([-1, 1], 2)
        bits = int(rng.integers(3, 40))
        requant = choose_add_requant(tuple(factors), U8, mult_bits=mult_bits, operand_bits=bits)
        magnitude = sum(map(abs, requant.mult))
        assert magnitude << (bits - 1) < 2**62
        assert max(map(abs, requant.mult)) < 2**mult_bits
        for mult, factor in zip(requant.mult, factors, strict=True):
            assert abs(Fraction(mult, 2**requant.shift) - Fraction(factor)) <= Fraction(
                1, 2 ** (requant.shift + 1)
            )
        doubled = np.floor(np.abs(factors) * 2.0 ** (requant.shift + 1) + 0.5)
        exact = (doubled == 2 * np.abs(requant.mult)).all()
        tight = doubled.max() >= 2**mult_bits or int(doubled.sum()) << (bits - 1) >= 2**62
        assert exact or tight or requant.shift == MAX_SHIFT


@pytest.mark.parametrize("mult_bits", [1, 4, 16])
@pytest.mark.parametrize("exponent", [-20, -3, -1])
def test_powers_of_two_have_mult_one(exponent, mult_bits):
    requant = choose_requant([2.0**exponent] * 3, U8, mult_bits=mult_bits)
    assert (requant.mult, requant.shift) == ((1, 1, 1), -exponent)
    addition = choose_add_requant((2.0**exponent, -(2.0**-1)), U8)
    assert np.gcd(*addition.mult) == 1 or addition.shift == 1


def test_binary_codes_are_the_signs():
    qtype = QType(1, signed=True, scale=0.5, narrow=True)
    codes = qtype.quantize([-3.0, -0.1, 0.0, 2.0])
    assert codes.tolist() == [-1, -1, 1, 1]
    assert (qtype.lo, qtype.hi) == (-1, 1)
    assert qtype.dequantize(codes).tolist() == [-0.5, -0.5, 0.5, 0.5]


@pytest.mark.parametrize("scale", [1.0, 1e-9, 3e5, 0.1])
def test_addition_of_equal_formats_is_exact(scale, rng):
    requant = choose_add_requant((scale / scale, -scale / scale), QType(8, True, scale))
    a, b = rng.integers(-60, 60, (2, 100))
    assert requant.mult[0] == -requant.mult[1] == 1 << requant.shift
    np.testing.assert_array_equal(requant.apply(a, b), a - b)


def test_an_operand_of_equal_scale_gets_an_equal_multiplier():
    first, second = choose_add_requant((0.3, 0.3), U8).mult
    assert first == second


@pytest.mark.parametrize(
    ("factors", "message"),
    [((np.nan, 1.0), "must be finite"), ((np.inf, 1.0), "must be finite"),
     ((1.0, -1e6), "1000000.0 is too large for 16 bits")],
    ids=["nan", "infinite", "large"],
)  # fmt: skip
def test_impossible_additions_are_refused(factors, message):
    with pytest.raises(ValueError, match=message):
        choose_add_requant(factors, U8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shift": 0}, "add shift must be in 1..46, not 0"),
        ({"mult": (1,)}, "add has two mults, not 1"),
        ({"mult": (1, -65536)}, "add mult must be in -65535..65535, not -65536"),
        ({"lo": 3, "hi": 2}, "add range 3..2 is empty"),
    ],
    ids=["shift", "count", "mult", "range"],
)
def test_wrong_additions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        AddRequant(**{"mult": (1, 1), "shift": 1, "zero_point": 0, "lo": 0, "hi": 1, **arguments})


def test_addition_refuses_wide_sums():
    requant = AddRequant((2**15, 2**15), shift=1, zero_point=0, lo=0, hi=1)
    with pytest.raises(OverflowError, match=re.escape("2**62")):
        requant.apply([2**46], [2**46])


def test_folded_zero_point_lets_arrays_multiply_raw_codes(rng):
    weights, bias = rng.integers(-127, 128, (4, 30)), rng.integers(-1000, 1000, 4)
    codes = rng.integers(0, 256, 30)
    expected = weights @ (codes - 77) + bias
    np.testing.assert_array_equal(weights @ codes + fold_zero_point(bias, weights, 77), expected)


def test_accumulator_range_is_reached_and_never_exceeded(rng):
    weights, bias = rng.integers(-127, 128, (3, 20)), rng.integers(-50, 50, 3)
    lo, hi = accumulator_range(weights, bias, 0, 255)
    highest = (np.where(weights > 0, 255, 0) * weights).sum(axis=1) + bias
    lowest = (np.where(weights < 0, 255, 0) * weights).sum(axis=1) + bias
    assert (lo, hi) == (lowest.min(), highest.max())


def test_exp_table_is_rounded_and_falls():
    table = exp_table(0.05)
    assert table[0] == 65535
    assert table[20] == 24109
    assert (np.diff(table) <= 0).all()


def test_softmax_is_close_to_the_real_one_and_sums_to_about_one(rng):
    scale = 0.07
    codes = rng.integers(0, 256, (50, 10))
    found = softmax_codes(codes, exp_table(scale))
    e = np.exp(scale * codes)
    real = e / e.sum(axis=1, keepdims=True)
    assert np.abs(SOFTMAX_QTYPE.dequantize(found) - real).max() <= 1.5 / 256
    assert found.max() <= 255


def test_softmax_of_equal_codes_divides_evenly_and_saturates_alone():
    table = exp_table(1.0)
    assert softmax_codes([[9, 9, 9, 9]], table).tolist() == [[64] * 4]
    assert softmax_codes([[9]], table).tolist() == [[255]]
    assert softmax_codes([[3, 3, 3]], table).tolist() == [[85] * 3]


def test_hidden_codes_have_no_weight_unless_there_are_no_others():
    codes = [[0, 0, 0], [1, 0, 0], [200, 0, 200]]
    found = softmax_codes(codes, exp_table(1e-3), hidden=0)
    assert found.tolist() == [[85] * 3, [255, 0, 0], [128, 0, 128]]


def test_argmax_takes_the_first_of_several():
    assert argmax_codes([[1, 5, 5], [7, 7, 7]]).tolist() == [[1], [0]]


def test_finer_probabilities_are_rounded_once(rng):
    codes, table = rng.integers(0, 256, (50, 200)), exp_table(0.01)
    e = table[codes.max(axis=1, keepdims=True) - codes]
    for bits, places in [(8, 12), (12, 13), (16, 16)]:
        qtype = QType(bits, False, 2.0**-places)
        exact = [[Fraction(int(v), int(row.sum())) for v in row] for row in e]
        expected = [
            [min(qtype.hi, math.floor(p * 2**places + Fraction(1, 2))) for p in row]
            for row in exact
        ]
        assert softmax_codes(codes, table, qtype=qtype).tolist() == expected


@pytest.mark.parametrize(
    "qtype",
    [
        QType(8, False, 2.0**-7), QType(8, False, 2.0**-17), QType(8, True, 2.0**-8),
        QType(8, False, 0.003), QType(12, False, 2.0**-10), QType(8, False, 2.0**-8, 1),
    ],
    ids=str,
)  # fmt: skip
def test_formats_that_a_softmax_does_not_have(qtype):
    with pytest.raises(ValueError, match="a softmax has no results of the format"):
        softmax_codes([[1, 2]], exp_table(0.1), qtype=qtype)
