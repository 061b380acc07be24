"""The components of ``rtl/`` as timed processes: when each accepts and offers its items.

Their docstrings give the timing; tests compare every process with its component cycle by cycle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nnef_hw.schedule.plan import Block
from nnef_hw.schedule.timing import Kernel, Log, Peek, Process, Put, PutAll, Stream, Wait
from nnef_hw.window import Window

__all__ = [
    "Pace", "array", "bank_read", "bank_write", "concat", "depthwise", "eltwise", "fifo_give",
    "fifo_read", "fifo_write", "fork", "pack", "padding_words", "parallel", "read",
    "register_last", "requantizer", "running_pool", "shallow_give", "sink", "skid", "softmax",
    "source", "write",
]  # fmt: skip


class Pace(NamedTuple):
    """Another input to keep step with: when it gave its beats; beats per frame there and here."""

    given: Log
    there: int
    here: int


def source(
    kernel: Kernel, target: Stream, beats: int, given: Log, pace: Pace | None = None
) -> Process:
    """Offer beats, one per cycle; with a pace only once the other input has come as far."""
    time = 0
    for beat in range(beats):
        wanted = beat * pace.there // pace.here if pace else 0
        if pace and wanted:
            if len(pace.given.times) < wanted:
                yield Wait(pace.given, wanted)
            time = max(time, pace.given.times[wanted - 1])
        accepted = yield Put(target, time)
        kernel.log(given, accepted)
        time = accepted + 1


def sink(kernel: Kernel, origin: Stream, times: list[int]) -> Process:
    """Accept every item at once; note when."""
    while True:
        offered = yield Peek(origin)
        kernel.accept(origin, offered)
        times.append(offered)


def skid(kernel: Kernel, origin: Stream, target: Stream) -> Process:
    """Model Fifo of depth 2."""
    before = last = -1
    while True:
        offered = yield Peek(origin)
        accepted = max(offered, before + 1)
        kernel.accept(origin, accepted)
        before, last = last, (yield Put(target, max(accepted, last) + 1))


def pack(kernel: Kernel, origin: Stream, target: Stream, channels: int, lanes: int) -> Process:
    """Model Pack."""
    given = -1
    while True:
        for channel in range(channels):
            offered = yield Peek(origin)
            complete = channel % lanes == lanes - 1 or channel == channels - 1
            accepted = max(offered, given) if complete else offered
            kernel.accept(origin, accepted)
            if complete:
                given = yield Put(target, accepted + 1)


def register_last(kernel: Kernel, origin: Stream, target: Stream, items: int) -> Process:
    """Model a reduction of ``items`` beats with an output register, one cycle of latency."""
    given = -1
    while True:
        for item in range(items):
            offered = yield Peek(origin)
            final = item == items - 1
            accepted = max(offered, given) if final else offered
            kernel.accept(origin, accepted)
            if final:
                given = yield Put(target, accepted + 1)


def write(
    kernel: Kernel,
    origin: Stream,
    window: Window,
    depth: int,
    written: Log,
    released: Log,
    frames: int,
) -> Process:
    """Model the line buffer's write side: one word per cycle while there is room."""
    bases = _window_bases(window, frames + 1)
    padding = padding_words(window)
    time = 0
    for word in range(window.words * frames):
        needed = bisect_left(bases, word - depth + 1)
        if needed > 0:
            if len(released.times) < needed:
                yield Wait(released, needed)
            time = max(time, released.times[needed - 1] + 1)
        if not padding[word % window.words]:
            offered = yield Peek(origin)
            time = max(time, offered)
            kernel.accept(origin, time)
        elif window.starts_in_padding and word % window.words == 0:
            time = max(time, (yield Peek(origin)))
        kernel.log(written, time)
        time += 1


def read(
    kernel: Kernel, target: Stream, window: Window, written: Log, released: Log, frames: int
) -> Process:
    """Model the line buffer's read side; items are passes, offered with their last word."""
    bases = _window_bases(window, frames)
    words = window.pass_words
    time = 0
    for base in bases:
        needed = base + window.span
        if len(written.times) < needed:
            yield Wait(written, needed)
        time = max(time, written.times[needed - 1] + 1)
        for index in range(window.passes):
            if index == window.passes - 1:
                kernel.log(released, time + words - 1)
            time = yield Put(target, time + words)


def bank_write(
    kernel: Kernel,
    origin: Stream,
    window: Window,
    lines: int,
    taken: Log,
    finished: Log,
    frames: int,
) -> Process:
    """Model the write side of BankedLineBuffer: a beat is taken while its row has room."""
    row_beats = window.width * window.channel_blocks
    oldest = [
        frame * window.height + max(0, row * window.stride[0] - window.padding[0][0])
        for frame in range(frames + 1)
        for row in range(window.out_height)
    ]
    time = -1
    for row in range(window.height * frames):
        passed = bisect_left(oldest, row - lines + 1)
        if passed > 0:
            if len(finished.times) < passed:
                yield Wait(finished, passed)
            time = max(time, finished.times[passed - 1])
        for _ in range(row_beats):
            time = max(time + 1, (yield Peek(origin)))
            kernel.accept(origin, time)
            kernel.log(taken, time)


