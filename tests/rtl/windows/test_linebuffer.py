from dataclasses import replace

import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window

WINDOWS = {
    "same_3x3_twice": Window(5, 6, 2, (3, 3), padding=((1, 1), (1, 1)), passes=2),
    "pool_uncovered_tail": Window(7, 7, 3, (2, 2), (2, 2), passes=3, by_channel=True),
    "pool_overlapping_padded": Window(
        5, 5, 2, (3, 3), (2, 2), padding=((0, 1), (1, 0)), passes=2, by_channel=True
    ),
    "whole_image": Window(3, 3, 4, (3, 3), passes=2),
    "linear": Window(1, 1, 5, passes=3),
    "one_word": Window(1, 1, 1),
    "column": Window(9, 1, 2, (5, 1), (2, 1), padding=((2, 2), (0, 0))),
    "dilated_rectangle": Window(8, 8, 1, (2, 3), (3, 2), (2, 1), ((0, 1), (1, 0))),
    "dilated_columns": Window(3, 7, 2, (1, 3), dilation=(1, 3)),
    "wide_padding": Window(2, 3, 1, (3, 2), padding=((3, 0), (0, 4)), passes=2),
    "strided": Window(3, 3, 1, (2, 2), (2, 2), passes=3),
    "stride_beyond_kernel": Window(6, 6, 1, (1, 1), (4, 4)),
    "stride_skips_most": Window(7, 5, 2, (2, 1), (5, 3), passes=2),
    "point": Window(3, 4, 3, passes=4),
    "goes_on": Window(1, 1, 3, (4, 1), passes=2, history=3),
    "goes_on_dilated": Window(1, 1, 2, (3, 1), dilation=(4, 1), history=8),
    "goes_on_strided_by_channel": Window(
        4, 1, 2, (5, 1), (2, 1), passes=2, by_channel=True, history=3
    ),
    "goes_on_padded": Window(2, 5, 1, (3, 3), (2, 2), padding=((0, 0), (1, 1)), history=1),
    "goes_on_in_padding": Window(1, 3, 2, (3, 1), padding=((0, 0), (1, 1)), history=2),
    "goes_on_behind": Window(1, 2, 2, (3, 1), history=3, lag=1),
    "goes_on_far_behind": Window(2, 1, 2, (1, 1), (2, 1), history=9, lag=10),
}


@pytest.fixture(params=[False, True], ids=["plain", "registered"])
def ram(request, ram):
    return replace(ram, has_register=request.param)


def window_words(images, n, window, pad_code):
    """Words of every window of frame n [row, column, block, lane], as the docstring says."""
    image = images[n] if n < len(images) else images[0, :0]
    if window.goes_on:
        rows = images.reshape(-1, *images.shape[2:])
        rows = np.pad(rows, ((window.history, 0), *[(0, 0)] * 3), constant_values=pad_code)
        image = rows[n * window.height :][: window.history + window.height - window.lag]
    padded = np.pad(image, (*window.padding, (0, 0), (0, 0)), constant_values=pad_code)
    words = []
    for row in range(0, window.out_height * window.stride[0], window.stride[0]):
        for column in range(0, window.out_width * window.stride[1], window.stride[1]):
            rows, columns = window.reach
            if row + rows > len(padded):
                break  # of a frame that has not come yet
            taps = padded[
                row : row + rows : window.dilation[0],
                column : column + columns : window.dilation[1],
            ]
            for n in range(window.passes):
                blocks = taps[:, :, n : n + 1] if window.by_channel else taps
                words += blocks.reshape(-1, image.shape[3]).tolist()
    return words


def minimum_depth(window):
    return max(2, 1 << (window.min_depth - 1).bit_length())


