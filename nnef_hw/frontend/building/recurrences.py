"""Loops over a body: which of its values are known before the network runs, and which steps."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.ir import Node, Tensor

__all__ = ["MAX_TURNS", "LoopBody", "Pick", "needed", "pace", "picked"]

MAX_TURNS = 1024
"""Turns of a loop that are followed while a model is read."""

K = TypeVar("K", bound=Hashable)
K_co = TypeVar("K_co", bound=Hashable, covariant=True)


class Step(Protocol[K_co]):
    """An operator of a body; its values are names, or numbers."""

    @property
    def inputs(self) -> tuple[K_co, ...]:
        """Values that it reads."""

    @property
    def outputs(self) -> tuple[K_co, ...]:
        """Values that it computes."""


N = TypeVar("N", bound=Step[Hashable])


class LoopBody(Generic[K, N]):
    """A body of a loop whose turns differ in a counter, in states, and in steps of some values.

    Parameters
    ----------
    nodes
        Operators in execution order.
    carried
        Values that a turn passes on to the next: before and behind it.
    outer
        Values that are the same in all turns, and known only when the network runs.
    begun
        Values before a turn whose first one is known only when the network runs.

    Attributes
    ----------
    passed : set
        Carried values that no turn changes.
    unknown : set
        What is known only when the network runs.
    turning : set
        What is known before, and not the same in all turns.
    picks : list
        Nodes that read what is the same in all turns by something that is turning.
    computed : list
        All other nodes whose results are unknown.
    """

    def __init__(
        self,
        nodes: Sequence[N],
        carried: Sequence[tuple[K, K]],
        outer: Iterable[K],
        begun: Collection[K],
        counter: K | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.carried = tuple(carried)
        self.passed = {before for before, behind in carried if before == behind}
        steady = {*outer, *self.passed.intersection(begun)}
        roots = steady.union(begun)
        self.unknown = self._dependent(roots)
        while more := {b for b, behind in carried if behind in self.unknown} - roots:
            roots |= more
            self.unknown = self._dependent(roots)
        known = {b for b, _ in carried} - self.unknown - self.passed
        self.turning = self._dependent(known if counter is None else {*known, counter})
        self.turning -= self.unknown
        self.picks = [
            node
            for node in self.nodes
            if not self.turning.isdisjoint(node.inputs)
            and not steady.isdisjoint(node.inputs)
            and self.unknown.intersection(node.inputs) <= steady
        ]
        self.computed = [
            node
            for node in self.nodes
            if node not in self.picks and not self.unknown.isdisjoint(node.outputs)
        ]

    @property
    def states(self) -> list[tuple[K, K]]:
        """Carried values that are computed when the network runs."""
        return [
            (before, behind)
            for before, behind in self.carried
            if before in self.unknown and before not in self.passed
        ]

    def _dependent(self, roots: Iterable[K]) -> set[K]:
        found = set(roots)
        for node in self.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)  # type: ignore[arg-type]
        return found


def needed(nodes: Sequence[N], wanted: Iterable[K], given: Collection[K]) -> list[N]:
    """Return the nodes that compute what is wanted from what is given."""
    open_values, found = set(wanted).difference(given), list[N]()
    for node in reversed(nodes):
        if not open_values.isdisjoint(node.outputs):
            open_values.update(set(node.inputs).difference(given))  # type: ignore[arg-type]
            found.append(node)
    return found[::-1]


class Pick(NamedTuple):
    """One index of an axis of a tensor: its axis is left out, or has one element."""

    source: str
    axis: int
    place: int


_KEEPING = {"copy", "reshape", "squeeze", "unsqueeze"}
"""Operators that leave a tensor's elements where they are."""


def picked(builder: Builder, start: int, tensor: Tensor) -> Pick | None:
    """Return which step of an input a tensor is; None if it is anything else.

    Parameters
    ----------
    start
        The number of nodes before those that compute the tensor.
    """
    producers = {name: node for node in builder.nodes[start:] for name in node.outputs}
    node: Node | None = producers.get(tensor.name)
    while node is not None and node.op in _KEEPING:
        node = producers.get(node.inputs[0])
    if node is None or node.inputs[0] not in builder.inputs:
        return None
    if node.op == "slice" and len(node.attrs["axes"]) == 1:
        [axis], [begin], [end] = (node.attrs[key] for key in ("axes", "begin", "end"))
        if end == begin + 1:
            return Pick(node.inputs[0], axis, begin)
    elif node.op == "gather":
        indices = builder.tensors[node.inputs[1]].data
        if indices is not None and indices.size == 1:
            return Pick(node.inputs[0], node.attrs["axis"], int(indices.reshape(-1)[0]))
    return None


def pace(indices: Sequence[int], extent: int) -> int:
    """Return 1 or -1 if indices are all of an axis forwards or backwards; 0 if they are not."""
    whole = list(range(extent))
    if list(indices) == whole:
        return 1
    return -1 if list(indices) == whole[::-1] else 0
