"""The pipeline of a shared engine: the cycles from one place of it to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from nnef_hw.parts.engine.array import MultiplierArray
from nnef_hw.parts.engine.codes import Codes
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.program import MOST_CONSTANTS
from nnef_hw.parts.engine.requantizer import SecondRounding, SharedRequantizer
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.parts.engine.supply import Supply

__all__ = ["EnginePipeline"]

FeatureT = TypeVar("FeatureT", bound=Feature)


@dataclass(frozen=True, eq=False)
class EnginePipeline:
    """Cycles of the engine's steps; none of these ever waits inside."""

    engine: EngineSizes
    array: MultiplierArray
    requantizer: SharedRequantizer
    codes: Codes
    features: Sequence[Feature]
    is_spread: bool

    def _find(self, kind: type[FeatureT]) -> FeatureT | None:
        return next((x for x in self.features if isinstance(x, kind)), None)

    @property
    def read_stage(self) -> int:
        """Cycles from the issue of a word until it is read; and from a row's address to the row."""
        return 1 + self.is_spread

    @cached_property
    def requantizer_delay(self) -> int:
        """Cycles from a sum to its code: constant, bias, multipliers, (first) rounding, limits."""
        again = SecondRounding.cycles if self._find(SecondRounding) else 0
        return self.constant_cycles + self.requantizer.stages + 2 + again

    @property
    def constant_cycles(self) -> int:
        """Cycles from the address of constants, a cycle ahead of the sums, to their sum."""
        return 2 if self.is_spread else 1

    def other_stage(self, *, by_lane: bool) -> int:
        """Return the cycles from the issue of a pass's last word to that in which none is, then.

        A word is read ``read_stage`` cycles after its issue, and what is added to the first result
        in that in which this comes from the requantizer, or in the next one if it is added bit by
        bit.
        """
        later = int(self.slow_pace > 1) + 1 - self.read_stage
        return self.keep_stage(by_lane=by_lane) + self.requantizer_delay + later

    @property
    def freed_cycles(self) -> int:
        """Cycles from the end of an instruction until the places of what it read can be taken."""
        return 1 + self.read_stage

    @property
    def operand_stage(self) -> int:
        """Cycles from the issue of a word to its codes and weights at the multipliers."""
        return self.read_stage + (1 if self.engine.is_direct else 1 + self.code_cycles)

    @property
    def address_cycles(self) -> int:
        """Cycles from the address of a word of codes or weights until it is at the memory."""
        return int(self.is_spread)

    @cached_property
    def code_cycles(self) -> int:
        """Cycles from the address of a word of codes to the word."""
        return self.address_cycles + (3 if self.is_spread else 1)

    @property
    def write_cycles(self) -> int:
        """Cycles from a word that is collected until it is written.

        What the feed takes is written as late, which nothing has to wait for.
        """
        return 1 + self.address_cycles

    @property
    def sum_stage(self) -> int:
        """Cycles from the issue of a word until its products are added."""
        return self.operand_stage + 2 + self.product_cycles

    @property
    def product_cycles(self) -> int:
        """Registers behind the multipliers besides their own."""
        return int(self.is_spread)

    def keep_stage(self, *, by_lane: bool) -> int:
        """Return the cycles from the issue of the last word of a pass until its sums are kept."""
        return self.sum_stage + 1 + (0 if by_lane else self.array.tree_cycles)

    def drain(self, *, adds: bool) -> int:
        """Return the cycles after a layer's last word was issued in which nothing else begins.

        The first word that an instruction reads two cycles later finds all codes written.

        Parameters
        ----------
        adds
            Whether the layer's codes are added to others.
        """
        array = self.array
        results = (array.rows // array.results - 1) * self.pace(adds=adds) + 1
        behind = self.requantizer_delay
        behind += sum(feature.delay(self.engine, adds=adds) for feature in self.features)
        residual = self._find(TensorSums)
        # a write to single-port RAM may wait for a cycle
        waits = int(self.codes.single_port is not None and residual is not None
                    and not residual.is_serial)  # fmt: skip
        waits += self.write_cycles - 1
        return self.keep_stage(by_lane=False) - 1 + results + behind + waits

    @cached_property
    def slow_pace(self) -> int:
        """Cycles per result of a layer to which another tensor is added, if there are any."""
        residual = self._find(TensorSums)
        return max(self.requantizer.cycles, 1 if residual is None else residual.cycles)

    def pace(self, *, adds: bool) -> int:
        """Return the cycles from a result of a pass to the next one."""
        return self.slow_pace if adds else self.requantizer.cycles

    @cached_property
    def setup(self) -> int:
        """Cycles in which an instruction is read: from the first row until its fields are there."""
        return self.engine.layout.rows + self.read_stage

    def settle(self, *, adds: bool) -> int:
        """Return the cycles after a layer's last word before the next one begins, at least."""
        layout = self.engine.layout
        rows = layout.rows - layout.late_row + self.read_stage - 1
        return self.drain(adds=adds) + rows - self.late_ahead

    @cached_property
    def late_ahead(self) -> int:
        """Cycles by which these rows are read before the last codes are written.

        A row is there ``read_stage`` cycles later, of which one is not needed. What the requantizer
        and all before it need is in a single row; it comes when they are through. Codes that are
        collected to words in two ways are behind it.
        """
        layout = self.engine.layout
        behind = any(feature.is_behind(self.engine) for feature in self.features)
        return self.read_stage - 1 + int(not behind and layout.rows - layout.late_row == 1)

    @property
    def border_cycles(self) -> int:
        """Cycles from the begin of an instruction until the loader and the sender know of it."""
        return int(self.is_spread)

    @property
    def before_passage(self) -> int:
        """Cycles from the begin of an instruction until a unit's first word is read.

        In the cycle before, the last word of the layer before may still be written.
        """
        return 2

    @property
    def before_load(self) -> int:
        """Cycles from the begin of a load to its first code, padding included."""
        return self.border_cycles + 1

    @property
    def border_delay(self) -> int:
        """Cycles from the last code that is loaded or sent until the instruction ends."""
        return 1

    @property
    def before_send(self) -> int:
        """Cycles from the begin of a send until its first code is offered."""
        return self.border_cycles + 2 + self.between_words

    @property
    def between_words(self) -> int:
        """Cycles from the last code of a word that is offered to the first one of the next."""
        return 2 if self.engine.is_direct else 2 + self.code_cycles

    @property
    def word_cycles(self) -> int:
        """Cycles from the address of a word that is sent, or passes a unit, until it is there."""
        return self.between_words - 1

    @cached_property
    def constants_ahead(self) -> int:
        """Constants that may come before those of instructions that run are freed.

        Results on their way still need those of the instruction that has ended last, and, if the
        next one ends before they have left, of the one before.
        """
        array = self.array
        [supply] = [x for x in self.features if isinstance(x, Supply)]
        groups = array.rows // array.results
        ended = 1
        for pace in {self.pace(adds=False), self.slow_pace}:
            needed = self.keep_stage(by_lane=False) + groups * pace + 1
            # A pass that alone is added bit by bit has at least so many words.
            words = array.lanes * pace if pace > self.pace(adds=False) else 2
            if self.setup + 1 + words < needed:
                ended = 2
        return supply.constants - ended * max(MOST_CONSTANTS, groups)
