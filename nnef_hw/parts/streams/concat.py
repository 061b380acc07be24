"""Streams that take turns, and turns of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.base.untyped import Content, Hardware

__all__ = ["Concat", "Split"]


@dataclass(frozen=True, kw_only=True)
class Concat(Pipe):
    """Takes ``runs`` codes of each stream in turn, into one output register.

    Parameters
    ----------
    runs
        Beats of each stream in a turn.
    bits, signed, lanes
        Format of all beats.

    Raises
    ------
    ValueError
        If there are fewer than two runs, or one has no beats.
    """

    component = "nnef_hw.rtl.streams.concat:Concat"
    label = "concat"
    costs = "concat"
    latency = 1
    takes_turns = True

    runs: tuple[int, ...]
    bits: int
    signed: bool
    lanes: int = 1

    def __post_init__(self) -> None:
        if len(self.runs) < 2 or min(self.runs) < 1:
            raise ValueError(f"Concat needs at least 2 runs of beats, not {self.runs!r}")

    def compute(self, *operands: IntArray) -> IntArray:
        """Return the runs of codes [beats, lanes] of all streams, turn by turn."""
        turns = [
            codes.reshape(-1, run, self.lanes)
            for codes, run in zip(operands, self.runs, strict=True)
        ]
        return np.concatenate(turns, axis=1).reshape(-1, self.lanes)

    @property
    def features(self) -> Mapping[str, float]:
        streams = len(self.runs)
        return {
            "code bits": self.bits * self.lanes * (streams - 1),
            "streams": streams,
            "counter bits": counter_bits(max(self.runs)),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        counters = counter_bits(max(self.runs)) + counter_bits(len(self.runs))
        return self.bits * self.lanes + counters + 3

    def process(self, target: Stream, *origins: Stream) -> Process:
        sent = -1
        while True:
            for origin, run in zip(origins, self.runs, strict=True):
                for _ in range(run):
                    accepted = max(sent, (yield origin))
                    origin.accept(accepted)
                    sent = yield target, accepted + self.latency

    def operands(self, component: Hardware) -> list[Hardware]:
        return [getattr(component, f"i{n}") for n in range(len(self.runs))]

    def build_counted(self, **contents: Content) -> Hardware:
        return self.build(counted=True, **contents)

    def arrivals(self, component: Hardware) -> tuple[Hardware, Hardware]:
        return component.offered, component.free


@dataclass(frozen=True, kw_only=True)
class Split(Pipe):
    """Hands on the codes of the runs that are kept, and drops the others as they come.

    Its latency begins where a beat is offered. A layer keeps one run.

    Parameters
    ----------
    runs
        Beats of each run in a turn.
    turns
        Turns of a frame.
    kept
        Which runs are passed on.
    bits, signed, lanes
        Format of all beats.

    Raises
    ------
    ValueError
        If a run has no beats, or none is kept.
    """

    component = "nnef_hw.rtl.streams.concat:Split"
    label = "slice"
    costs = "slice"
    latency = 0
    is_registered = False

    runs: tuple[int, ...]
    turns: int
    kept: tuple[bool, ...]
    bits: int
    signed: bool
    lanes: int = 1

    def __post_init__(self) -> None:
        if len(self.kept) != len(self.runs) or not any(self.kept) or min(self.runs) < 1:
            raise ValueError(
                f"Split cannot give runs {self.runs!r} of which {self.kept!r} are kept"
            )

    @property
    def _counters(self) -> int:
        return sum(map(counter_bits, (sum(self.runs), len(self.runs), self.turns)))

    def runs_of(self, codes: IntArray) -> list[IntArray]:
        """Return the codes [beats, lanes] of every run, of codes [beats, lanes]."""
        turns = codes.reshape(-1, sum(self.runs), self.lanes)
        pieces = np.split(turns, np.cumsum(self.runs)[:-1], axis=1)
        return [piece.reshape(-1, self.lanes) for piece in pieces]

    def compute(self, codes: IntArray) -> IntArray:
        """Return the codes [beats, lanes] of the first run that is kept."""
        return self.runs_of(codes)[self.kept.index(True)]

    @property
    def features(self) -> Mapping[str, float]:
        return {"counter bits": self._counters}

    def flip_flops(self, device: Device) -> int:
        del device
        return self._counters

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        while True:
            for run, kept in zip(self.runs, self.kept, strict=True):
                for _ in range(run):
                    offered = yield origin
                    origin.accept((yield target, offered) if kept else offered)

    def result(self, component: Hardware) -> Hardware:
        return getattr(component, f"o{self.kept.index(True)}")
