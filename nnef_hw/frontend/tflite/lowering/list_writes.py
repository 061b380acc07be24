"""Lists of tensors in loops: converters write an item as slices and a concatenation, or at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.tflite.file.model import TfliteOperator, TfliteSubgraph

__all__ = ["ListWrite", "find_write"]

Known = Mapping[int, Array]


@dataclass(frozen=True, slots=True)
class ListWrite:
    """A turn that leaves all items of a list as they are but one.

    Parameters
    ----------
    item
        The tensor that is written, with an axis for the items.
    operators
        Those that write it, by their places.
    places
        Tensors that say where.
    pace
        1 or -1: the order of the items; 0 as long as it is not known.
    """

    item: int
    operators: frozenset[int]
    places: tuple[int, ...]
    pace: int = 0

    def index(self, known: Known, graph: TfliteSubgraph, rank: int) -> int | None:
        """Return the item that a turn writes; None if it changes anything else."""
        found = []
        for place in self.places:
            data = known[place] if place in known else graph.tensors[place].data
            if data is None or np.size(data) != rank:
                return None
            found.append([int(x) for x in np.reshape(data, -1)])
        nought, rest = [0] * (rank - 1), [-1] * (rank - 1)
        if len(found) == 1:  # begin of an update
            return found[0][0] if found[0][1:] == nought else None
        first, size, second, left = found
        before = first == [0, *nought] and size[1:] == rest
        behind = second == [size[0] + 1, *nought] and left == [-1, *rest]
        return size[0] if before and behind else None


def find_write(graph: TfliteSubgraph, before: int, behind: int) -> ListWrite | None:
    """Return how a body writes an item of a carried list; None if it does something else."""
    producers = {index: op for op in graph.operators for index in op.outputs}
    readers = [op for op in graph.operators if before in op.inputs]
    last, casts = producers.get(behind), list[TfliteOperator]()
    while last is not None and last.op == "CAST" and _keeps_type(graph, last):
        casts.append(last)
        last = producers.get(last.inputs[0])
    if last is None or graph.outputs.count(behind) != 1 or before in graph.outputs:
        return None
    if last.op == "DYNAMIC_UPDATE_SLICE" and readers == [last] and last.inputs[0] == before:
        _, item, place = last.inputs
        return ListWrite(item, frozenset(op.index for op in [*casts, last]), (place,))
    if last.op != "CONCATENATION" or len(last.inputs) != 3 or last.options.get("Axis"):
        return None
    first, item, second = last.inputs
    slices = [producers.get(first), producers.get(second)]
    if [op and op.op for op in slices] != ["SLICE", "SLICE"]:
        return None
    parts = [op for op in slices if op is not None and op.inputs[0] == before]
    if len(parts) != 2 or {op.index for op in readers} != {op.index for op in parts}:
        return None
    hidden = frozenset(op.index for op in [*casts, last, *parts])
    return ListWrite(item, hidden, (*parts[0].inputs[1:], *parts[1].inputs[1:]))


def _keeps_type(graph: TfliteSubgraph, cast: TfliteOperator) -> bool:
    return graph.tensors[cast.inputs[0]].type == graph.tensors[cast.outputs[0]].type
