"""Loops of a layer, and how many cycles passes take whose results leave one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import NamedTuple

from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import QUANTITIES
from nnef_hw.parts.engine.sizes import LEVELS

__all__ = ["Nest", "LayerPart", "Pass", "grouped", "issue_cycles", "paced"]


@dataclass(frozen=True)
class Nest:
    """Loops around the words of a layer: every address is a sum of what each loop adds to it.

    Parameters
    ----------
    counts
        Iterations of each loop, the innermost first; behind those of a layer there may be one over
        the frames of a batch.
    strides
        What one iteration of each loop adds, for every quantity (:data:`.QUANTITIES`).
    starts
        Where each quantity begins.
    in_codes
        Whether ``read`` counts codes, not words.
    packs
        Whether results go to one word after the other, whatever the loops are.
    """

    counts: tuple[int, ...]
    strides: Mapping[str, tuple[int, ...]]
    starts: Mapping[str, int]
    in_codes: bool = False
    packs: bool = False

    def __post_init__(self) -> None:
        assert len(self.counts) in {LEVELS, LEVELS + 1}, self.counts
        assert self.strides.keys() == self.starts.keys() == set(QUANTITIES)
        assert all(len(strides) == len(self.counts) for strides in self.strides.values())

    @property
    def words(self) -> int:
        """Words that are read."""
        return prod(self.counts)

    def steps(self, name: str) -> list[int]:
        """Return the changes of a quantity when a loop goes on and all inside begin again."""
        steps, inside = [], 0
        for count, stride in zip(self.counts, self.strides[name], strict=True):
            steps.append(stride - inside)
            inside += stride * (count - 1)
        return steps

    def part(self, level: int, first: int, count: int) -> Nest:
        """Return the loops of some iterations of one of them; its own memories begin at 0."""
        counts = (*self.counts[:level], count, *self.counts[level + 1 :])
        starts = {
            name: start + first * self.strides[name][level] for name, start in self.starts.items()
        }
        return Nest(counts, self.strides, {**starts, "weight": 0, "constant": 0})

    def batched(self, frames: int, read: int, write: int) -> Nest:
        """Return the loops for several frames, whose words are so far from one to the next.

        Words that are packed follow one another from frame to frame, too.
        """
        own = {"read": read, "write": 0 if self.packs else write}
        strides = {name: (*found, own.get(name, 0)) for name, found in self.strides.items()}
        return replace(self, counts=(*self.counts, frames), strides=strides)

    def grouped(self, results: int) -> Nest:
        """Return the loops with constants that are counted in groups of so many."""
        own = (*self.strides["constant"], self.starts["constant"])
        assert not any(number % results for number in own), own
        *strides, start = (number // results for number in own)
        return replace(
            self, strides={**self.strides, "constant": tuple(strides)},
            starts={**self.starts, "constant": start},
        )  # fmt: skip

    def extremes(self, name: str) -> tuple[int, int]:
        """Return the least and the greatest value of a quantity."""
        reaches = [
            stride * (count - 1)
            for count, stride in zip(self.counts, self.strides[name], strict=True)
        ]
        low, high = (sum(pick(reach, 0) for reach in reaches) for pick in (min, max))
        return self.starts[name] + low, self.starts[name] + high


class Pass(NamedTuple):
    """Words up to a last one whose sums are results, and how many results."""

    words: int
    results: int


def grouped(passes: Sequence[Pass], results: int) -> list[Pass]:
    """Return passes of which so many results leave together: those are counted as one."""
    return [Pass(words, -(-count // results)) for words, count in passes]


@dataclass(frozen=True)
class LayerPart:
    """Loops that run on what is there all at once: a layer, or a part of one.

    Parameters
    ----------
    nest
        The loops.
    passes, repeats
        Passes with results that come over and over, and how often.
    weights, constants
        Which of the layer's words of weights, and of its constants, it takes.
    records
        What its instruction says of it, if that is not the same for all parts of the layer.
    """

    nest: Nest
    passes: Sequence[Pass]
    repeats: int
    weights: range
    constants: range
    records: tuple[Record, ...] = ()

    def batched(self, frames: int, read: int, write: int) -> LayerPart:
        """Return the same for several frames, see :meth:`Nest.batched`."""
        nest = self.nest.batched(frames, read, write)
        return replace(self, nest=nest, repeats=frames * self.repeats)

    def grouped(self, results: int) -> LayerPart:
        """Return the same with results that leave together, and their constants, as one each."""
        if results == 1:
            return self
        constants = range(self.constants.start // results, self.constants.stop // results)
        return replace(
            self, nest=self.nest.grouped(results), passes=grouped(self.passes, results),
            constants=constants,
        )  # fmt: skip

    @property
    def cycles(self) -> int:
        """Cycles from the issue of its first word to that of its last one."""
        return issue_cycles(self.passes, self.repeats)


def paced(part: LayerPart, pace: int) -> LayerPart:
    """Return the part with so many cycles for every result."""
    if pace == 1:
        return part
    passes = [Pass(words, pace * results) for words, results in part.passes]
    return replace(part, passes=passes)


def issue_cycles(passes: Sequence[Pass], repeats: int) -> int:
    """Return the cycles from the issue of a layer's first word to that of its last one.

    A last word waits until as many cycles as the results of the pass before have gone by since that
    one's.

    Parameters
    ----------
    passes
        Passes that come over and over, ``repeats`` times.
    """

    def gap(before: Pass, this: Pass) -> int:
        return max(this.words, before.results)

    inner = sum(gap(before, this) for before, this in pairwise(passes))
    return passes[0].words + inner + (repeats - 1) * (gap(passes[-1], passes[0]) + inner)
