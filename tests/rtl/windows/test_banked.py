from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from sweeps import covering

from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window

SAME = ((1, 1), (1, 1))
WINDOWS = {
    "same_3x3": Window(5, 6, 2, (3, 3), padding=SAME),
    "same_3x3_passes": Window(4, 5, 1, (3, 3), padding=SAME, passes=3),
    "depthwise": Window(5, 4, 3, (3, 3), padding=SAME, passes=3, by_channel=True),
    "depthwise_stride_2": Window(6, 7, 2, (3, 3), (2, 2), padding=((0, 1), (0, 1)), passes=2,
                                 by_channel=True),
    "pool": Window(6, 4, 3, (2, 2), (2, 2), passes=3, by_channel=True),
    "pool_uncovered_tail": Window(7, 7, 2, (2, 2), (2, 2), passes=2, by_channel=True),
    "pool_overlapping": Window(5, 5, 2, (3, 3), (2, 2), padding=SAME, passes=2, by_channel=True),
    "blocks_and_passes": Window(4, 4, 3, (2, 2), padding=((1, 0), (0, 1)), passes=2),
    "whole_image": Window(3, 3, 4, (3, 3)),
    "tall_stride_2": Window(7, 5, 1, (10, 4), (2, 2), padding=((4, 5), (1, 1)), passes=3),
    "column": Window(9, 1, 2, (5, 1), (2, 1), padding=((2, 2), (0, 0)), passes=2, by_channel=True),
    "row": Window(1, 9, 2, (1, 3), padding=((0, 0), (1, 1)), passes=2, by_channel=True),
    "dilated": Window(7, 8, 2, (3, 3), dilation=(2, 2), padding=((2, 2), (2, 2))),
    "dilated_by_five": Window(12, 1, 1, (3, 1), dilation=(5, 1), padding=((5, 5), (0, 0))),
    "wide_padding": Window(4, 5, 1, (3, 3), padding=((2, 2), (2, 2))),
    "point": Window(3, 4, 3, passes=2),
    "one_word": Window(1, 1, 1),
    "stride_beyond_kernel": Window(8, 8, 1, (1, 1), (4, 4)),
    "short_images": Window(1, 4, 2, (3, 3), padding=SAME),
}  # fmt: skip
every_window = pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)


@pytest.fixture(params=[False, True], ids=["plain", "registered"])
def ram(request, ram):
    return replace(ram, has_register=request.param)


def window_words(image, window, pad_code):
    """Words of every window of a frame [row, column, block, lane], as the docstring says."""
    padded = np.pad(image, (*window.padding, (0, 0), (0, 0)), constant_values=pad_code)
    rows, columns = window.reach
    words = []
    for row in range(0, window.out_height * window.stride[0], window.stride[0]):
        for column in range(0, window.out_width * window.stride[1], window.stride[1]):
            taps = padded[
                row : row + rows : window.dilation[0],
                column : column + columns : window.dilation[1],
            ]
            by_block = taps.reshape(window.taps, window.channel_blocks, -1).transpose(1, 0, 2)
            passes = 1 if window.by_channel else window.passes
            words += by_block.reshape(window.channel_blocks, -1).tolist() * passes
    return words


def enough_lines(window, spare):
    """Rows: the window's reach and some more, rounded up to a power of two."""
    return 1 << (window.reach[0] + spare - 1).bit_length()


def check(drive, ram, rng, window, *, bits=8, signed=False, lanes=1, pad_code=7, spare=0,
          frames=3, **options):  # fmt: skip
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    shape = (frames, window.height, window.width, window.channel_blocks, lanes)
    images = rng.integers(lo, hi + 1, shape)
    images[0, 0, 0], images[-1, -1, -1] = lo, hi
    part = parts.BankedLineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code,
        lines=enough_lines(window, spare), ram=ram, long_wires=ram.has_register,
    )  # fmt: skip
    beats = images.reshape(-1, lanes).tolist()
    items = [
        {"data": beat, "last": n % window.beats == window.beats - 1} for n, beat in enumerate(beats)
    ]
    expected = [word for image in images for word in window_words(image, window, pad_code)]
    run = drive(part.build(), items, len(expected), **options)
    assert [list(item.data) for item in run.items] == expected
    position = np.arange(len(expected))
    words = 1 if window.by_channel else window.channel_blocks
    frame = len(expected) // frames
    assert [item.last for item in run.items] == (position % words == words - 1).tolist()
    assert [item.end for item in run.items] == (position % frame == frame - 1).tolist()
    return part, run


@pytest.mark.parametrize(
    ("bits", "signed", "pad_code", "lanes"),
    covering([(2, False, 3), (4, True, -8), (8, True, -1), (16, False, 9)], [1, 3]),
)
def test_formats(bits, signed, pad_code, lanes, stall, drive, ram, rng):
    window = Window(3, 3, 2, (2, 2), padding=((1, 0), (0, 1)), passes=2)
    check(drive, ram, rng, window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code,
          stall=stall)  # fmt: skip


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param("depthwise", "cocotb", marks=pytest.mark.nightly),
        ("depthwise_stride_2", "verilator"),
        ("dilated", "verilator"),
    ],
)
def test_verilog(name, engine, drive, ram, rng):
    check(drive, ram, rng, WINDOWS[name], stall=0.5, engine=engine)