def bank_read(
    kernel: Kernel,
    target: Stream,
    window: Window,
    stages: int,
    taken: Log,
    finished: Log,
    frames: int,
) -> Process:
    """Model the read side of BankedLineBuffer, whose pipeline ends with the word it gives."""
    inside = (~np.array(padding_words(window))).cumsum()
    passes = 1 if window.by_channel else window.passes
    last_tap = np.array(_window_bases(window, 1)) + window.span - window.channel_blocks
    needed = np.repeat(last_tap, passes)[:, None] + np.arange(window.channel_blocks)
    row_words = needed.size // window.out_height
    counts: list[int] = inside[needed.reshape(-1)].tolist()
    entered = [-1] * (stages + 1)
    for frame in range(frames):
        for word, count in enumerate(counts):
            missing = frame * window.beats + count
            if len(taken.times) < missing:
                yield Wait(taken, missing)
            entered[0] = max(entered[0] + 1, taken.times[missing - 1] + 1, entered[1])
            if word % row_words == row_words - 1:
                kernel.log(finished, entered[0])
            for stage in range(1, stages):
                entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
            entered[stages] = yield Put(target, entered[stages - 1] + 1)


def running_pool(
    kernel: Kernel, origin: Stream, target: Stream, window: Window, spacing: int
) -> Process:
    """Model RunningSum and RunningMax: beats of a window's last pixel bring its results."""
    finals = _final_beats(window)
    accepted = given = -spacing
    while True:
        for final in finals:
            accepted = max(accepted + spacing, (yield Peek(origin)))
            if final:
                accepted = max(accepted, given)
            kernel.accept(origin, accepted)
            if final:
                given = yield Put(target, accepted + 1)


def _final_beats(window: Window) -> list[bool]:
    """Tell for every beat of a frame whether it is one of a window's last pixel."""
    final = np.zeros((window.height, window.width), bool)
    rows, columns = window.kernel
    final[rows - 1 :: rows, columns - 1 :: columns] = True
    final[window.out_height * rows :] = False
    final[:, window.out_width * columns :] = False
    result: list[bool] = np.repeat(final.reshape(-1), window.channel_blocks).tolist()
    return result


def parallel(kernel: Kernel, origin: Stream, target: Stream, window: Window) -> Process:
    """Model the parallel line buffer: a pixel is accepted, shifts in, and its window is given."""
    padding = padding_words(window)
    completing = {base + window.span - 1 for base in _window_bases(window, 1)}
    time = shifted = free = -1
    while True:
        for word in range(window.words):
            time = max(time + 1, shifted)
            if not padding[word]:
                offered = yield Peek(origin)
                time = max(time, offered)
                kernel.accept(origin, time)
            shifted = max(time + 1, free)
            free = shifted + 1
            if word in completing:
                for _ in range(window.passes):
                    free = (yield Put(target, free)) + 1
                free -= 1


def _window_bases(window: Window, frames: int) -> list[int]:
    """First word of every window, counted from the first frame's first word."""
    rows = np.arange(window.out_height) * window.stride[0] * window.padded_width
    columns = np.arange(window.out_width) * window.stride[1]
    frame = ((rows[:, None] + columns) * window.channel_blocks).reshape(-1)
    offsets = np.arange(frames) * window.words
    bases: list[int] = (offsets[:, None] + frame).reshape(-1).tolist()
    return bases


def padding_words(window: Window) -> list[bool]:
    """Tell for every stored word of a frame whether it is padding."""
    (top, _), (left, _) = window.padding
    inside = np.zeros((window.padded_height, window.padded_width), bool)
    inside[top : top + window.height, left : left + window.width] = True
    result: list[bool] = np.repeat(~inside.reshape(-1), window.channel_blocks).tolist()
    return result


