"""The components of ``rtl/`` as timed processes: when each accepts and offers its items.

Their docstrings give the timing; tests compare every process with its component cycle by cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnef_hw.schedule.plan import Block
from nnef_hw.schedule.timing import Log, Process, Stream
from nnef_hw.window import Window

__all__ = [
    "Pace", "array", "bank_read", "bank_write", "concat", "depthwise", "eltwise", "fifo_give",
    "fifo_reads", "fifo_write", "fork", "pack", "padding_words", "parallel", "queue_write", "read",
    "register_last", "requantizer", "running_pool", "shallow_give", "sink", "skid", "softmax",
    "source", "write",
]  # fmt: skip


class Pace(NamedTuple):
    """Another input to keep step with: when it gave its beats; beats per frame there and here."""

    given: Log
    there: int
    here: int


def source(
    target: Stream, beats: int, admitted: Log, given: Log, pace: Pace | None = None
) -> Process:
    """Offer the beats of every admitted frame, one per cycle; note when each is accepted.

    With a pace, a beat is offered only once the other input has come as far.
    """
    time = 0
    for frame in count():
        yield admitted, frame + 1
        for beat in range(frame * beats, (frame + 1) * beats):
            wanted = beat * pace.there // pace.here if pace else 0
            if pace and wanted:
                yield pace.given, wanted
                time = max(time, pace.given.times[wanted - 1])
            accepted = yield target, time
            given.add(accepted)
            time = accepted + 1


def sink(origin: Stream, times: list[int]) -> Process:
    """Accept every item at once; note when."""
    while True:
        offered = yield origin
        origin.accept(offered)
        times.append(offered)


def skid(origin: Stream, target: Stream) -> Process:
    """Model Fifo of depth 2."""
    before = last = -1
    while True:
        offered = yield origin
        accepted = max(offered, before + 1)
        origin.accept(accepted)
        before, last = last, (yield target, max(accepted, last) + 1)


def pack(origin: Stream, target: Stream, channels: int, lanes: int) -> Process:
    """Model Pack."""
    given = -1
    while True:
        for channel in range(channels):
            offered = yield origin
            complete = channel % lanes == lanes - 1 or channel == channels - 1
            accepted = max(offered, given) if complete else offered
            origin.accept(accepted)
            if complete:
                given = yield target, accepted + 1


def register_last(origin: Stream, target: Stream, items: int) -> Process:
    """Model a reduction of ``items`` beats with an output register, one cycle of latency."""
    given = -1
    while True:
        for item in range(items):
            offered = yield origin
            final = item == items - 1
            accepted = max(offered, given) if final else offered
            origin.accept(accepted)
            if final:
                given = yield target, accepted + 1


def write(origin: Stream, window: Window, depth: int, written: Log, released: Log) -> Process:
    """Model the line buffer's write side: one word per cycle while there is room."""
    # What is released before a word of frame 0 can enter; less than 0 of it in frames before.
    bases, words = _window_bases(window), window.words
    past = depth // words + 1
    earlier = np.concatenate([bases - back * words for back in range(past, -1, -1)])
    places = np.arange(words) - depth
    released_before = (earlier.searchsorted(places, "right") - past * len(bases)).tolist()
    steps = list(zip(released_before, padding_words(window), strict=True))
    time = 0
    for frame in count():
        windows = frame * len(bases)
        if window.starts_in_padding:
            time = max(time, (yield origin))
        for before, is_padding in steps:
            needed = windows + before
            if needed > 0:
                if len(released.times) < needed:
                    yield released, needed
                time = max(time, released.times[needed - 1] + 1)
            if not is_padding:
                time = max(time, (yield origin))
                origin.accept(time)
            written.add(time)
            time += 1


def read(target: Stream, window: Window, written: Log, released: Log) -> Process:
    """Model the line buffer's read side; items are passes, offered with their last word."""
    ends = (_window_bases(window) + window.span).tolist()
    words = window.pass_words
    time = 0
    for frame in count():
        for end in ends:
            needed = frame * window.words + end
            if len(written.times) < needed:
                yield written, needed
            time = max(time, written.times[needed - 1] + 1)
            for _ in range(window.passes - 1):
                time = yield target, time + words
            released.add(time + words - 1)
            time = yield target, time + words