def needed_beats(window):
    """Beat of a frame that completes every word; -1 is the one before."""
    inside = np.zeros((window.padded_height, window.padded_width, window.channel_blocks), int)
    (top, _), (left, _) = window.padding
    inside[top : top + window.height, left : left + window.width] = 1
    count = inside.reshape(-1).cumsum()
    bases = [
        (row * window.stride[0] * window.padded_width + column * window.stride[1])
        * window.channel_blocks
        for row in range(window.out_height)
        for column in range(window.out_width)
    ]
    passes = 1 if window.by_channel else window.passes
    return [
        count[base + window.span - window.channel_blocks + block] - 1
        for base in bases
        for _ in range(passes)
        for block in range(window.channel_blocks)
    ]


def predict(part, frames):
    """Cycles in which beats are taken and words given while nothing else waits."""
    window = part.window
    needed = needed_beats(window)
    row_words = len(needed) // window.out_height
    in_cycles, out_cycles = [], []
    cycle = read = 0
    while read < frames * len(needed):
        frame, word = divmod(read, len(needed))
        top = max(0, word // row_words * window.stride[0] - window.padding[0][0])
        oldest_row = frame * window.height + top
        frame_in, beat = divmod(len(in_cycles), window.beats)
        row = frame_in * window.height + beat // (window.width * window.channel_blocks)
        last = frame * window.beats + needed[word]
        complete = len(in_cycles) > last and in_cycles[last] < cycle - 1
        if len(in_cycles) < frames * window.beats and row < oldest_row + part.lines:
            in_cycles.append(cycle)
        if complete:
            out_cycles.append(cycle + 2 + part.ram.has_register)
            read += 1
        cycle += 1
    return in_cycles, out_cycles


@every_window
def test_gives_every_window_with_the_fewest_lines(window, stall, drive, ram, rng):
    part, run = check(drive, ram, rng, window, stall=stall)
    in_cycles, out_cycles = predict(part, frames=3)
    assert run.in_cycles[: len(in_cycles)].tolist() == in_cycles
    assert run.out_cycles.tolist() == out_cycles


@every_window
def test_a_frame_takes_its_beats_or_its_words(window, ram):
    short = window.width * window.channel_blocks == 1 or window.height < window.reach[0]
    part = parts.BankedLineBuffer(
        window=window, bits=8, signed=False, lanes=1, pad_code=0, ram=ram,
        lines=enough_lines(window, spare=window.stride[0] + short),
    )  # fmt: skip
    _, out_cycles = predict(part, frames=6)
    words = len(out_cycles) // 6
    period = np.diff(out_cycles[words - 1 :: words])
    assert (period[-3:] == max(window.beats, words)).all()


@pytest.mark.parametrize("name", ["same_3x3", "depthwise_stride_2", "pool"])
def test_cycles_with_lines_to_spare(name, drive, ram, rng):
    window = WINDOWS[name]
    part, run = check(drive, ram, rng, window, spare=2 * window.stride[0])
    in_cycles, out_cycles = predict(part, frames=3)
    assert run.in_cycles[: len(in_cycles)].tolist() == in_cycles
    assert run.out_cycles.tolist() == out_cycles


def test_every_multiplier_of_a_depthwise_array_works_in_every_cycle(drive, ram, rng):
    window, frames = WINDOWS["depthwise"], 4
    weights = rng.integers(-128, 128, (3, 9))
    images = rng.integers(0, 256, (frames, window.height, window.width, 3))
    buffer = parts.BankedLineBuffer(
        window=window, bits=8, signed=False, lanes=1, pad_code=9, lines=4, ram=ram
    )
    array = parts.DepthwiseArray(
        channels=3, positions=9, lanes=1, taps=9, kept_passes=10, x_bits=8, x_signed=False,
        w_bits=8, acc_bits=22, in_dsp=0, weights=parts.WeightRom(ram=ram), lut_ram=False,
        weight_delay=0,
    )  # fmt: skip
    assert array.latency + 1 == array.kept_passes
    padded = np.pad(images, ((0, 0), *window.padding, (0, 0)), constant_values=9)
    views = np.lib.stride_tricks.sliding_window_view(padded, window.kernel, axis=(1, 2))
    sums = (views.reshape(*images.shape, 9) * weights).sum(axis=-1).reshape(-1)
    items = [
        {"data": [code], "last": n % window.beats == window.beats - 1}
        for n, code in enumerate(images.reshape(-1).tolist())
    ]
    run = drive(Chain(buffer.build(), array.build(weights=weights)), items, len(sums))
    assert [item.acc[0] for item in run.items] == sums.tolist()
    assert (np.diff(run.out_cycles) == 1).all()


class Chain(wiring.Component):
    """A line buffer and an array behind it."""

    def __init__(self, buffer, array):
        self.buffer, self.array = buffer, array
        super().__init__({
            "i": In(buffer.i.signature.flip()),
            "o": Out(array.o.signature),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = self.buffer
        m.submodules.array = self.array
        wiring.connect(m, wiring.flipped(self.i), self.buffer.i)
        wiring.connect(m, self.buffer.o, self.array.i)
        wiring.connect(m, self.array.o, wiring.flipped(self.o))
        return m
