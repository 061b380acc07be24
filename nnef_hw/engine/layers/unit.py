"""Layers whose codes pass a part of the streaming architecture, from memory to memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.engine.layers.formats import Most, Places, Shape
from nnef_hw.engine.layers.layer import AnyContext, EngineLayer
from nnef_hw.engine.layers.nest import LayerPart, Nest, Pass
from nnef_hw.engine.layers.scale import Scale
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import QUANTITIES
from nnef_hw.parts.engine.sizes import CODE_BITS, LEVELS
from nnef_hw.parts.engine.units import StreamUnit

__all__ = ["ALONE", "UnitForm", "UnitLayer"]


class UnitForm(NamedTuple):
    """A form of units decides how fast they are.

    Attributes
    ----------
    pace
        Cycles per beat that they may take.
    lanes
        Codes of a beat: 1, or those of a word.
    """

    pace: int = 1
    lanes: int = 1


ALONE = UnitForm()
"""Form of a unit that takes a code per cycle."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitLayer(EngineLayer):
    """A tensor that is sent through a unit, code by code, and whose results are loaded.

    The array has no part in it: it has no weights, no sums and no passes of results. What a unit
    is made of follows from all layers that share it, *peers* of each other.

    Parameters
    ----------
    before, behind
        Formats of the codes that are sent, and of those that come back.
    """

    before: QType
    behind: QType

    @staticmethod
    def of_unit(context: AnyContext) -> Fields:
        """Return the fields that all of them have."""
        layer = context.layer
        return {
            **context.common, "pad": 0, "scale": Scale.identity(context.target.high),
            "before": layer.source, "behind": layer.target,
        }  # fmt: skip

    @property
    def may_add(self) -> bool:
        return False

    @property
    def may_look_up(self) -> bool:
        return False

    @property
    def written_over(self) -> str | None:
        # a pixel's results leave when all of its codes have come
        return self.operand

    def beats(self, lanes: int) -> int:
        """Return the beats of so many codes that are sent, or come back, whichever are more."""
        return max(image.words(lanes) for image in (self.source, self.target))

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Key of layers that may share a unit."""

    def passed(self, part: Part) -> Part:
        """Return a unit's part with the sizes that the layer's pixels have on their way."""
        return part

    @abstractmethod
    def part(self, peers: Sequence[Self], ram: BlockRam, form: UnitForm) -> Part:
        """Return the part of a unit for all peers, of which this is one."""

    def takes_words(self, shape: Shape, ram: BlockRam) -> bool:
        """Whether there is a part that takes a word of codes at once."""
        del shape, ram
        return False

    def unit(
        self, peers: Sequence[Self], ram: BlockRam, form: UnitForm, *, is_written: bool
    ) -> StreamUnit:
        """Return the unit of peers; tables are written with the program, or there for ever.

        It takes and gives codes as the engine has them, unsigned, unless a layer says otherwise.
        """
        del is_written
        part = self.part(peers, ram, form)
        return StreamUnit(part=part, source=(self.widest(peers), False), target=(CODE_BITS, False))

    def contents(self, peers: Sequence[Self]) -> AttributeMap:
        """Return the contents of the unit's part, unless its tables come with the program."""
        del peers
        return {}

    def table_beats(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[int]:
        """Return the unit's tables as beats of a program that is written."""
        del peers, unit
        return ()

    def own_records(self, peers: Sequence[Self], unit: StreamUnit) -> Sequence[Record]:
        """Return the records for the unit in the layer's instruction."""
        del peers, unit
        return ()

    def missing(self, unit: StreamUnit) -> Iterator[str]:
        """Yield the capabilities that the unit of a bitstream lacks for the layer."""
        del unit
        return iter(())

    @property
    def has_constants(self) -> bool:
        """Whether every channel has a word of constants."""
        return False

    def constants(self, unit: StreamUnit) -> Sequence[int]:
        """Return the constants of all channels, as the unit takes them in turn."""
        del unit
        return ()

    @classmethod
    def widest(cls, peers: Sequence[UnitLayer]) -> int:
        """Return the most bits of codes that pass."""
        return max(layer.before.bits for layer in peers)

    def nest(self, shape: Shape, places: Places) -> Nest:
        del shape
        return Nest(
            counts=(1,) * LEVELS, strides=dict.fromkeys(QUANTITIES, (0,) * LEVELS),
            starts={
                **dict.fromkeys(QUANTITIES, 0), "read": places.read, "write": places.write,
                "weight": places.weight, "constant": places.constant,
            },
        )  # fmt: skip

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        del shape
        return [Pass(self.beats(1), 0)], 1

    def part_level(self, shape: Shape) -> int:
        del shape
        return LEVELS - 1

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        nest = self.nest(shape, places if most is None else places._replace(weight=0, constant=0))
        constants = range(len(self.bias(shape)))
        return [LayerPart(nest, *self.passes(shape), range(0), constants)] * self.rounds

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        return np.zeros((0, *shape.multipliers), np.int64)

    def bias(self, shape: Shape) -> IntArray:
        words = -(-self.source.channels // shape.results) if self.has_constants else 0
        return np.zeros(words * shape.results, np.int64)

    def per_result(self, values: Sequence[int], shape: Shape, default: int = 0) -> list[int]:
        del values, shape, default
        return []
