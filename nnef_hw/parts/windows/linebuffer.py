"""The line buffer that gives windows tap by tap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import gcd

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.base.part import WindowPart, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream

__all__ = ["LineBuffer", "padding_words", "window_bases"]


def window_bases(window: Window) -> NDArray[np.int64]:
    """Return the first word of every window of a frame."""
    rows = np.arange(window.out_height) * window.stride[0] * window.padded_width
    columns = np.arange(window.out_width) * window.stride[1]
    return np.asarray(((rows[:, None] + columns) * window.channel_blocks).reshape(-1))


def padding_words(window: Window) -> list[bool]:
    """Tell for every stored word of a frame whether it is padding."""
    (top, _), (left, _) = window.padding
    inside = np.zeros((window.padded_height, window.padded_width), bool)
    inside[top : top + window.height, left : left + window.width] = True
    result: list[bool] = np.repeat(~inside.reshape(-1), window.channel_blocks).tolist()
    return result


@dataclass(frozen=True, slots=True)
class _Counters:
    """Widths of the counters that synthesis keeps."""

    write: tuple[int, ...]
    read: tuple[int, ...]
    base: int

    @classmethod
    def of(cls, window: Window, depth: int) -> _Counters:
        (top_bottom, left_right) = (any(pair) for pair in window.padding)
        write: tuple[int, ...] = ()
        if top_bottom or left_right or window.starts_in_padding:
            write = (counter_bits(window.channel_blocks), counter_bits(window.padded_width))
            write += (counter_bits(window.padded_height),) if top_bottom else ()
        read = (
            0 if window.by_channel else counter_bits(window.channel_blocks),
            counter_bits(window.kernel[1]), counter_bits(window.kernel[0]),
            counter_bits(window.passes), counter_bits(window.out_width),
            counter_bits(window.out_height),
        )  # fmt: skip
        if window.past_words:
            write += (counter_bits(window.past_words),)
        step = gcd(window.column_step, window.row_step, window.frame_step, depth)
        return cls(write, read, counter_bits(depth // step))


@cache
def _missing_words(window: Window, depth: int) -> tuple[int, int]:
    """Words per frame that had no room before the reader came to wait for them; how often it does.

    They come as fast as they are written, at best one per cycle.
    """
    steps = (
        (window.column_step, window.out_height * (window.out_width - 1)),
        (window.row_step, window.out_height - 1),
        (window.frame_step, 1),
    )
    missing = [(max(0, window.span + step - depth), count) for step, count in steps]
    return (
        sum(words * count for words, count in missing),
        sum(count for words, count in missing if words),
    )


@dataclass(frozen=True, kw_only=True)
class LineBuffer(WindowPart):
    """Keeps words in a circular memory; its items are passes, offered with their last word.

    Its latency lasts from the beat that completes a window to that window's first word. Words pass
    a register behind the memory if that is a part of the block RAM.

    Parameters
    ----------
    depth
        Words of memory, a power of two, at least ``window.min_depth``.
    decides_early
        Whether it is decided a cycle before which word may be written, so that ``i.ready`` is a
        register: for long wires. Words are free a cycle later.

    Raises
    ------
    ValueError
        If the depth is another one.
    """

    component = "nnef_hw.rtl.windows.linebuffer:LineBuffer"
    costs = "line buffer"

    depth: int
    decides_early: bool = False

    def __post_init__(self) -> None:
        if self.depth & (self.depth - 1) or self.depth < 2:
            raise ValueError(f"LineBuffer depth must be a power of two, not {self.depth!r}")
        if self.depth < self.window.min_depth:
            raise ValueError(
                f"LineBuffer depth must be at least {self.window.min_depth}, not {self.depth!r}"
            )

    @property
    def latency(self) -> int:
        return 1 + self.stages

    @property
    def stages(self) -> int:
        """Registers from the memory's address to the word."""
        return 1 + self.ram.has_register

    @property
    def memory(self) -> Tiling:
        """Memory of the line buffer."""
        return tile_memory(self.ram, self.depth, self.bits * self.lanes)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,)

    def compute(self, codes: IntArray) -> IntArray:
        """Return the words [passes, words, lanes] of every window of codes [beats, lanes]."""
        taps, window = self.taps(codes), self.window
        if window.by_channel:
            passes = taps.swapaxes(1, 2)
        else:
            passes = taps[:, None].repeat(window.passes, axis=1)
        return np.asarray(passes.reshape(-1, window.pass_words, self.lanes))

    @property
    def features(self) -> Mapping[str, float]:
        window, tiling = self.window, self.memory
        counters = _Counters.of(window, self.depth)
        all_counters = (*counters.write, *counters.read)
        compared = sum(
            counter_bits(extent) * any(pair)
            for extent, pair in zip(
                (window.padded_height, window.padded_width), window.padding, strict=True
            )
        )
        return {
            "pointer bits": counter_bits(self.depth),
            "base bits": counters.base,
            "counter bits": sum(all_counters),
            "counters": sum(map(bool, all_counters)),
            "padding bits": compared,
            "padded width": tiling.width * (window.words != window.beats or window.goes_on),
            "memory rows": tiling.width * (tiling.rows - 1) + tiling.rows - 1,
        }

    @property
    def pass_words(self) -> int:
        return self.window.pass_words

    @property
    def missing_words(self) -> int:
        return _missing_words(self.window, self.depth)[0]

    @property
    def waits(self) -> int:
        """Number of waits per frame of the reader for words that had no room before."""
        return _missing_words(self.window, self.depth)[1]

    @property
    def pause(self) -> int:
        """Cycles in which it writes the padding between two frames."""
        (top, bottom), (left, right) = self.window.padding
        pixels = (top + bottom) * self.window.padded_width + left + right
        return pixels * self.window.channel_blocks

    def flip_flops(self, device: Device) -> int:
        del device
        window = self.window
        counters = _Counters.of(window, self.depth)
        level = max(self.depth, window.overdraft).bit_length() + 1
        flags = 1 + 3 * self.stages + (window.past_words > 0)
        if self.decides_early:
            flags += 3 + 3 + (window.pass_words * window.passes > 1)
        flags += sum(any(pair) for pair in window.padding)
        pointers = counters.base + 2 * counter_bits(self.depth)
        return sum(counters.write) + sum(counters.read) + pointers + level + flags

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        written, released, target = kernel.log(), kernel.log(), kernel.stream()
        kernel.start(self._write(origin, written, released))
        kernel.start(self._read(target, written, released))
        return target

    def _write(self, origin: Stream, written: Log, released: Log) -> Process:
        """Write a word per cycle while there is room."""
        window, depth = self.window, self.depth
        bases, words, past = window_bases(window), window.words, window.past_words
        # What is released before a word can enter, counted from the windows of its frame: less than
        # 0 of it in frames before. First the words that come before those of frame 0.
        places = np.arange(-past, words) + past - depth
        released_before = places // words * len(bases)
        released_before += bases.searchsorted(places % words, "right")
        before_all = [(before, True) for before in released_before[:past].tolist()]
        of_frame = list(zip(released_before[past:].tolist(), padding_words(window), strict=True))
        releases = released.times
        time = 0
        for frame in count(-1):
            windows = max(frame, 0) * len(bases)
            if window.starts_in_padding and frame >= 0:
                time = max(time, (yield origin))
            for before, is_padding in of_frame if frame >= 0 else before_all:
                needed = windows + before
                if needed > 0:
                    if len(releases) < needed:
                        yield released, needed
                    freed = releases[needed - 1] + self.decides_early
                    if freed >= time:
                        time = freed + 1
                if not is_padding:
                    offered = yield origin
                    if offered > time:
                        time = offered
                    origin.accept(time)
                written.add(time)
                time += 1

    def _read(self, target: Stream, written: Log, released: Log) -> Process:
        """Give every pass once the last word of its window is there."""
        window = self.window
        ends = (window_bases(window) + window.span).tolist()
        words, last_pass = window.pass_words, window.passes - 1
        writes, is_registered = written.times, self.stages > 1
        # When the last word before a pass left the memory, and when it was given.
        free = given = 0
        for first in count(0, window.words):
            for end in ends:
                needed = first + end
                if len(writes) < needed:
                    yield written, needed
                free = max(free, writes[needed - 1] + 1)
                for index in range(window.passes):
                    # the first word leaves the memory where it is the output, or for a register
                    moves = max(free + 1, given) if is_registered else free
                    if index == last_pass:
                        released.add(free if words == 1 else moves + words - self.stages)
                    offered = moves + words
                    given = yield target, offered
                    free = offered - 1 if is_registered else given
