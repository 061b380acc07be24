"""Integers of normalizations: the inverse root, the choice of factors, and what is lost."""

import math
import re

import numpy as np
import pytest

from nnef_hw.arithmetic.normalization import (
    NormalizeRequant,
    choose_normalize,
    inverse_root,
)
from nnef_hw.arithmetic.numerics import QType


def test_inverse_roots_are_near_and_never_rise(rng):
    spread = (2.0 ** rng.uniform(0, 62, 20_000)).astype(np.int64)
    numbers = np.unique(np.concatenate([np.arange(1, 1 << 12), spread]))
    numbers = numbers[numbers < 1 << 62]
    inverse, k = inverse_root(numbers)
    assert inverse.min() >= 1 << 15
    assert inverse.max() < 1 << 16
    found = inverse * 2.0 ** -(16 + k)
    error = found * np.sqrt(numbers) - 1
    assert error.max() < 2.0**-16
    assert error.min() > -(2.0**-15)
    assert (np.diff(found) <= 0).all()


def test_inverse_roots_of_integers_are_exact_at_powers_of_four():
    for place in range(31):
        for number in (4**place - 1, 4**place, 4**place + 1):
            if number:
                inverse, k = inverse_root(number)
                expected = (number.bit_length() - 1) // 2
                scaled = number << 2 * (16 - k) if k < 16 else number >> 2 * (int(k) - 16)
                assert (int(inverse), int(k)) == ((2**32 - 1) // math.isqrt(scaled), expected)


def real(x, gamma, beta, epsilon, centered):
    beside = x - x.mean(axis=1, keepdims=True) * centered
    return beside / np.sqrt((beside**2).mean(axis=1, keepdims=True) + epsilon) * gamma + beta


def decibels(signal, noise):
    return 10 * math.log10((signal**2).sum() / (noise**2).sum())


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize(("bits", "least"), [(8, 36.0), (16, 74.0)])
@pytest.mark.parametrize("channels", [8, 64, 768])
def test_only_the_rounding_of_the_result_is_lost(channels, bits, least, centered, rng):
    """Beside codes rounded from real numbers, what is lost is far less than a dB."""
    gamma = rng.uniform(0.2, 1.5, channels) * rng.choice([-1, 1], channels)
    beta = rng.normal(size=channels)
    source = QType(bits, signed=True, scale=3.0 / (1 << bits - 2), zero_point=5)
    codes = source.quantize(rng.normal(0.3, 1.0, (200, channels)))
    expected = real(source.dequantize(codes), gamma, beta, 1e-5, centered)
    target = QType(bits, signed=True, scale=float(np.abs(expected).max()) / ((1 << bits - 1) - 1))
    found = choose_normalize(
        source, target, channels=channels, centered=centered, epsilon=1e-5, gamma=gamma, beta=beta
    )
    results = found.requant.apply(codes - 5, found.mult, found.offset)
    rounded = target.dequantize(target.quantize(expected))
    lost = decibels(expected, target.dequantize(results) - expected)
    best = decibels(expected, rounded - expected)
    assert lost >= least
    assert lost > best - (0.1 if bits == 8 else 3.0)


def test_equal_codes_give_the_offset():
    source = target = QType(8, signed=True, scale=0.1)
    found = choose_normalize(
        source, target, channels=3, centered=True, epsilon=0.0, gamma=2.0, beta=[0.1, -0.2, 0.7]
    )
    for code in (-128, 0, 127):
        results = found.requant.apply([[code] * 3], found.mult, found.offset)
        assert results.tolist() == [[1, -2, 7]]


def test_epsilon_is_in_squared_steps():
    """Of two codes a step apart, an epsilon of the variance makes the deviation a root of two."""
    source, target = QType(8, True, 0.5), QType(16, True, 2.0**-12)
    found = choose_normalize(
        source, target, channels=2, centered=True, epsilon=0.0625, gamma=1.0, beta=0.0
    )
    assert found.requant.epsilon == 1
    results = found.requant.apply([[3, 4]], found.mult, found.offset)
    assert np.abs(results * 2.0**-12 - [-(0.5**0.5), 0.5**0.5]).max() < 2.0**-12


def test_zero_gamma_gives_the_offset_alone(rng):
    qtype = QType(8, True, 0.1)
    found = choose_normalize(
        qtype, qtype, channels=4, centered=False, epsilon=1e-3, gamma=0.0, beta=0.5
    )
    codes = rng.integers(-128, 128, (5, 4))
    assert (found.requant.apply(codes, found.mult, found.offset) == 5).all()


REFUSED = {
    "normalize factors and offsets must be finite": {"gamma": np.inf},
    "normalize factor 100000000.0 is too large for 16 bits": {"gamma": 1e7},
    "its sums of squares of 70000 codes of 16 bits, with an epsilon of 0, reach 2**62": {
        "channels": 70_000, "source": QType(16, True, 1.0),
    },
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    options = {
        "source": QType(8, True, 0.1), "target": QType(8, True, 0.1), "channels": 4,
        "centered": True, "epsilon": 0.0, "gamma": 1.0, "beta": 0.0, **REFUSED[message],
    }  # fmt: skip
    source, target = options.pop("source"), options.pop("target")
    with pytest.raises(ValueError, match=re.escape(message)):
        choose_normalize(source, target, **options)


def test_json_gives_the_same_again():
    requant = NormalizeRequant(
        channels=3, centered=False, epsilon=9, shift=20, fraction=7, zero_point=3, lo=-8, hi=7
    )
    assert NormalizeRequant.from_json(requant.to_json()) == requant


def test_parameters_are_checked():
    fields = {"channels": 2, "centered": True, "epsilon": 0, "zero_point": 0, "lo": 0, "hi": 1}
    for wrong, message in [
        ({"shift": 9}, "normalize shift must be in 10..46, not 9"),
        ({"fraction": 17}, "normalize fraction must be in 0..16, not 17"),
        ({"epsilon": -1}, "normalize epsilon must not be negative, not -1"),
        ({"lo": 2}, "normalize range 2..1 is empty"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            NormalizeRequant(**{"shift": 20, "fraction": 5, **fields, **wrong})


def normalized(codes, requant, mult, offset):
    """The codes of one pixel's differences, in Python's integers."""
    count, total = len(codes), sum(codes) if requant.centered else 0
    number = max(count * sum(d * d for d in codes) - total**2 + requant.epsilon, 1)
    k = (number.bit_length() - 1) // 2
    root = math.isqrt(number << 2 * (16 - k) if k < 16 else number >> 2 * (k - 16))
    inverse = (2**32 - 1) // root
    normals = [((count * d - total) * inverse) >> (16 - requant.fraction + k) for d in codes]
    sums = [
        ((normal * mult[n % len(mult)]) >> (requant.shift - 10)) + offset[n % len(offset)]
        for n, normal in enumerate(normals)
    ]
    return [min(max(((s + 512) >> 10) + requant.zero_point, requant.lo), requant.hi) for s in sums]


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize(("fraction", "epsilon"), [(0, 0), (7, 1), (10, 1 << 20), (16, 1 << 40)])
def test_is_what_integers_give(fraction, epsilon, centered, rng):
    requant = NormalizeRequant(
        channels=9, centered=centered, epsilon=epsilon, shift=21, fraction=fraction,
        zero_point=-3, lo=-128, hi=126,
    )  # fmt: skip
    pixels = rng.integers(-255, 256, (40, 9))
    pixels[:2] = np.array([[-255], [255]])
    mult, offset = rng.integers(-65535, 65536, 9), rng.integers(-1 << 15, 1 << 15, 1)
    expected = [normalized(x, requant, mult.tolist(), offset.tolist()) for x in pixels.tolist()]
    assert requant.apply(pixels, mult, offset).tolist() == expected
