"""The fixed-point transform: its error, its scaling, and every order of stages."""

import numpy as np
import pytest

from nnef_hw.arithmetic.audio.logarithm import integer_bits, log2
from nnef_hw.arithmetic.audio.spectrum import RealFft, wrap

SIZES = [1 << n for n in range(5, 12)]


@pytest.mark.parametrize("points", SIZES)
@pytest.mark.parametrize(("bits", "cosine_bits"), [(16, 15), (26, 16)])
def test_is_the_transform_divided_by_its_points(rng, points, bits, cosine_bits):
    fft = RealFft(points, bits, cosine_bits)
    limit = 1 << (bits - 2)
    samples = rng.integers(-limit, limit, (20, points))
    real, imag = fft.apply(samples)
    expected = np.fft.rfft(samples) / points * fft.gain
    error = np.abs(real + 1j * imag - expected)
    # four units of roundings, and cosines that are off by half of a step in each stage
    assert error.max() < 4 + 8 * 2.0**-cosine_bits * np.abs(expected).max()
    assert fft.gain == pytest.approx(1, abs=7e-4)


@pytest.mark.parametrize("points", SIZES)
def test_a_tone_is_in_its_bin(points):
    fft = RealFft(points, 26, 16)
    for k in (1, points // 4, points // 2 - 1):
        phase = 2 * np.pi * k * np.arange(points) / points
        real, imag = fft.apply(np.rint(np.cos(phase) * 2**20).astype(np.int64))
        power = real**2 + imag**2
        assert power.argmax() == k
        assert power[k] == pytest.approx((fft.gain * 2**19) ** 2, rel=2e-4)


def test_numbers_are_cut_to_their_bits():
    assert wrap(np.array([-32769, -32768, 32767, 32768]), 16).tolist() == [
        32767, -32768, 32767, -32768,
    ]  # fmt: skip
    # a component may grow by the root of 2: of full-scale pairs it wraps, as in the original
    fft = RealFft(32, 16)
    real, imag = fft.apply(np.tile([32767, -32767], 16))
    assert max(np.abs(real).max(), np.abs(imag).max()) <= 32768


@pytest.mark.parametrize("points", [16, 48, 4096])
def test_refuses_other_sizes(points):
    with pytest.raises(ValueError, match=f"not {points}"):
        RealFft(points)


def test_logarithms_are_near_and_never_fall(rng):
    values = np.unique((2.0 ** rng.uniform(0, 62, 50_000)).astype(np.int64).clip(1))
    assert integer_bits(values).tolist() == [int(value).bit_length() for value in values]
    found = log2(values) / (1 << 16)
    assert np.abs(found - np.log2(values)).max() < 3.5 / (1 << 16)
    assert (np.diff(log2(values)) >= 0).all()
    # the slope of TensorFlow Lite Micro, a 128th, leaves the steps of the table
    flat = log2(values, 16) / (1 << 16)
    assert 0.002 < np.abs(flat - np.log2(values)).max() < 0.004


def test_logarithms_of_powers_of_two_are_exact():
    values = 1 << np.arange(62)
    assert log2(values).tolist() == (np.arange(62) << 16).tolist()
    assert integer_bits([0, 1]).tolist() == [0, 1]