def bank_write(origin: Stream, window: Window, lines: int, taken: Log, finished: Log) -> Process:
    """Model the write side of BankedLineBuffer: a beat is taken while its row has room."""
    row_beats = window.width * window.channel_blocks
    # The oldest row that each row of windows reads, and what has to be finished before a row.
    oldest = np.arange(window.out_height) * window.stride[0] - window.padding[0][0]
    oldest = np.maximum(oldest, 0)
    past = lines // window.height + 1
    earlier = np.concatenate([oldest - back * window.height for back in range(past, -1, -1)])
    places = np.arange(window.height) - lines
    passed_before = (earlier.searchsorted(places, "right") - past * len(oldest)).tolist()
    time = -1
    for frame in count():
        for before in passed_before:
            passed = frame * window.out_height + before
            if passed > 0:
                if len(finished.times) < passed:
                    yield finished, passed
                time = max(time, finished.times[passed - 1])
            for _ in range(row_beats):
                time = max(time + 1, (yield origin))
                origin.accept(time)
                taken.add(time)


def bank_read(target: Stream, window: Window, stages: int, taken: Log, finished: Log) -> Process:
    """Model the read side of BankedLineBuffer, whose pipeline ends with the word it gives."""
    inside = (~np.array(padding_words(window))).cumsum()
    passes = 1 if window.by_channel else window.passes
    last_tap = _window_bases(window) + window.span - window.channel_blocks
    needed = np.repeat(last_tap, passes)[:, None] + np.arange(window.channel_blocks)
    row_words = needed.size // window.out_height
    counts: list[int] = inside[needed.reshape(-1)].tolist()
    entered = [-1] * (stages + 1)
    for frame in count():
        for word, beats in enumerate(counts):
            missing = frame * window.beats + beats
            if len(taken.times) < missing:
                yield taken, missing
            entered[0] = max(entered[0] + 1, taken.times[missing - 1] + 2, entered[1])
            if word % row_words == row_words - 1:
                finished.add(entered[0])
            for stage in range(1, stages):
                entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
            entered[stages] = yield target, entered[stages - 1] + 1


def running_pool(origin: Stream, target: Stream, window: Window, spacing: int) -> Process:
    """Model RunningSum and RunningMax: beats of a window's last pixel bring its results."""
    finals = _final_beats(window)
    accepted = given = -spacing
    while True:
        for final in finals:
            accepted = max(accepted + spacing, (yield origin))
            if final:
                accepted = max(accepted, given)
            origin.accept(accepted)
            if final:
                given = yield target, accepted + 1


def _final_beats(window: Window) -> list[bool]:
    """Tell for every beat of a frame whether it is one of a window's last pixel."""
    final = np.zeros((window.height, window.width), bool)
    rows, columns = window.kernel
    final[rows - 1 :: rows, columns - 1 :: columns] = True
    final[window.out_height * rows :] = False
    final[:, window.out_width * columns :] = False
    result: list[bool] = np.repeat(final.reshape(-1), window.channel_blocks).tolist()
    return result


def parallel(origin: Stream, target: Stream, window: Window) -> Process:
    """Model the parallel line buffer: a pixel is accepted, shifts in, and its window is given."""
    padding = padding_words(window)
    completing = set((_window_bases(window) + window.span - 1).tolist())
    time = shifted = free = -1
    while True:
        for word in range(window.words):
            time = max(time + 1, shifted)
            if not padding[word]:
                offered = yield origin
                time = max(time, offered)
                origin.accept(time)
            shifted = max(time + 1, free)
            free = shifted + 1
            if word in completing:
                for _ in range(window.passes):
                    free = (yield target, free) + 1
                free -= 1


def _window_bases(window: Window) -> NDArray[np.int64]:
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


