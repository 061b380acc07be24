import numpy as np
import pytest
from sweeps import few

from nnef_hw import parts

PADDINGS = {
    "all_sides": ((1, 2), (2, 1)),
    "top": ((2, 0), (0, 0)),
    "bottom": ((0, 2), (0, 0)),
    "left": ((0, 0), (3, 0)),
    "right": ((0, 0), (0, 1)),
    "none": ((0, 0), (0, 0)),
}


def check(drive, rng, padding, *, shape=(3, 4), channels=2, lanes=1, bits=8, signed=True,
          pad_code=-7, **options):  # fmt: skip
    lo = -(1 << bits - 1) if signed else 0
    images = rng.integers(lo, lo + (1 << bits), (3, *shape, channels, lanes))
    expected = np.pad(images, ((0, 0), *padding, (0, 0), (0, 0)), constant_values=pad_code)
    pad = parts.Pad(
        height=shape[0], width=shape[1], channels=channels, padding=padding, pad_code=pad_code,
        bits=bits, signed=signed, lanes=lanes,
    ).build()  # fmt: skip
    padded = beats(expected, lanes)
    run = drive(pad, beats(images, lanes), len(padded), **options)
    assert [{"data": list(item.data), "last": bool(item.last)} for item in run.items] == padded
    return run


def beats(images, lanes):
    size = images[0].size // lanes
    return [
        {"data": beat, "last": n % size == size - 1}
        for n, beat in enumerate(images.reshape(-1, lanes).tolist())
    ]


@pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS)
def test_pads(padding, stall, drive, rng):
    run = check(drive, rng, padding, stall=stall)
    assert (np.diff(run.out_cycles) == 1).all()


@pytest.mark.parametrize(
    ("bits", "signed", "pad_code", "lanes"),
    [(2, False, 3, 1), (8, False, 200, 2), (16, True, -9, 3)],
)
def test_formats(bits, signed, pad_code, lanes, stall, drive, rng):
    check(drive, rng, PADDINGS["all_sides"], bits=bits, signed=signed, pad_code=pad_code,
          lanes=lanes, stall=stall)  # fmt: skip


def test_one_pixel(stall, drive, rng):
    check(drive, rng, PADDINGS["all_sides"], shape=(1, 1), channels=1, stall=stall)


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_verilog(engine, drive, rng):
    check(drive, rng, PADDINGS["all_sides"], stall=0.5, engine=engine)
