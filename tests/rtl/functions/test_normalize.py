import math

import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.normalization import OFFSET_BITS, NormalizeRequant
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.parts.functions.normalize import SPACINGS


def normalized(codes, requant, zero_point, mult, offset):
    """The codes of one pixel, in Python's integers."""
    differences = [code - zero_point for code in codes]
    total = sum(differences) if requant.centered else 0
    count = len(codes)
    number = count * sum(d * d for d in differences) - total**2 + requant.epsilon
    number = max(number, 1)
    k = (number.bit_length() - 1) // 2
    root = math.isqrt(number << 2 * (16 - k) if k < 16 else number >> 2 * (k - 16))
    inverse = (2**32 - 1) // root
    results = []
    for channel, d in enumerate(differences):
        normal = ((count * d - total) * inverse) >> (16 - requant.fraction + k)
        factor, added = (values[channel % len(values)] for values in (mult, offset))
        code = ((normal * factor) >> (requant.shift - 10)) + added
        code = ((code + 512) >> 10) + requant.zero_point
        results.append(min(max(code, requant.lo), requant.hi))
    return results


def extremes(rng, channels, bits, signed):
    """All equal, one far above, one step apart, halves at both ends, then noise."""
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    codes = rng.integers(lo, hi + 1, (8, channels))
    codes[:4] = np.array([lo, hi, lo, hi])[:, None]
    codes[2, -1], codes[3, 0] = hi, hi - 1
    codes[4, : channels // 2], codes[4, channels // 2 :] = lo, hi
    codes[5] = rng.integers(lo, lo + 3, channels)
    return codes


def check(
    drive, ram, rng, *, channels, spacing, bits=8, signed=False, out=(8, True), centered=True,
    zero_point=0, epsilon=5, fraction=10, varies=(True, True), pixels=extremes, **options
):  # fmt: skip
    codes = pixels(rng, channels, bits, signed)
    lo, hi = (-(1 << out[0] - 1), (1 << out[0] - 1) - 1) if out[1] else (0, (1 << out[0]) - 1)
    requant = NormalizeRequant(
        channels=channels, centered=centered, epsilon=epsilon, shift=out[0] + 13,
        fraction=fraction, zero_point=int(rng.integers(lo, hi + 1)), lo=lo, hi=hi - 1,
    )  # fmt: skip
    scales, offsets = (channels if each else 1 for each in varies)
    mult = rng.integers(-65535, 65536, scales)
    mult[0] = -65535
    offset = rng.integers(-1 << 15, 1 << 15, offsets)
    half = 512 + (requant.zero_point << OFFSET_BITS)
    part = parts.Normalize(
        channels=channels, bits=bits, signed=signed, out_bits=out[0], out_signed=out[1],
        centered=centered, epsilon_bits=epsilon.bit_length(), fraction=fraction,
        offset_bits=signed_bits(int(offset.min()) + half, int(offset.max()) + half),
        scales=scales, offsets=offsets, spacing=spacing, ram=ram,
    )  # fmt: skip
    items = [
        {"data": [code], "last": n % (2 * channels) == 2 * channels - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    contents = {"mult": mult.tolist(), "offset": offset.tolist(), "zero_point": zero_point}
    run = drive(part.build(requant=requant, **contents), items, codes.size, **options)
    expected = [
        normalized(pixel, requant, zero_point, contents["mult"], contents["offset"])
        for pixel in codes.tolist()
    ]
    assert [item.data[0] for item in run.items] == np.ravel(expected).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    model = requant.apply(codes - zero_point, mult, offset)
    assert model.tolist() == expected
    return part, run


FORMATS = [(4, False, 0), (8, True, 0), (8, False, 100), (8, True, -128), (12, True, 77)]


@pytest.mark.parametrize(
    ("bits", "signed", "zero_point", "centered", "spacing"),
    covering(FORMATS, [True, False], SPACINGS),
)
def test_formats(bits, signed, zero_point, centered, spacing, drive, ram, rng):
    check(
        drive, ram, rng, channels=4, spacing=spacing, bits=bits, signed=signed,
        zero_point=zero_point, centered=centered, stall=0.4,
    )  # fmt: skip


@pytest.mark.parametrize(("channels", "spacing"), covering([1, 2, 3, 16, 70], SPACINGS))
def test_channels(channels, spacing, stall, drive, ram, rng):
    check(drive, ram, rng, channels=channels, spacing=spacing, stall=stall)


@pytest.mark.parametrize(
    ("out_bits", "out_signed", "fraction", "epsilon"),
    covering([(8, False), (4, True), (16, True)], [0, 7, 16], [0, 1, 1 << 20, 1 << 40]),
)
def test_results(out_bits, out_signed, fraction, epsilon, drive, ram, rng):
    check(
        drive, ram, rng, channels=6, spacing=2, out=(out_bits, out_signed),
        fraction=fraction, epsilon=epsilon, stall=0.3,
    )  # fmt: skip


@pytest.mark.parametrize("varies", [(False, False), (False, True), (True, False)])
def test_one_constant_for_all_channels(varies, drive, ram, rng):
    check(drive, ram, rng, channels=5, spacing=1, varies=varies)


def noise(rng, channels, bits, signed):
    """Many pixels, some of few codes that differ much from those of the next."""
    codes = rng.integers(0, 1 << bits, (30, channels))
    codes[::3] //= 8
    return codes - (1 << bits - 1) if signed else codes


@pytest.mark.verilator
@pytest.mark.parametrize(("channels", "spacing"), covering([1, 3, 40, 90], SPACINGS))
def test_many_pixels_under_stalls(channels, spacing, drive, ram, rng):
    options = {"channels": channels, "spacing": spacing, "engine": "verilator", "pixels": noise}
    for stall in (0.1, 0.7):
        check(drive, ram, rng, signed=True, stall=stall, **options)


@pytest.mark.parametrize(("channels", "spacing"), covering([1, 2, 10, 70], SPACINGS))
def test_cycles(channels, spacing, drive, ram, rng):
    part, run = check(drive, ram, rng, channels=channels, spacing=spacing, pixels=noise)
    assert run.out_cycles[0] - run.in_cycles[channels - 1] == part.latency
    assert (np.diff(run.out_cycles[::channels])[3:] == part.pixel_cycles).all()
