"""The units of a program: which layers share one, and what it holds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.unit import UnitForm, UnitLayer
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.units import StreamUnit, StreamUnits

__all__ = ["Units"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Units:
    """The parts that tensors of some layers pass: one for all of a kind.

    Parameters
    ----------
    layers
        All layers of the program.
    ram
        The device's block RAM.
    form
        How fast units are.
    is_written
        Whether the program is written, and tables with it.
    is_empty
        Whether there are no tables before it is.
    frames
        Frames of a batch.
    existing
        The units that a bitstream has already; None to make some.
    """

    layers: Sequence[EngineLayer]
    ram: BlockRam
    form: UnitForm
    is_written: bool
    is_empty: bool
    frames: int
    existing: StreamUnits | None = None

    @cached_property
    def _kinds(self) -> Mapping[Hashable, list[UnitLayer]]:
        """Layers of each unit."""
        found: dict[Hashable, list[UnitLayer]] = {}
        for layer in self.layers:
            if isinstance(layer, UnitLayer):
                found.setdefault(layer.kind, []).append(layer)
        return found

    @property
    def peers(self) -> Sequence[Sequence[UnitLayer]]:
        """Layers of each unit, in the order of their numbers."""
        return list(self._kinds.values())

    @cached_property
    def units(self) -> tuple[StreamUnit, ...]:
        """The units, in the same order."""
        if self.existing is not None:
            return self.existing.units
        return tuple(
            replace(
                peers[0].unit(peers, self.ram, self.form, is_written=self.is_written),
                pixels=self.frames * max(layer.source.pixels for layer in peers),
            )
            for peers in self.peers
        )

    def may_take_words(self, shape: Shape) -> bool:
        """Whether all units can take a word at once."""
        return all(layer.takes_words(shape, self.ram) for peers in self.peers for layer in peers)

    def number(self, layer: UnitLayer) -> int:
        """Return the number of a layer's unit."""
        return list(self._kinds).index(layer.kind)

    def of(self, layer: UnitLayer) -> StreamUnit:
        """Return a layer's unit."""
        return self.units[self.number(layer)]

    def records(self, layer: UnitLayer) -> Sequence[Record]:
        """Return the records of a layer's instruction for its unit."""
        return layer.own_records(self._kinds[layer.kind], self.of(layer))

    @property
    def contents(self) -> Sequence[AttributeMap]:
        """Contents of each unit's part."""
        return [{} if self.is_empty else peers[0].contents(peers) for peers in self.peers]

    @property
    def table_beats(self) -> list[int]:
        """Tables of all units as beats of a program that is written."""
        if not self.is_written:
            return []
        return [
            beat
            for peers, unit in zip(self.peers, self.units, strict=True)
            for beat in peers[0].table_beats(peers, unit)
        ]
