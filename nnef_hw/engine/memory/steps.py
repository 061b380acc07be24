"""Steps of a batch: inputs are loaded, layers run, outputs are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from nnef_hw.engine.memory.rounds import Rounds
from nnef_hw.parts.engine.program import Kind

__all__ = ["Step", "Steps"]


class Step(NamedTuple):
    """A step for some frames of a batch: ``n`` is the number of an input, layer or output.

    Of a layer that runs several times in a frame it is one ``round``.
    """

    kind: Kind
    n: int
    first: int
    frames: int
    round: int = 0


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps of a network's batch, in their order.

    Parameters
    ----------
    inputs, outputs
        How many are loaded and sent.
    layers, once
        Layers that run in every frame, and those behind them that run before the first one.
    batch
        Frames that are computed together.
    frame_by_frame
        How many layers still run for one frame after the other, as each is loaded.
    rounds
        Layers that run several times in a frame.
    """

    inputs: int
    outputs: int
    layers: int
    once: int
    batch: int
    frame_by_frame: int
    rounds: Sequence[Rounds]

    @cached_property
    def sequence(self) -> tuple[Step, ...]:
        """Steps of a batch, in their order."""
        alone, layers = self.frame_by_frame, range(self.layers)
        together = [
            Step(Kind.RUN, n, 0, self.batch, number)
            for own, times in self._in_turn(layers[alone:])
            for number in range(times)
            for n in own
        ]
        behind = (*together, *self._transfers(Kind.SEND, self.outputs))
        if not alone:
            return (*self._transfers(Kind.LOAD, self.inputs), *behind)
        before = (
            step
            for frame in range(self.batch)
            for step in (
                *(Step(Kind.LOAD, n, frame, 1) for n in range(self.inputs)),
                *(Step(Kind.RUN, n, frame, 1) for n in layers[:alone]),
            )
        )
        return (*before, *behind)

    def _in_turn(self, layers: range) -> Iterator[tuple[range, int]]:
        """Yield layers that follow each other, and how often they do."""
        n = layers.start
        for rounds in self.rounds:
            yield from ((range(x, x + 1), 1) for x in range(n, rounds.layers.start))
            yield rounds
            n = rounds.layers.stop
        yield from ((range(x, x + 1), 1) for x in range(n, layers.stop))

    @property
    def beginnings(self) -> tuple[Step, ...]:
        """Steps that run once, before the first frame: states get their initial values."""
        layers = range(self.layers, self.layers + self.once)
        return tuple(Step(Kind.RUN, n, 0, 1) for n in layers)

    @property
    def turn(self) -> tuple[Step, ...]:
        """Steps of a batch without those of further frames that are as the first one's before.

        Nor with further rounds of a layer.
        """
        steps = tuple(x for x in self.sequence if not x.round)
        if not self.frame_by_frame:
            return steps
        return tuple(x for x in steps if not x.first or x.kind == Kind.SEND)

    @property
    def loads_of_turn(self) -> int:
        """Steps of a turn that load an input: layers follow, by their numbers."""
        return sum(step.kind == Kind.LOAD for step in self.turn)

    @property
    def loads(self) -> tuple[Step, ...]:
        """Steps that load the inputs of a batch."""
        return tuple(step for step in self.sequence if step.kind == Kind.LOAD)

    @property
    def sends(self) -> tuple[Step, ...]:
        """Steps that send the outputs of a batch."""
        return tuple(step for step in self.sequence if step.kind == Kind.SEND)

    def _transfers(self, kind: Kind, ports: int) -> tuple[Step, ...]:
        # Several ports take turns, since only a frame of each can wait in the host link.
        if ports == 1:
            return (Step(kind, 0, 0, self.batch),)
        return tuple(Step(kind, n, frame, 1) for frame in range(self.batch) for n in range(ports))
