import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts

SIZES = [(7, 3), (6, 3), (2, 2), (3, 3), (4, 5), (5, 2), (9, 8)]
FORMATS = {"u2": (2, False), "s8": (8, True), "u16": (16, False)}


def pixels(rng, channels, bits, signed, count=10):
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    codes = rng.integers(lo, hi + 1, (count, channels))
    codes[0], codes[1] = lo, hi
    return codes


def packed(codes, lanes):
    """Beats [pixel, block, lane]; the last block of a pixel is filled up with zeros."""
    filling = -codes.shape[1] % lanes
    return np.pad(codes, ((0, 0), (0, filling))).reshape(len(codes), -1, lanes)


def beats(blocks, frame=4):
    """Items of beats; ``last`` on the final one of every ``frame`` pixels."""
    per_pixel = blocks.shape[1]
    return [
        {"data": beat.tolist(), "last": pixel % frame == frame - 1 and n == per_pixel - 1}
        for pixel, row in enumerate(blocks)
        for n, beat in enumerate(row)
    ]


def as_dicts(items):
    return [{"data": list(item.data), "last": bool(item.last)} for item in items]


@pytest.mark.parametrize(
    ("channels", "lanes", "bits", "signed"), covering(list(SIZES), list(FORMATS.values()))
)
def test_pack(channels, lanes, bits, signed, stall, drive, rng):
    codes = pixels(rng, channels, bits, signed)
    wide = beats(packed(codes, lanes))
    pack = parts.Pack(channels=channels, lanes=lanes, bits=bits, signed=signed)
    run = drive(pack.build(), beats(codes[:, :, None]), len(wide), stall=stall)
    assert as_dicts(run.items) == wide
    assert (np.diff(run.in_cycles) == 1).all()
    position = np.arange(codes.size) % channels
    complete = (position % lanes == lanes - 1) | (position == channels - 1)
    assert (run.out_cycles - run.in_cycles[complete] == pack.latency).all()


@pytest.mark.parametrize(
    ("channels", "lanes", "in_lanes"), [(6, 4, 2), (8, 4, 2), (6, 6, 3), (4, 4, 4), (10, 4, 2)]
)
def test_pack_of_several_codes(channels, lanes, in_lanes, stall, drive, rng):
    codes = pixels(rng, channels, 8, signed=True)
    wide = beats(packed(codes, lanes))
    pack = parts.Pack(channels=channels, lanes=lanes, bits=8, signed=True, in_lanes=in_lanes)
    run = drive(pack.build(), beats(packed(codes, in_lanes)), len(wide), stall=stall)
    assert as_dicts(run.items) == wide


@pytest.mark.parametrize(("channels", "lanes", "in_lanes"), [(6, 4, 4), (6, 3, 2), (6, 3, 0)])
def test_pack_takes_whole_beats(channels, lanes, in_lanes):
    with pytest.raises(ValueError, match="must be multiples of in_lanes"):
        parts.Pack(channels=channels, lanes=lanes, bits=8, signed=True, in_lanes=in_lanes)
