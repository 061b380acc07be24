"""Timelines: activity of every station in the cycles of a steady frame."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Activity", "Timeline", "Work"]


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity of one station in the steps of a timeline; in other cycles the station is starved.

    Parameters
    ----------
    name
        Name of the layer, or of an input.
    busy
        Cycles per step in which it takes a word.
    waiting
        Cycles per step in which a word is there and cannot be taken: earlier results have to leave.
    """

    name: str
    busy: tuple[int, ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """One steady frame, which repeats; it begins as a first input takes a frame's first beat.

    Parameters
    ----------
    interval
        Cycles of the frame.
    step
        Cycles of a step; the last one may be shorter.
    inputs
        What the inputs do.
    blocks
        What the stations do, in the order of the plan.
    """

    interval: int
    step: int
    inputs: tuple[Activity, ...]
    blocks: tuple[Activity, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """Cycles in which a station takes words, has them wait, and has none."""

    busy: int
    waiting: int
    starved: int
