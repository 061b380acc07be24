"""Layers of a deep network as blocks, by the numbers in their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from nnef_hw.report.model.layers import LayerReport
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import units

__all__ = ["Block", "blocks", "each_alone"]

MANY = 20
"""Layers of the longest network that is shown layer by layer."""
FEWEST = 3
"""Layers of a block: fewer are shown by themselves."""

_NUMBER = re.compile(r"[A-Za-z][_.]?\d+(?=[_./])")
"""A number within a name: after ``encoder_layers_0`` in ``encoder_layers_0_norm1``."""


@dataclass(frozen=True, slots=True)
class Block:
    """Layers that follow each other and belong together; or one layer, whose block has no name."""

    name: str
    layers: tuple[LayerReport, ...]

    def cycles(self, report: Report) -> int:
        """Cycles of the slowest layer, or of all of them where one array computes them in turn."""
        join = sum if report.in_turn else max
        return join(layer.cycles for layer in self.layers)

    def multipliers(self, report: Report) -> int:
        """Multipliers of all layers, or of the array that they share."""
        join = max if report.in_turn else sum
        return join(layer.multipliers for layer in self.layers)

    @property
    def images(self) -> str:
        """Images of the first layer's input and of the last layer's result."""
        first, last = self.layers[0], self.layers[-1]
        return f"{units.image(first.input_image)} → {units.image(last.output_image)}"

    def least(self, noise: Mapping[str, float | None]) -> float | None:
        """Signal to noise of the layer with the least, in dB; None if that of none is known."""
        known = [noise.get(layer.name) for layer in self.layers]
        return min((value for value in known if value is not None), default=None)

    def placed(self, layers: Mapping[str, Mapping[str, int]]) -> int:
        """LUTs of all layers as placed."""
        return sum(layers.get(layer.name, {}).get("lut", 0) for layer in self.layers)


def each_alone(layers: Sequence[LayerReport]) -> tuple[Block, ...]:
    """Return every layer by itself."""
    return tuple(Block("", (layer,)) for layer in layers)


def blocks(layers: Sequence[LayerReport]) -> tuple[Block, ...]:
    """Return all layers in order, those of a block together; of short networks each by itself.

    Names that are equal up to a number are of one block. It is the first number that is not the
    same in all names. A layer without one between two of the same block belongs to it, too.
    """
    if len(layers) <= MANY:
        return each_alone(layers)
    return tuple(_joined(layers, _filled(_heads([layer.name for layer in layers]))))


def _joined(layers: Sequence[LayerReport], heads: Sequence[str]) -> Iterator[Block]:
    rows = zip(heads, layers, strict=True)
    for head, run in groupby(rows, key=lambda row: row[0]):
        members = tuple(layer for _, layer in run)
        if head and len(members) >= FEWEST:
            yield Block(head, members)
        else:
            yield from each_alone(members)


def _heads(names: Sequence[str]) -> list[str]:
    """Return names up to the number that tells blocks apart, empty ones where there is none."""
    found = [[name[: place.end()] for place in _NUMBER.finditer(name)] for name in names]
    for level in range(max(map(len, found))):
        heads = [each[level] if len(each) > level else "" for each in found]
        if len({head for head in heads if head}) > 1:
            return heads
    return [""] * len(names)


def _filled(heads: Sequence[str]) -> list[str]:
    """Give layers without a head that of the block on both sides."""
    before, found = "", []
    for n, head in enumerate(heads):
        after = next((other for other in heads[n:] if other), "")
        before = head or before
        found.append(before if before == after else head)
    return found
