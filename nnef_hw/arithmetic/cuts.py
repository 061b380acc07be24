"""Cuts of a graph of adders: registers behind a level hold all values that pass there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nnef_hw.arithmetic.adders import AdderGraph

__all__ = ["Cuts", "Held"]


@dataclass(frozen=True, kw_only=True)
class Held:
    """Bits of a value that a cut holds, and how many of them an adder or a clip gives there."""

    bits: int
    computed: int


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """The fewest cuts of a graph with which no path between two has more adders than ``chained``.

    The code of a result counts as an adder behind its sum, as what clips it takes as long. Every
    path crosses every cut once, so all results of a beat are there in the same cycle. Of equally
    few cuts those are taken that hold the fewest bits.

    Parameters
    ----------
    graph
        Values that come to it are level 0, an adder is a level above its operands.
    code_bits
        Bits of the code of each result.
    chained
        Adders that one cycle has time for, one or more.
    """

    graph: AdderGraph
    code_bits: int
    chained: int

    @property
    def levels(self) -> int:
        """Adders of the longest path, with its code."""
        return self.graph.depth + 1

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Levels behind which there is a cut, in ascending order."""
        levels, chained = self.levels, self.chained
        count = -(-levels // chained) - 1
        bits = self._bits
        # Of every level, the fewest bits with so many cuts up to and at it, and where they are.
        best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
        for _ in range(count):
            best = {
                level: min(
                    (held + bits[level], (*before, level))
                    for last, (held, before) in best.items()
                    if 0 < level - last <= chained
                )
                for level in range(1, levels)
                if any(0 < level - last <= chained for last in best)
            }
        return min(cuts for last, cuts in best.items() if levels - last <= chained)[1]

    def stage(self, level: int) -> int:
        """Return how many cuts are before what is computed at a level."""
        return sum(place < level for place in self.places)

    @cached_property
    def last_uses(self) -> tuple[int, ...]:
        """The highest level of what takes each value; 0 of one that nothing takes."""
        graph = self.graph
        last = [0] * len(graph.levels)
        for number, adder in enumerate(graph.adders, graph.inputs):
            for value in (adder.first, adder.second):
                if value is not None:
                    last[value] = max(last[value], graph.levels[number])
        for value in self._sums:
            last[value] = max(last[value], graph.levels[value] + 1)
        return tuple(last)

    @property
    def held(self) -> Iterator[Held]:
        """Yield the bits that cuts hold, value by value; codes behind sums."""
        graph = self.graph
        adder_bits = (*(0,) * graph.inputs, *graph.adder_bits)
        facts = zip(graph.levels, self.last_uses, graph.widths, adder_bits, strict=True)
        codes = ((graph.levels[value] + 1, self.levels, *(self.code_bits,) * 2)
                 for value in self._sums)  # fmt: skip
        for level, last, width, computed in (*facts, *codes):
            crossed = [place for place in self.places if level <= place < last]
            for n, place in enumerate(crossed):
                is_fresh = n == 0 and level > self._cut_before(place)
                yield Held(bits=width, computed=computed if is_fresh else 0)

    @property
    def bits(self) -> int:
        """Bits of all registers at cuts."""
        return sum(self._bits[place] for place in self.places)

    @cached_property
    def _bits(self) -> tuple[int, ...]:
        """Bits that a cut behind each level holds."""
        graph = self.graph
        bits = [0] * self.levels
        for level, last, width in zip(graph.levels, self.last_uses, graph.widths, strict=True):
            for place in range(level, last):
                bits[place] += width
        for value in self._sums:
            for place in range(graph.levels[value] + 1, self.levels):
                bits[place] += self.code_bits
        return tuple(bits)

    @property
    def _sums(self) -> Iterator[int]:
        return (value for value in self.graph.results if value is not None)

    def _cut_before(self, place: int) -> int:
        """Return the cut before one, 0 for the registers of what comes."""
        return max((other for other in self.places if other < place), default=0)
