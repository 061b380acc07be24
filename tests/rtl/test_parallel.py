# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest

from nnef_hw.rtl.parallel import ParallelLineBuffer
from nnef_hw.window import Window

WINDOWS = {
    "same_3x3_twice": Window(5, 6, 1, (3, 3), padding=((1, 1), (1, 1)), passes=2),
    "no_overlap_tail": Window(7, 7, 1, (2, 2), (2, 2)),
    "whole_image": Window(3, 3, 1, (3, 3), passes=2),
    "rectangle_strides": Window(8, 8, 1, (2, 3), (3, 2), padding=((0, 1), (1, 0))),
    "stride_beyond_kernel": Window(6, 6, 1, (1, 1), (4, 4)),
    "one_row": Window(1, 9, 1, (1, 3), padding=((0, 0), (2, 1)), passes=3),
    "two_columns": Window(6, 2, 1, (3, 1), (2, 1)),
    "same_5x5": Window(5, 5, 1, (5, 5), padding=((2, 2), (2, 2)), passes=3),
}


def window_words(image, window, pad_code):
    padded = np.pad(image, (*window.padding, (0, 0)), constant_values=pad_code)
    height, width = window.kernel
    words = []
    for row in range(0, window.out_height * window.stride[0], window.stride[0]):
        for column in range(0, window.out_width * window.stride[1], window.stride[1]):
            taps = padded[row : row + height, column : column + width]
            words += [taps.reshape(-1).tolist()] * window.passes
    return words


def check(drive, ram, rng, window, *, bits=8, signed=False, lanes=1, pad_code=7, frames=3,
          **options):  # fmt: skip
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    images = rng.integers(lo, hi + 1, (frames, window.height, window.width, lanes))
    images[0, 0, 0], images[-1, -1, -1] = lo, hi
    buffer = ParallelLineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code, ram=ram
    )
    beats = images.reshape(-1, lanes).tolist()
    items = [
        {"data": beat, "last": n % window.beats == window.beats - 1} for n, beat in enumerate(beats)
    ]
    expected = [word for image in images for word in window_words(image, window, pad_code)]
    run = drive(buffer, items, len(expected), **options)
    codes = lanes * window.taps
    assert [[item.data[n] for n in range(codes)] for item in run.items] == expected
    assert all(item.last for item in run.items)
    frame = len(expected) // frames
    assert [item.end for item in run.items] == [
        n % frame == frame - 1 for n in range(len(expected))
    ]
    return run


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_gives_every_window_whole(window, stall, drive, ram, rng):
    check(drive, ram, rng, window, stall=stall)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize(
    ("bits", "signed", "pad_code"), [(2, False, 3), (4, True, -8), (8, True, -1), (16, False, 9)]
)
def test_formats(bits, signed, pad_code, lanes, stall, drive, ram, rng):
    window = Window(3, 3, 1, (2, 2), padding=((1, 0), (0, 1)), passes=2)
    check(drive, ram, rng, window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code,
          stall=stall)  # fmt: skip


@pytest.mark.verilator
def test_verilog(drive, ram, rng):
    check(drive, ram, rng, WINDOWS["same_3x3_twice"], lanes=2, stall=0.5, engine="verilator")


def test_latency_counts_from_the_beat_that_completes_a_window(drive, ram, rng):
    window = WINDOWS["whole_image"]
    run = check(drive, ram, rng, window, frames=1)
    assert run.out_cycles[0] - run.in_cycles[window.beats - 1] == ParallelLineBuffer.latency


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (Window(3, 3, 2, (2, 2)), "needs all channels of a pixel in one beat"),
        (Window(5, 5, 1, (2, 2), dilation=(2, 1)), "has no dilation, not (2, 1)"),
        (Window(5, 1, 1, (3, 1)), "needs two columns and a first window with a pixel"),
        (
            Window(2, 2, 1, (2, 2), padding=((2, 0), (0, 0))),
            "needs two columns and a first window with a pixel",
        ),
    ],
    ids=["blocks", "dilation", "one_column", "padding_window"],
)
def test_refuses_what_it_cannot_do(window, message, ram):
    with pytest.raises(ValueError, match=re.escape(message)):
        ParallelLineBuffer(window=window, bits=8, signed=False, lanes=1, pad_code=0, ram=ram)
