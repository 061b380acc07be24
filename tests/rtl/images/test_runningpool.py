# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.rtl.base.memory import SinglePortMemory


def window(height, width, channels, kernel=None, stride=None):
    kernel = kernel or (height, width)
    return Window(
        height, width, channels, kernel=kernel, stride=stride or kernel, passes=channels,
        by_channel=True,
    )  # fmt: skip


WHOLE_IMAGES = {
    f"{channels}_channels_of_{height}x{width}": window(height, width, channels)
    for channels, height, width in [
        (1, 1, 1), (1, 3, 3), (2, 1, 1), (2, 5, 1), (3, 2, 2), (4, 1, 1), (4, 1, 3), (5, 2, 3),
        (17, 4, 1), (40, 1, 3),
    ]
}  # fmt: skip
TILED = {
    "pairs": window(4, 6, 3, (2, 2)),
    "last_row_and_column_dropped": window(7, 7, 4, (2, 2)),
    "threes": window(7, 8, 3, (3, 3)),
    "rows": window(6, 5, 4, (2, 1)),
    "rows_of_one_channel": window(6, 5, 1, (2, 1)),
    "columns": window(3, 9, 5, (1, 4)),
    "pixels": window(3, 4, 2, (1, 1)),
    "one_window_and_a_border": window(5, 5, 4, (3, 3)),
    "stride_of_a_single_window": window(3, 9, 3, (3, 2), (1, 2)),
    "wide_and_dropped": window(5, 11, 3, (2, 5)),
    "three_results": window(4, 6, 1, (2, 2)),
    "two_results": window(4, 4, 1, (2, 2)),
}
WINDOWS = {**WHOLE_IMAGES, **TILED}
FORMATS = {"u2": (2, False), "s8": (8, True), "u8": (8, False), "s16": (16, True)}
every_window = pytest.mark.parametrize("shape", WINDOWS.values(), ids=WINDOWS)
every_window_in_a_memory = pytest.mark.parametrize(
    ("name", "single_port"), covering(list(WINDOWS), [None, UP5K.single_port])
)


def frames(rng, shape, *, bits=8, signed=True, count=4):
    """Codes [frame, row, column, channel], extremes first, and their beats."""
    lo = -(1 << bits - 1) if signed else 0
    extents = (count, shape.height, shape.width, shape.channel_blocks)
    codes = rng.integers(lo, lo + (1 << bits), extents)
    codes[0], codes[1] = lo, lo + (1 << bits) - 1
    items = [
        {"data": [code], "last": n % shape.beats == shape.beats - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    return codes, items


def reduced(codes, shape, reduce):
    """Reduce every window: [frame, row, column, channel]."""
    rows, columns = shape.kernel
    kept = codes[:, : shape.out_height * rows, : shape.out_width * columns]
    tiles = kept.reshape(len(codes), shape.out_height, rows, shape.out_width, columns, -1)
    return reduce(tiles, axis=(2, 4))


def check_framing(run, shape):
    beats = shape.out_pixels * shape.channel_blocks
    ends = [n for n, item in enumerate(run.items) if item.last]
    assert ends == list(range(beats - 1, len(run.items), beats))


def check_sums(drive, ram, rng, shape, *, bits=8, signed=True, single_port=None, **options):
    codes, items = frames(rng, shape, bits=bits, signed=signed)
    acc_bits = bits + 1 + (shape.taps - 1).bit_length()
    part = parts.RunningSum(
        window=shape, bits=bits, signed=signed, acc_bits=acc_bits, ram=ram, single_port=single_port
    )
    sums = reduced(codes, shape, np.sum).reshape(-1)
    run = drive(part.build(), items, len(sums), **options)
    assert [item.acc[0] for item in run.items] == sums.tolist()
    check_framing(run, shape)
    return part, run


def check_maxima(drive, ram, rng, shape, *, bits=8, signed=True, single_port=None, **options):
    codes, items = frames(rng, shape, bits=bits, signed=signed)
    part = parts.RunningMax(
        window=shape, bits=bits, signed=signed, ram=ram, single_port=single_port
    )
    maxima = reduced(codes, shape, np.max).reshape(-1)
    run = drive(part.build(), items, len(maxima), **options)
    assert [item.data[0] for item in run.items] == maxima.tolist()
    check_framing(run, shape)
    return part, run


CHECKS = pytest.mark.parametrize("check", [check_sums, check_maxima], ids=["sum", "max"])


@every_window
def test_sums_every_window(shape, stall, drive, ram, rng):
    check_sums(drive, ram, rng, shape, stall=stall)


@CHECKS
@pytest.mark.parametrize(("bits", "signed"), FORMATS.values(), ids=FORMATS)
def test_formats(check, bits, signed, stall, drive, ram, rng):
    check(drive, ram, rng, TILED["pairs"], bits=bits, signed=signed, stall=stall)


@every_window_in_a_memory
def test_reduces_every_window(name, single_port, stall, drive, ram, rng):
    """It takes beats as fast as its memory lets it."""
    shape = WINDOWS[name]
    part, run = check_maxima(drive, ram, rng, shape, single_port=single_port, stall=stall)
    assert (np.diff(run.in_cycles) == part.spacing).all()
    rows, columns = shape.kernel
    beats = run.in_cycles.reshape(-1, shape.height, shape.width, shape.channel_blocks)
    final = beats[:, rows - 1 :: rows, columns - 1 :: columns][:, : shape.out_height]
    final = final[:, :, : shape.out_width].reshape(-1)
    assert (run.out_cycles - final == part.latency).all()


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("check", "shape", "single_port", "engine"),
    [
        (check_sums, WHOLE_IMAGES["2_channels_of_5x1"], None, "verilator"),
        (check_sums, TILED["threes"], None, "verilator"),
        (check_maxima, TILED["pairs"], UP5K.single_port, "verilator"),
        (check_sums, TILED["threes"], UP5K.single_port, "verilator"),
        pytest.param(check_sums, TILED["threes"], None, "cocotb", marks=pytest.mark.nightly),
    ],
    ids=["registers", "block", "maxima_in_one_port", "sums_in_one_port", "cocotb"],
)
def test_verilog(check, shape, single_port, engine, drive, ram, rng):
    check(drive, ram, rng, shape, single_port=single_port, stall=0.5, engine=engine)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (window(4, 4, 4, (2, 2), (1, 1)), "running pooling needs windows that tile their image"),
        (window(4, 12, 2, (2, 2)), "running pooling of 2 channels would read a result before"),
    ],
)
def test_refuses_what_it_cannot_reduce(shape, message, ram):
    with pytest.raises(ValueError, match=re.escape(message)):
        parts.RunningMax(window=shape, bits=8, signed=True, ram=ram)


def test_refuses_more_than_a_single_port_memory_has():
    message = "SinglePortMemory has at most 16384 words of 16 bits, not 16385 of 8"
    with pytest.raises(ValueError, match=message):
        SinglePortMemory(UP5K.single_port, depth=16385, width=8)
