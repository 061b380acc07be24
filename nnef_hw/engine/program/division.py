"""Parts of layers that have room in an array's memories, and the runs of these layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from nnef_hw.engine.layers.formats import Most, Places, Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import LayerPart
from nnef_hw.engine.memory.placement import Placement
from nnef_hw.engine.memory.steps import Step
from nnef_hw.engine.program.weights import packed
from nnef_hw.errors import TargetError
from nnef_hw.parts.engine.program import MOST_CONSTANTS, Kind

__all__ = ["Division", "Run"]


class Run(NamedTuple):
    """A layer, for some frames: their number, and instructions.

    Attributes
    ----------
    step, layer
        What runs.
    parts
        What it is divided into.
    weight, constant
        First ones of the layer, of all weights and constants.
    """

    step: Step
    layer: EngineLayer
    parts: list[LayerPart]
    weight: int
    constant: int

    def follows(self, part: int, placement: Placement) -> bool:
        """Whether a part need not wait for results of the one before."""
        return part > 0 and not placement.meets(self.layer, part)


@dataclass(frozen=True, eq=False)
class Division:
    """Layers whose tensors have their places, divided into parts.

    Parameters
    ----------
    placement
        The network, and where its tensors are.
    ring_words
        Words of the memory that weights pass; 0 if all are in memory.
    packs_weights
        Whether two weights are one byte, of layers where they have 4 bits.
    """

    placement: Placement
    ring_words: int
    packs_weights: bool

    @property
    def layers(self) -> tuple[EngineLayer, ...]:
        """Layers in the order in which they run, then those that run once."""
        return self.placement.layers

    @property
    def shape(self) -> Shape:
        """Size of the array."""
        return self.placement.shape

    def is_packed(self, layer: EngineLayer) -> bool:
        """Whether two words of a layer's weights are one in memory."""
        return self.packs_weights and layer.has_narrow_weights

    @cached_property
    def parts(self) -> tuple[list[LayerPart], ...]:
        """Parts that each layer is divided into: with a ring, so that two parts have room in it.

        Of the first frame, where layers run for one after the other.
        """
        found: list[list[LayerPart]] = []
        weight = constant = 0
        for n, layer in enumerate(self.layers):
            frames = 1 if n < self.placement.frame_by_frame else self.placement.batch
            parts = self._parts(Step(Kind.RUN, n, 0, frames), weight, constant)
            longest = max(len(part.weights) for part in parts)
            if self.ring_words and longest > self.ring_words:
                raise TargetError(
                    f"layer {layer.name!r}: a pass takes {longest:,} words of weights, and the "
                    f"ring has {self.ring_words:,}",
                    remedy="take a larger array, or a larger ring",
                )
            weight += parts[-1].weights.stop
            constant += parts[-1].constants.stop * self.shape.results
            found.append(parts)
        return tuple(found)

    def _parts(self, step: Step, weight: int, constant: int) -> list[LayerPart]:
        """Return the parts of a layer for some frames, and with its first weight and constant."""
        layer, together = self.layers[step.n], self.shape.results
        most, is_packed = None, self.is_packed(layer)
        together_in_memory = 1 + is_packed
        if self.ring_words:
            words = together_in_memory * self.ring_words // 2
            most = Most(words, together * MOST_CONSTANTS)
        read, *others = self.placement.places_read(layer, step.first)
        write = self.placement.place(layer.tensor, step.first)
        places = Places(read, together_in_memory * weight, constant, write, tuple(others))
        if not layer.loops_over_frames:
            parts = [
                part
                for n in range(step.frames)
                for part in layer.parts(self.shape, self._shifted(layer, places, n), most)
            ]
        else:
            parts = layer.parts(self.shape, places, most)
        if is_packed:
            parts = packed(parts)
        if self.placement.batch > 1:
            parts = self._batched(layer, parts, step.frames)
        return [part.grouped(together) for part in parts]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Runs of layers, in their order; first those that run once, before the first frame."""
        weights = [0, *accumulate(parts[-1].weights.stop for parts in self.parts)]
        constants = [0, *accumulate(parts[-1].constants.stop for parts in self.parts)]
        found = []
        for step in (*self.placement.steps.beginnings, *self.placement.steps.sequence):
            if step.kind != Kind.RUN:
                continue
            layer, parts = self.layers[step.n], self.parts[step.n]
            tensors = {*layer.operands, layer.tensor}
            if any(
                self.placement.place(name, step.first) != self.placement.places[name]
                for name in tensors
            ):
                first = constants[step.n] * self.shape.results
                parts = self._parts(step, weights[step.n], first)
            if layer.rounds > 1:
                count = len(parts) // layer.rounds
                parts = parts[step.round * count : (step.round + 1) * count]
            found.append(Run(step, layer, parts, weights[step.n], constants[step.n]))
        return tuple(found)

    @cached_property
    def first_runs(self) -> tuple[Run, ...]:
        """Runs that happen once, before the first frame."""
        return self.runs[: len(self.placement.steps.beginnings)]

    def _batched(self, layer: EngineLayer, parts: list[LayerPart], frames: int) -> list[LayerPart]:
        """Return the parts of a layer for frames of a batch."""
        if not layer.loops_over_frames:
            return [part.batched(1, 0, 0) for part in parts]
        write = self.placement.tensor_words[layer.tensor]
        reads = [self.placement.tensor_words[layer.part_operand(n)] for n in range(len(parts))]
        return [
            part.batched(frames, words * (self.shape.lanes if part.nest.in_codes else 1), write)
            for words, part in zip(reads, parts, strict=True)
        ]

    def _shifted(self, layer: EngineLayer, places: Places, frame: int) -> Places:
        """Return the places of a frame behind the first one."""
        words = self.placement.tensor_words
        read, *others = (frame * words[name] for name in layer.read_tensors)
        return places._replace(
            read=places.read + read, write=places.write + frame * words[layer.tensor],
            others=tuple(map(sum, zip(places.others, others, strict=True))),
        )  # fmt: skip