def check(drive, ram, rng, window, *, bits=8, signed=False, lanes=1, pad_code=7, depth=None,
          frames=3, decides_early=False, **options):  # fmt: skip
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    shape = (frames, window.height, window.width, window.channel_blocks, lanes)
    images = rng.integers(lo, hi + 1, shape)
    images[0, 0, 0], images[-1, -1, -1] = lo, hi
    buffer = parts.LineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code,
        depth=depth or minimum_depth(window), ram=ram, decides_early=decides_early,
    ).build()  # fmt: skip
    beats = images.reshape(-1, lanes).tolist()
    items = [
        {"data": beat, "last": n % window.beats == window.beats - 1} for n, beat in enumerate(beats)
    ]
    # What lags behind in time is ahead of the frames.
    frames_begun = frames + -(-window.lag // window.height)
    expected = [
        word for n in range(frames_begun) for word in window_words(images, n, window, pad_code)
    ]
    run = drive(buffer, items, len(expected), **options)
    assert [[item.data[n] for n in range(lanes)] for item in run.items] == expected
    position = np.arange(len(expected))
    words, frame = window.pass_words, window.out_pixels * window.passes * window.pass_words
    assert [item.last for item in run.items] == (position % words == words - 1).tolist()
    assert [item.end for item in run.items] == (position % frame == frame - 1).tolist()
    return run


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("decides_early", [False, True], ids=["late", "early"])
def test_replays_every_window_with_the_least_memory(window, decides_early, stall, drive, ram, rng):
    check(drive, ram, rng, window, stall=stall, decides_early=decides_early)


@pytest.mark.parametrize(
    ("bits", "signed", "pad_code", "lanes"),
    covering([(2, False, 3), (4, True, -8), (8, True, -1), (16, False, 9)], [1, 3]),
)
def test_formats(bits, signed, pad_code, lanes, stall, drive, ram, rng):
    window = Window(3, 3, 2, (2, 2), padding=((1, 0), (0, 1)), passes=2)
    check(drive, ram, rng, window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code,
          stall=stall)  # fmt: skip


@pytest.mark.parametrize("name", ["strided", "wide_padding", "goes_on_in_padding"])
@pytest.mark.parametrize("decides_early", [False, True], ids=["late", "early"])
def test_a_deep_memory_spans_frames(name, decides_early, stall, drive, ram, rng):
    """Nothing follows the last frame: padding of another one waits for it."""
    check(drive, ram, rng, WINDOWS[name], depth=64, stall=stall, decides_early=decides_early)


@pytest.mark.parametrize("name", ["wide_padding", "goes_on_in_padding"])
@pytest.mark.parametrize("decides_early", [False, True], ids=["late", "early"])
def test_no_window_leaves_ahead_of_the_first_beat(name, decides_early, drive, ram):
    buffer = parts.LineBuffer(
        window=WINDOWS[name], bits=8, signed=False, lanes=1, pad_code=7, depth=64, ram=ram,
        decides_early=decides_early,
    ).build()  # fmt: skip
    assert not drive(buffer, [], 0).items


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("same_3x3_twice", "verilator"),
        pytest.param("pool_uncovered_tail", "cocotb", marks=pytest.mark.nightly),
    ],
)
def test_verilog(name, engine, drive, ram, rng):
    check(drive, ram, rng, WINDOWS[name], lanes=2, stall=0.5, engine=engine)


@pytest.mark.parametrize("name", ["same_3x3_twice", "whole_image", "linear", "column"])
def test_latency_counts_from_the_beat_that_completes_a_window(name, drive, ram, rng):
    window = WINDOWS[name]
    run = check(drive, ram, rng, window, frames=1, decides_early=True)
    (top, _), (left, _) = window.padding
    row = min(window.reach[0] - top, window.height) - 1
    column = min(window.reach[1] - left, window.width) - 1
    completing = (row * window.width + column + 1) * window.channel_blocks - 1
    assert run.out_cycles[0] - run.in_cycles[completing] == 2 + ram.has_register


def test_reads_a_word_per_cycle_when_memory_is_ample(drive, ram, rng):
    window = Window(4, 4, 1, (2, 2), passes=4)
    run = check(drive, ram, rng, window, depth=64)
    steady = run.out_cycles[window.pass_words * window.passes :]
    assert (np.diff(steady) == 1).all()
