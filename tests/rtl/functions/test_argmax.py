import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import argmax_codes, argmin_codes


def pixels(rng, channels, bits, signed):
    """All equal, every code the only or a double extremum, then noise with many ties."""
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    single = np.where(np.eye(channels, dtype=bool), hi, lo)
    double = np.where(np.arange(channels) >= np.arange(channels)[:, None], lo + 1, lo)
    equal = np.array([[lo] * channels, [hi] * channels])
    noise = rng.integers(lo, hi + 1, (8, channels))
    ties = noise.clip(-1, 1)
    return np.concatenate([equal, single, hi + lo - single, double, hi + lo - double, noise, ties])


@pytest.mark.parametrize(
    ("bits", "signed", "channels", "greatest"),
    covering([(2, False), (8, True), (8, False), (16, True)], [16, 1, 2, 7], [True, False]),
)
def test_lowest_index_of_the_extremum(bits, signed, channels, greatest, stall, drive, rng):
    codes = pixels(rng, channels, bits, signed)
    items = [
        {"data": [code], "last": n % (3 * channels) == 3 * channels - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    part = parts.Argmax(channels=channels, bits=bits, signed=signed, greatest=greatest)
    run = drive(part.build(), items, len(codes), stall=stall)
    expected = argmax_codes(codes) if greatest else argmin_codes(codes)
    assert [item.data[0] for item in run.items] == expected[:, 0].tolist()
    assert [item.last for item in run.items] == [n % 3 == 2 for n in range(len(codes))]
    assert (np.diff(run.in_cycles) == 1).all()
    final = run.in_cycles[channels - 1 :: channels]
    assert (run.out_cycles - final == part.latency).all()
