"""Borders feed and drain an accelerator in the simulation of its beats."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from nnef_hw.parts.base.timing import Log, Process, Stream

__all__ = ["Pace", "gate", "sink", "source"]


class Pace(NamedTuple):
    """Another input to keep step with: when it sent its beats; the beats of a frame of each."""

    sent: Log
    its_beats: int
    own_beats: int


def source(
    target: Stream, beats: int, admitted: Log, sent: Log, pace: Pace | None = None
) -> Process:
    """Offer the beats of every admitted frame, one per cycle; note when each is accepted.

    With a pace, a beat is offered only once the other input has come as far.
    """
    time = 0
    for frame in count():
        yield admitted, frame + 1
        for beat in range(frame * beats, (frame + 1) * beats):
            wanted = beat * pace.its_beats // pace.own_beats if pace else 0
            if pace and wanted:
                yield pace.sent, wanted
                time = max(time, pace.sent.times[wanted - 1])
            accepted = yield target, time
            sent.add(accepted)
            time = accepted + 1


def gate(origin: Stream, target: Stream, beats: int, admitted: Log) -> Process:
    """Let a frame's beats pass once the frame is admitted, in the cycles in which they come."""
    for frame in count():
        yield admitted, frame + 1
        for _ in range(beats):
            offered = yield origin
            origin.accept((yield target, offered))


def sink(origin: Stream, times: list[int]) -> Process:
    """Accept every item at once; note when."""
    while True:
        offered = yield origin
        origin.accept(offered)
        times.append(offered)