def array(kernel: Kernel, origin: Stream, target: Stream, block: Block) -> Process:
    """Model SystolicArray; items in are passes, items out are sums."""
    passes = -(-block.out_channels // block.rows)
    emptied = [-1] * block.kept_passes
    while True:
        for index in range(passes):
            offered = yield Peek(origin)
            accepted = max(offered, emptied[-block.kept_passes] + 1)
            kernel.accept(origin, accepted)
            taken = max(accepted + block.result_latency, emptied[-1] + 1) - 1
            for _ in range(min(block.rows, block.out_channels - index * block.rows)):
                taken = yield Put(target, taken + 1)
            emptied = [*emptied[1:], taken]


def requantizer(
    kernel: Kernel, origin: Stream, target: Stream, interval: int, stages: int, round_stages: int
) -> Process:
    """Model Requantizer: sums move while its queue of two is not full."""
    stalls: deque[tuple[int, int]] = deque()

    def moved(time: int, cycles: int) -> int:
        """Return the cycle that comes so many cycles later, stalls not counted."""
        end = time + cycles
        for first, last in stalls:
            if first <= end and time <= last:
                end += last - max(first, time) + 1
        return end

    accepted = entered = given = -1
    while True:
        offered = yield Peek(origin)
        accepted = max(moved(offered, 0), moved(accepted, interval) if accepted >= 0 else 0)
        kernel.accept(origin, accepted)
        while stalls and stalls[0][1] < accepted:
            stalls.popleft()
        entered = moved(accepted, stages * interval + 1 + round_stages)
        if given > entered:
            stalls.append((entered + 1, given))
        given = yield Put(target, max(entered, given) + 1)


def softmax(
    kernel: Kernel, origin: Stream, target: Stream, channels: int, latency: int, spacing: int
) -> Process:
    """Model Softmax and TfliteSoftmax."""
    idle = 0
    while True:
        accepted = 0
        for _ in range(channels):
            offered = yield Peek(origin)
            accepted = max(offered, idle)
            kernel.accept(origin, accepted)
        time = accepted + latency
        for _ in range(channels):
            given = yield Put(target, time)
            time = given + spacing
            idle = given + 1


def depthwise(kernel: Kernel, origin: Stream, target: Stream, block: Block) -> Process:
    """Model DepthwiseArray with one drain; items in are passes."""
    emptied = deque([-1] * block.kept_passes, maxlen=block.kept_passes)
    while True:
        for first in range(0, block.out_channels, block.lanes):
            offered = yield Peek(origin)
            accepted = max(offered, emptied[0] + 1)
            kernel.accept(origin, accepted)
            taken = max(accepted + block.result_latency - 1, emptied[-1])
            for _ in range(min(block.lanes, block.out_channels - first)):
                taken = yield Put(target, taken + 1)
            emptied.append(taken)


def eltwise(kernel: Kernel, origins: Sequence[Stream], target: Stream, stages: int) -> Process:
    """Model a pipeline of ``stages`` registers, each of which waits only if the next one does."""
    entered = [-1] * (stages + 1)
    while True:
        time = entered[1]
        for origin in origins:
            time = max(time, (yield Peek(origin)))
        for origin in origins:
            kernel.accept(origin, time)
        entered[0] = time
        for stage in range(1, stages):
            entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
        entered[stages] = yield Put(target, entered[stages - 1] + 1)


def concat(
    kernel: Kernel, origins: Sequence[Stream], target: Stream, runs: Sequence[int]
) -> Process:
    """Model Concat: the streams take turns for its output register."""
    given = -1
    while True:
        for origin, count in zip(origins, runs, strict=True):
            for _ in range(count):
                accepted = max(given, (yield Peek(origin)))
                kernel.accept(origin, accepted)
                given = yield Put(target, accepted + 1)


def fork(kernel: Kernel, origin: Stream, targets: tuple[Stream, ...]) -> Process:
    """Model Fork: an item leaves when the last branch has taken it."""
    while True:
        offered = yield Peek(origin)
        kernel.accept(origin, (yield PutAll(targets, offered)))


def fifo_write(kernel: Kernel, origin: Stream, written: Log, read: Log, words: int) -> Process:
    """Model the write side of BlockFifo and Fifo: an item enters when there is room for it."""
    time = -1
    while True:
        offered = yield Peek(origin)
        time = max(time + 1, offered)
        missing = len(written.times) - words + 1
        if missing > 0:
            if len(read.times) < missing:
                yield Wait(read, missing)
            time = max(time, read.times[missing - 1] + 1)
        kernel.accept(origin, time)
        kernel.log(written, time)


def shallow_give(kernel: Kernel, target: Stream, written: Log, left: Log) -> Process:
    """Model the read side of a Fifo of registers."""
    given = -1
    while True:
        count = len(left.times)
        if len(written.times) <= count:
            yield Wait(written, count + 1)
        given = yield Put(target, max(written.times[count], given) + 1)
        kernel.log(left, given)


def fifo_read(kernel: Kernel, written: Log, read: Log, moved: Log) -> Process:
    """Model how items leave the memory of BlockFifo."""
    freed = -1
    while True:
        count = len(read.times)
        if len(written.times) <= count:
            yield Wait(written, count + 1)
        if count:
            if len(moved.times) < count:
                yield Wait(moved, count)
            freed = moved.times[count - 1]
        kernel.log(read, max(written.times[count] + 1, freed))


def fifo_give(kernel: Kernel, target: Stream, read: Log, moved: Log, taken: Log) -> Process:
    """Model the registers behind the memory of BlockFifo."""
    given = -1
    while True:
        count = len(moved.times)
        if len(read.times) <= count:
            yield Wait(read, count + 1)
        time = max(read.times[count] + 1, given)
        kernel.log(moved, time)
        given = yield Put(target, time + 1)
        kernel.log(taken, given)
