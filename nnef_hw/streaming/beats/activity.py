"""Who is busy when: what every block does in each cycle of a steady frame."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nnef_hw.architecture.timeline import Activity, Timeline, Work
from nnef_hw.streaming.beats.beats import Trace, trace_beats
from nnef_hw.streaming.foldings.plan import StreamingPlan

__all__ = ["make_timeline", "predict_work"]

MOST_STEPS = 220
FIRST_FRAMES = 12
"""Simulated at first, to see what happens up to the 10th: more if the inputs end before that."""


def predict_work(plan: StreamingPlan, begin: int, end: int, frames: int) -> tuple[Work, ...]:
    """Return the work of every block after ``begin`` frames have left until ``end`` have.

    That of a run of ``frames`` without a pause. Where a layer gains on a slower one behind it until
    all memory between them is full, it is not the same for ever.
    """
    simulated = min(frames, FIRST_FRAMES)
    while True:
        times, traces = trace_beats(plan.blocks, plan.inputs, plan.outputs, simulated)
        first, last = times.last_outputs[begin - 1] + 1, times.last_outputs[end - 1]
        if simulated == frames or times.first_inputs[-1] > last:
            break
        simulated = min(frames, 2 * simulated)
    work = []
    for block in plan.blocks:
        words = block.pass_words
        # As if an item before the first one had left long ago.
        trace = traces[block.tensor]
        trace = Trace(np.append(0, trace.offered), np.append(-words, trace.accepted))
        accepted, offered = _moments(trace, words)
        busy = _within(accepted, accepted + 1, first, last)
        busy += _within(offered - (words - 1), offered, first, last)
        waiting = _within(offered, accepted, first, last)
        work.append(Work(busy, waiting, last + 1 - first - busy - waiting))
    return tuple(work)


def _within(begins: NDArray[np.int64], ends: NDArray[np.int64], first: int, last: int) -> int:
    """Count the cycles of periods, without their ends, that lie in first..last."""
    inside = np.minimum(ends, last + 1) - np.maximum(begins, first)
    return int(np.maximum(inside, 0).sum())


def make_timeline(plan: StreamingPlan) -> Timeline:
    """Simulate the beats of a Plan and fold every block's last frame onto one interval.

    The pipeline holds parts of several frames at once: what a block does late for one frame it does
    while the inputs take a later one.
    """
    times, traces = trace_beats(plan.blocks, plan.inputs, plan.outputs)
    frames, start = len(times.first_inputs), times.first_inputs[-1]

    def activity(name: str, tensor: str, words: int) -> Activity:
        trace = _last_frames(traces[tensor], frames, 1)
        states = _states(trace, words, start, plan.interval)
        return Activity(name, *(tuple(_steps(state, step)) for state in states))

    step = -(-plan.interval // MOST_STEPS)
    return Timeline(
        interval=plan.interval,
        step=step,
        inputs=tuple(activity(port.tensor, port.tensor, 1) for port in plan.inputs),
        blocks=tuple(activity(block.name, block.tensor, block.pass_words) for block in plan.blocks),
    )


def _last_frames(trace: Trace, frames: int, kept: int) -> Trace:
    """Keep the items of the last frames, and the one before them."""
    first = len(trace.accepted) // frames * (frames - kept) - 1
    return Trace(trace.offered[first:], trace.accepted[first:])


def _moments(trace: Trace, words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when items but the first were accepted, and when their last words came.

    The words of an item come without a gap before its last one, which is what may wait.
    """
    return trace.accepted[1:], np.maximum(trace.offered[1:], trace.accepted[:-1] + words)


def _states(
    trace: Trace, words: int, start: int, interval: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell for every cycle of an interval whether a block is busy, and whether it waits."""
    accepted, offered = _moments(trace, words)
    busy, waiting = np.zeros(interval, bool), np.zeros(interval, bool)
    for back in range(1, words):
        busy[(offered - back - start) % interval] = True
    busy[(accepted - start) % interval] = True
    for first, end in zip(offered.tolist(), accepted.tolist(), strict=True):
        if end > first:
            waiting[np.arange(first - start, end - start) % interval] = True
    return busy, waiting & ~busy


def _steps(state: NDArray[np.bool_], step: int) -> Iterator[int]:
    for first in range(0, len(state), step):
        yield int(np.count_nonzero(state[first : first + step]))
