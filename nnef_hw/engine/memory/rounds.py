"""Attention head by head: of scores and probabilities, those of one head at a time are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.formats import Image
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.unit import UnitLayer

__all__ = ["Rounds", "find_rounds", "in_rounds"]


class Rounds(NamedTuple):
    """Layers that run in turn for one head, then for the next one.

    Attributes
    ----------
    layers
        Numbers of the layers: a product of two activations first and last, units between.
    times
        How often they run: heads, or other matrices.
    """

    layers: range
    times: int

    def begin(self, layer: int) -> int:
        """Return the layer with which the result of a layer begins to come."""
        return self.layers[0] if layer == self.layers[-1] else layer

    def end(self, layer: int, *, is_inside: bool) -> int:
        """Return the layer with which a tensor is read last that a layer reads.

        A tensor from ``is_inside`` is another one in every round.
        """
        return self.layers[-1] if layer in self.layers and not is_inside else layer


def find_rounds(layers: Sequence[EngineLayer], kept: Collection[str]) -> Iterator[Rounds]:
    """Yield the layers that may run in rounds.

    Parameters
    ----------
    kept
        Names of tensors that have to be there as a whole.
    """
    readers = Counter(name for layer in layers for name in layer.operands)

    def is_passed(layer: EngineLayer) -> bool:
        return readers[layer.tensor] == 1 and layer.tensor not in kept

    behind = 0
    for first, layer in enumerate(layers):
        if not isinstance(layer, ContractionLayer) or layer.stays or layer.groups == 1:
            continue
        if first < behind:
            continue
        for n in range(first + 1, len(layers)):
            before, own = layers[n - 1], layers[n]
            if not is_passed(before) or own.operand != before.tensor or own.row is not None:
                break
            if isinstance(own, ContractionLayer):
                is_alike = own.row_order == layer.row_order and own.rows_view is None
                if is_alike and own.second != before.tensor and not own.stays:
                    behind = n + 1
                    yield Rounds(range(first, behind), layer.groups)
                break
            if not isinstance(own, UnitLayer):
                break


def in_rounds(layers: Sequence[EngineLayer], found: Sequence[Rounds]) -> tuple[EngineLayer, ...]:
    """Return the layers, of which some give and read what is there of a round."""
    changed = list(layers)
    for rounds in found:
        first, *_, last = rounds.layers
        for n in rounds.layers:
            images: Fields = {}
            if n != first:
                images["source"] = _of_round(layers[n].source, rounds.times)
            if n != last:
                images["target"] = _of_round(layers[n].target, rounds.times)
            changed[n] = replace(layers[n], rounds=rounds.times, **images)
    return tuple(changed)


def _of_round(image: Image, count: int) -> Image:
    return Image(image.pixels // count, 1, image.channels)
