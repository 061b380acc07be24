"""Tables of what follows from one integer input alone: a row for each integer it may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nnef_hw.ir import Graph, Node, Tensor, Trait
from nnef_hw.reference.real.program import as_array
from nnef_hw.reference.real.registry import Array, Evaluation, evaluate

__all__ = ["IntegerTable", "IntegerTables", "is_integer_input"]

MOST_INTEGERS = 1 << 16
"""An input with more of them has no table."""

MOST_NUMBERS = 1 << 24
"""Of a table."""

_COMPARISONS = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})


class IntegerTable(NamedTuple):
    """A tensor for every integer of an input: ``values`` are [R, *shape]."""

    source: str
    values: Array


def is_integer_input(graph: Graph, name: str) -> bool:
    """Whether an input holds integers that no author has quantized."""
    tensor = graph.tensor(name)
    return tensor.dtype == "integer" and tensor.quant is None


class IntegerTables:
    """Tables of the tensors of a graph that depend on one integer of one input.

    An input holds integers from 0 on: as many as the smallest table has rows that it indexes, or
    a range of constants that it is compared with has numbers. Real numbers are computed further
    only as long as all their readers are functions of them.

    Attributes
    ----------
    counts : dict
        How many integers an input may hold, where that can be told.
    found : dict
        The tables, by tensor.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.counts: dict[str, int] = {}
        self.found: dict[str, IntegerTable] = {}
        for name in graph.inputs:
            if not is_integer_input(graph, name) or graph.tensor(name).volume != 1:
                continue
            limit = max((n for _, n in self._bounds(name)), default=0)
            if not 0 < limit <= MOST_INTEGERS:
                continue
            self.found |= self._tabulated(name, limit, only_integers=True)
            count = min(self._allowed(name, limit), limit)
            self.found = {key: x for key, x in self.found.items() if x.source != name}
            if count:
                self.counts[name] = count
                self.found |= self._tabulated(name, count)

    def _bounds(self, name: str) -> Iterator[tuple[Node, int]]:
        """Yield nodes that tell how many integers there are at most, and that number."""
        graph, reached = self._graph, self._graph.dependents([name])
        for node in graph.nodes:
            if node.op == "gather" and node.inputs[1] in reached:
                yield node, graph.tensor(node.inputs[0]).shape[node.attrs["axis"]]
            elif node.op in _COMPARISONS and not reached.isdisjoint(node.inputs):
                for data in (graph.tensor(other).data for other in node.inputs):
                    if data is not None and data.size > 1 and not np.isnan(data).any():
                        yield node, int(min(data.max(), MOST_INTEGERS)) + 1

    def _allowed(self, name: str, limit: int) -> int:
        """Return how many integers are allowed by all that bounds them."""
        counts = [limit]
        for node, bound in self._bounds(name):
            if node.op != "gather":
                counts.append(bound)
            elif node.inputs[1] in self.found:
                index = self.found[node.inputs[1]].values.reshape(limit, -1)
                is_outside = ((index < -bound) | (index >= bound)).any(axis=1)
                counts.append(int(is_outside.argmax()) if is_outside.any() else limit)
        return min(counts)

    def _tabulated(
        self, name: str, count: int, *, only_integers: bool = False
    ) -> dict[str, IntegerTable]:
        """Return the tables of all that follows from integers below a count."""
        shape = self._graph.tensor(name).shape
        integers = np.arange(count).reshape(count, *shape)
        found = {name: IntegerTable(name, integers)}
        for node in self._graph.nodes:
            results = [self._graph.tensor(result) for result in node.outputs]
            if (
                len(results) != 1
                or found.keys().isdisjoint(node.inputs)
                or (only_integers and results[0].dtype == "scalar")
                or count * results[0].volume > MOST_NUMBERS
                or not self._follows(node, set(found))
            ):
                continue
            values = self._rows(node, results[0], found, count)
            if values is not None:
                found[node.name] = IntegerTable(name, values)
        return found

    def _computed(self, node: Node) -> list[str]:
        return [name for name in node.inputs if self._graph.tensor(name).data is None]

    def _follows(self, node: Node, known: set[str]) -> bool:
        """Whether a node reads nothing else, and is worth a table of its result."""
        if node.has(Trait.INDEXED) or not known.issuperset(self._computed(node)):
            return False
        numbers = [x for x in self._computed(node) if self._graph.tensor(x).dtype == "scalar"]
        return all(self._has_functions_alone(name) for name in numbers)

    def _has_functions_alone(self, name: str) -> bool:
        """Whether all readers are functions of an element of one tensor; its moves are, too."""
        traits = Trait.ELEMENTWISE, Trait.ARITHMETIC, Trait.TABLE, Trait.MOVES
        graph = self._graph
        is_result = any(name == state.result for state in graph.states.values())
        return (
            name not in graph.outputs
            and not is_result
            and all(
                self._computed(node) == [name] and any(map(node.has, traits))
                for node in graph.consumers(name)
            )
        )

    def _rows(
        self, node: Node, result: Tensor, found: dict[str, IntegerTable], count: int
    ) -> Array | None:
        """Return a node's result for every integer; None if it cannot be told here."""
        graph = self._graph
        if node.has(Trait.RESHAPES):
            return found[node.inputs[0]].values.reshape(count, *result.shape)
        if node.op == "gather":
            table = graph.tensor(node.inputs[0]).data
            if table is None:
                return None
            axis = node.attrs["axis"]
            index = found[node.inputs[1]].values
            taken = np.take(as_array(table, result.dtype), index, axis=axis, mode="wrap")
            return np.moveaxis(taken, axis, 0)
        if any(map(node.has, (Trait.ELEMENTWISE, Trait.ARITHMETIC, Trait.TABLE))):
            return self._function(node, result, found, count)
        return None

    def _function(
        self, node: Node, result: Tensor, found: dict[str, IntegerTable], count: int
    ) -> Array:
        """Compute a function of elements, with all integers along one more last axis."""
        rank = len(result.shape)
        args = []
        for name in node.inputs:
            tensor = self._graph.tensor(name)
            ones = (1,) * (rank - len(tensor.shape))
            if name in found:
                values = np.moveaxis(found[name].values, 0, -1)
                args.append(values.reshape(*tensor.shape, *ones, count))
            else:
                args.append(as_array(tensor.data, tensor.dtype).reshape(*tensor.shape, *ones, 1))
        shape = (*result.shape, count)
        [values] = evaluate(Evaluation(node, tuple(args), (shape,), dtypes=(result.dtype,)))
        return np.moveaxis(np.broadcast_to(values, shape), -1, 0)
