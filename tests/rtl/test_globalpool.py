# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest

from nnef_hw.rtl.globalpool import GlobalMax, GlobalSum

SIZES = [(1, 1), (1, 9), (2, 1), (2, 5), (3, 4), (4, 1), (4, 3), (5, 6), (17, 4), (40, 3)]
FORMATS = {"u2": (2, False), "s8": (8, True), "u8": (8, False), "s16": (16, True)}
by_size = pytest.mark.parametrize(("channels", "pixels"), SIZES)


def frames(rng, channels, pixels, *, bits=8, signed=True, count=4):
    """Codes [frame, pixel, channel], extremes first, and their beats."""
    lo = -(1 << bits - 1) if signed else 0
    codes = rng.integers(lo, lo + (1 << bits), (count, pixels, channels))
    codes[0], codes[1] = lo, lo + (1 << bits) - 1
    size = channels * pixels
    items = [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    return codes, items


def check_framing(run, channels):
    ends = [n for n, item in enumerate(run.items) if item.last]
    assert ends == list(range(channels - 1, len(run.items), channels))


def check_sums(drive, ram, rng, channels, pixels, *, bits=8, signed=True, style="block",
               **options):  # fmt: skip
    codes, items = frames(rng, channels, pixels, bits=bits, signed=signed)
    acc_bits = bits + 1 + (pixels - 1).bit_length()
    pool = GlobalSum(channels=channels, pixels=pixels, bits=bits, signed=signed,
                     acc_bits=acc_bits, ram=ram, style=style)  # fmt: skip
    sums = codes.sum(axis=1).reshape(-1)
    run = drive(pool, items, len(sums), **options)
    assert [item.acc for item in run.items] == sums.tolist()
    check_framing(run, channels)
    return run


def check_maxima(drive, ram, rng, channels, pixels, *, bits=8, signed=True, **options):
    codes, items = frames(rng, channels, pixels, bits=bits, signed=signed)
    pool = GlobalMax(channels=channels, pixels=pixels, bits=bits, signed=signed, ram=ram)
    maxima = codes.max(axis=1).reshape(-1)
    run = drive(pool, items, len(maxima), **options)
    assert [item.data[0] for item in run.items] == maxima.tolist()
    check_framing(run, channels)
    return run


CHECKS = pytest.mark.parametrize("check", [check_sums, check_maxima], ids=["sum", "max"])


@CHECKS
@by_size
def test_reduces_every_frame(check, channels, pixels, stall, drive, ram, rng):
    check(drive, ram, rng, channels, pixels, stall=stall)


@CHECKS
@pytest.mark.parametrize(("bits", "signed"), FORMATS.values(), ids=FORMATS)
def test_formats(check, bits, signed, stall, drive, ram, rng):
    check(drive, ram, rng, 5, 3, bits=bits, signed=signed, stall=stall)


@CHECKS
@by_size
def test_takes_a_beat_per_cycle_over_frames(check, channels, pixels, drive, ram, rng):
    run = check(drive, ram, rng, channels, pixels)
    assert (np.diff(run.in_cycles) == 1).all()
    final = run.in_cycles.reshape(-1, pixels, channels)[:, -1].reshape(-1)
    assert (run.out_cycles - final == GlobalSum.latency).all()


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("channels", "style", "engine"),
    [(2, "block", "verilator"), (9, "block", "cocotb"), (5, "distributed", "verilator")],
)
def test_verilog(channels, style, engine, drive, ram, rng):
    check_sums(drive, ram, rng, channels, 7, style=style, stall=0.5, engine=engine)


@pytest.mark.verilator
def test_verilog_of_a_maximum(drive, ram, rng):
    check_maxima(drive, ram, rng, 9, 7, stall=0.5, engine="verilator")


@pytest.mark.parametrize(("channels", "pixels"), [(0, 4), (4, 0)])
def test_refuses_empty_frames(channels, pixels, ram):
    message = f"global pooling needs channels and pixels, not {channels} and {pixels}"
    with pytest.raises(ValueError, match=re.escape(message)):
        GlobalMax(channels=channels, pixels=pixels, bits=8, signed=True, ram=ram)