def array(origin: Stream, target: Stream, block: Block) -> Process:
    """Model SystolicArray; items in are passes, items out are sums."""
    passes = -(-block.out_channels // block.rows)
    emptied = [-1] * block.kept_passes
    while True:
        for index in range(passes):
            offered = yield origin
            accepted = max(offered, emptied[-block.kept_passes] + 1)
            origin.accept(accepted)
            taken = max(accepted + block.result_latency, emptied[-1] + 1) - 1
            for _ in range(min(block.rows, block.out_channels - index * block.rows)):
                taken = yield target, taken + 1
            emptied = [*emptied[1:], taken]


def requantizer(
    origin: Stream, target: Stream, interval: int, stages: int, round_stages: int
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

    given = -1
    delay = stages * interval + 1 + round_stages
    accepted = -interval
    while True:
        offered = yield origin
        if stalls:
            accepted = max(moved(offered, 0), moved(accepted, interval))
            while stalls and stalls[0][1] < accepted:
                stalls.popleft()
            entered = moved(accepted, delay)
        else:
            accepted = max(offered, accepted + interval)
            entered = accepted + delay
        origin.accept(accepted)
        if given > entered:
            stalls.append((entered + 1, given))
        given = yield target, max(entered, given) + 1


def softmax(origin: Stream, target: Stream, channels: int, latency: int, spacing: int) -> Process:
    """Model Softmax and TfliteSoftmax."""
    idle = 0
    while True:
        accepted = 0
        for _ in range(channels):
            offered = yield origin
            accepted = max(offered, idle)
            origin.accept(accepted)
        time = accepted + latency
        for _ in range(channels):
            given = yield target, time
            time = given + spacing
            idle = given + 1


def depthwise(origin: Stream, target: Stream, block: Block) -> Process:
    """Model DepthwiseArray with one drain; items in are passes."""
    emptied = deque([-1] * block.kept_passes, maxlen=block.kept_passes)
    while True:
        for first in range(0, block.out_channels, block.lanes):
            offered = yield origin
            accepted = max(offered, emptied[0] + 1)
            origin.accept(accepted)
            taken = max(accepted + block.result_latency - 1, emptied[-1])
            for _ in range(min(block.lanes, block.out_channels - first)):
                taken = yield target, taken + 1
            emptied.append(taken)


def eltwise(origins: Sequence[Stream], target: Stream, stages: int) -> Process:
    """Model a pipeline of ``stages`` registers, each of which waits only if the next one does."""
    entered = [-1] * (stages + 1)
    while True:
        time = entered[1]
        for origin in origins:
            time = max(time, (yield origin))
        for origin in origins:
            origin.accept(time)
        entered[0] = time
        for stage in range(1, stages):
            entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
        entered[stages] = yield target, entered[stages - 1] + 1


def concat(origins: Sequence[Stream], target: Stream, runs: Sequence[int]) -> Process:
    """Model Concat: the streams take turns for its output register."""
    given = -1
    while True:
        for origin, run in zip(origins, runs, strict=True):
            for _ in range(run):
                accepted = max(given, (yield origin))
                origin.accept(accepted)
                given = yield target, accepted + 1


def fork(origin: Stream, targets: tuple[Stream, ...]) -> Process:
    """Model Fork: an item leaves when the last branch has taken it."""
    while True:
        offered = yield origin
        origin.accept((yield targets, offered))


def fifo_write(origin: Stream, written: Log, moved: Log, words: int) -> Process:
    """Model the write side of BlockFifo: an item enters when there is room for it in the memory.

    There is from the cycle on after an older one was read (:func:`fifo_reads`).
    """
    time = -1
    for first in count(-words):
        time = max(time + 1, (yield origin))
        if first > 0:
            if len(moved.times) < first:
                yield moved, first
            time = max(time, moved.times[first - 1] + 1, written.times[first] + 2)
        elif first == 0:
            time = max(time, written.times[0] + 2)
        origin.accept(time)
        written.add(time)


def fifo_give(target: Stream, written: Log, moved: Log, given: Log) -> Process:
    """Model the registers behind the memory of BlockFifo."""
    last = -1
    for item in count():
        if len(written.times) <= item:
            yield written, item + 1
        moving = max(written.times[item] + 2, (moved.times[-1] if item else -1) + 1, last)
        moved.add(moving)
        last = yield target, moving + 1
        given.add(last)


def fifo_reads(written: Log, moved: Log) -> NDArray[np.int64]:
    """Return when each item left the memory of a BlockFifo: the register behind it was free."""
    freed = np.array([-1, *moved.times[:-1]])
    return np.asarray(np.maximum(np.array(written.times[: len(freed)]) + 1, freed))


def queue_write(origin: Stream, written: Log, left: Log, depth: int) -> Process:
    """Model the write side of a queue: an item enters the cycle after an older one left."""
    time = -1
    for first in count(-depth):
        time = max(time + 1, (yield origin))
        if first >= 0:
            if len(left.times) <= first:
                yield left, first + 1
            time = max(time, left.times[first] + 1)
        origin.accept(time)
        written.add(time)


def shallow_give(target: Stream, written: Log, given: Log) -> Process:
    """Model the read side of a Fifo of registers."""
    last = -1
    for item in count():
        if len(written.times) <= item:
            yield written, item + 1
        last = yield target, max(written.times[item], last) + 1
        given.add(last)
