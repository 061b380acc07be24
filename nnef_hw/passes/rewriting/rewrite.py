"""The interface of passes, and their order by what each says of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar, TypeAlias

from nnef_hw.ir import Graph

__all__ = ["Pass", "Reasons", "in_order"]


class Pass(ABC):
    """A rewriting of graphs; a group of passes repeats it until none of them has work.

    Attributes
    ----------
    after, before
        Passes of the same group that must run before and behind this one, by class, each with the
        reason in one sentence.
    """

    __slots__ = ()

    after: ClassVar[Reasons] = {}
    before: ClassVar[Reasons] = {}

    @abstractmethod
    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph; the same object if there was nothing to do."""

    @property
    def name(self) -> str:
        """Name of the pass's class."""
        return type(self).__name__


Reasons: TypeAlias = Mapping[type[Pass], str]


def in_order(passes: Iterable[Pass]) -> tuple[Pass, ...]:
    """Sort passes by their declarations; free passes keep the order in which they are listed.

    Raises
    ------
    ValueError
        If declarations contradict each other: the names of the passes in a circle.
    """
    waiting = {type(each): each for each in passes}
    first: dict[type[Pass], set[type[Pass]]] = {kind: set() for kind in waiting}
    for kind in waiting:
        first[kind] |= kind.after.keys() & first.keys()
        for other in kind.before.keys() & first.keys():
            first[other].add(kind)
    try:
        TopologicalSorter(first).prepare()
    except CycleError as error:
        circle = " < ".join(kind.__name__ for kind in error.args[1])
        raise ValueError(f"the order of passes contradicts itself: {circle}") from None
    found: list[Pass] = []
    while waiting:
        ready = next(kind for kind in waiting if first[kind].isdisjoint(waiting))
        found.append(waiting.pop(ready))
    return tuple(found)
