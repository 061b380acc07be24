import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window

WINDOWS = {
    "same_3x3": Window(5, 6, 1, (3, 3), padding=((1, 1), (1, 1))),
    "uneven_padding_twice": Window(4, 5, 1, (3, 2), padding=((0, 2), (1, 0)), passes=2),
    "uncovered_tail": Window(7, 8, 1, (2, 2), (3, 3)),
    "stride_per_axis": Window(6, 7, 1, (3, 2), (2, 3), padding=((2, 0), (0, 1)), passes=3),
    "whole_image": Window(3, 4, 1, (3, 4), passes=2),
    "one_row": Window(3, 6, 1, (1, 3), (1, 2)),
    "one_column": Window(6, 2, 1, (3, 1), (2, 1)),
    "two_columns": Window(5, 2, 1, (4, 2)),
    "image_of_one_column": Window(5, 1, 1, (2, 2), padding=((0, 0), (1, 1))),
    "point": Window(3, 3, 1, passes=2),
    "padding_ends_with_the_window": Window(3, 3, 1, (2, 3), padding=((1, 0), (2, 0))),
}


def window_words(image, window, pad_code):
    """All codes of every window of a frame [row, column, lane], once per pass."""
    padded = np.pad(image, (*window.padding, (0, 0)), constant_values=pad_code)
    rows, columns = window.kernel
    return [
        padded[y : y + rows, x : x + columns].reshape(-1).tolist()
        for y in range(0, window.out_height * window.stride[0], window.stride[0])
        for x in range(0, window.out_width * window.stride[1], window.stride[1])
        for _ in range(window.passes)
    ]


def check(drive, ram, rng, window, *, bits=8, signed=False, lanes=1, pad_code=7, frames=3,
          **options):  # fmt: skip
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    images = rng.integers(lo, hi + 1, (frames, window.height, window.width, lanes))
    images[0, 0, 0], images[-1, -1, -1] = lo, hi
    buffer = parts.ParallelLineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code, ram=ram
    ).build()
    items = [
        {"data": beat, "last": n % window.beats == window.beats - 1}
        for n, beat in enumerate(images.reshape(-1, lanes).tolist())
    ]
    expected = [word for image in images for word in window_words(image, window, pad_code)]
    run = drive(buffer, items, len(expected), **options)
    assert [list(item.data) for item in run.items] == expected
    assert all(item.last for item in run.items)
    frame = len(expected) // frames
    position = np.arange(len(expected)) % frame
    assert [item.end for item in run.items] == (position == frame - 1).tolist()
    return run


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_gives_every_window_at_once(window, stall, drive, ram, rng):
    check(drive, ram, rng, window, stall=stall)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize(
    ("bits", "signed", "pad_code"), [(2, False, 3), (4, True, -8), (8, True, -1), (16, False, 9)]
)
def test_formats(bits, signed, pad_code, lanes, stall, drive, ram, rng):
    check(drive, ram, rng, WINDOWS["uneven_padding_twice"], bits=bits, signed=signed, lanes=lanes,
          pad_code=pad_code, stall=stall)  # fmt: skip


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("same_3x3", "verilator"),
        pytest.param("stride_per_axis", "cocotb", marks=pytest.mark.nightly),
    ],
)
def test_verilog(name, engine, drive, ram, rng):
    check(drive, ram, rng, WINDOWS[name], lanes=2, stall=0.5, engine=engine)


@pytest.mark.parametrize("name", ["same_3x3", "whole_image", "one_row", "two_columns"])
def test_latency_counts_from_the_beat_that_completes_a_window(name, drive, ram, rng):
    window = WINDOWS[name]
    run = check(drive, ram, rng, window, frames=1)
    (top, _), (left, _) = window.padding
    completing = (window.kernel[0] - top - 1) * window.width + window.kernel[1] - left - 1
    assert run.out_cycles[0] - run.in_cycles[completing] == parts.ParallelLineBuffer.latency


def test_takes_a_pixel_and_gives_a_window_per_cycle(drive, ram, rng):
    run = check(drive, ram, rng, Window(4, 6, 1, (2, 2)))
    assert (np.diff(run.in_cycles) == 1).all()
    assert np.diff(run.out_cycles).min() == 1
