"""Rows that a window reads of the steps before: they stay in its line buffer, without a loop.

In the graph they are a state in front of the new rows (``concat``), whose next value are the last
rows of both (``slice``). Hardware that did the same would stream all of these rows in every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.ir import Graph, Node, State, Trait, image_shape
from nnef_hw.ir.operators import ConvAttributes, PoolAttributes, SliceAttributes
from nnef_hw.numerics import QType
from nnef_hw.tflite_numerics import TfliteAverage

__all__ = ["KeptRows", "Keeping", "find_kept_rows", "pad_code_of"]

_ROWS = 2
"""Axis of rows in [1, C, H, W]: the outermost of a stream."""


class KeptRows(NamedTuple):
    """Where the operand of a window comes from.

    Attributes
    ----------
    source
        Tensor of the new rows.
    new, past
        New rows of a step, and rows above them, kept of steps before.
    lag
        New rows that only windows of later steps read.
    code
        What the rows above the first step's are filled with.
    """

    source: str
    new: int
    past: int
    lag: int
    code: int


@dataclass(frozen=True, slots=True)
class Keeping:
    """What line buffers of a graph keep.

    Attributes
    ----------
    rows
        By the tensor that windows read.
    states, nodes
        States that are in line buffers, and what only hands their rows on: by results.
    """

    rows: Mapping[str, KeptRows]
    states: frozenset[str]
    nodes: frozenset[str]


def find_kept_rows(graph: Graph) -> Keeping:
    """Find the states of a fixed graph of which each is rows above the image of windows alone."""
    rows: dict[str, KeptRows] = {}
    states, nodes = set[str](), set[str]()
    for name, state in graph.states.items():
        handed_on = [*_views(graph, name)]
        found = _kept(graph, name, state, handed_on)
        if found:
            rows.update(found)
            states.add(name)
            nodes.update(handed_on, found)
    return Keeping(rows, frozenset(states), frozenset(nodes))


def pad_code_of(node: Node, source: QType) -> int:
    """Return the code around the image of windows."""
    if node.attrs["border"] == "ignore":
        if node.op == "max_pool":
            return source.lo
        if isinstance(node.attrs.get("requant"), TfliteAverage):
            return 0
    return source.zero_point


def _views(graph: Graph, name: str) -> Iterator[str]:
    """Yield reshapes behind a state that leave its image as it is, each read by the next one."""
    image = image_shape(graph.tensor(name).shape)
    while len(readers := graph.consumers(name)) == 1 and readers[0].has(Trait.RESHAPES):
        name = readers[0].name
        if image_shape(graph.tensor(name).shape) != image:
            return
        yield name


def _sliced(graph: Graph, name: str) -> tuple[Node | None, list[str]]:
    """Return the node in front of such reshapes, and what there is from it to a tensor."""
    names = [name]
    image = image_shape(graph.tensor(name).shape)
    while (node := graph.producer(names[-1])) is not None and node.has(Trait.RESHAPES):
        if image_shape(graph.tensor(node.inputs[0]).shape) != image:
            return None, names
        names.append(node.inputs[0])
    return node, names


def _kept(graph: Graph, name: str, state: State, handed_on: list[str]) -> dict[str, KeptRows]:
    """Return the rows of a state by the tensor that windows read; nothing if it is no such one.

    ``handed_on`` are views of the state; results of all nodes that keep it are added.
    """
    view = handed_on[-1] if handed_on else name
    readers = graph.consumers(view)
    if len(readers) != 1 or readers[0].op != "concat" or readers[0].attrs["axis"] != _ROWS:
        return {}
    [both] = readers
    if len(both.inputs) != 2 or both.inputs[0] != view or both.inputs[1] == view:
        return {}
    source = both.inputs[1]
    past, new = (graph.tensor(operand).shape[_ROWS] for operand in both.inputs)
    next_value, results = _sliced(graph, state.result)
    handed_on += [both.name, *results]
    if (
        graph.tensor(source).data is not None
        or next_value not in graph.consumers(both.name)
        or _range_of(next_value) != (new, new + past)
        or any(len(graph.consumers(result)) != (n > 0) for n, result in enumerate(results))
        or not {name, *handed_on}.isdisjoint(graph.outputs)
        or [other.result for other in graph.states.values()].count(state.result) > 1
    ):
        return {}
    codes = state.initial.reshape(-1)
    if (codes != codes[0]).any():
        return {}
    found = {}
    for reader, window, lag in _windows(graph, both, next_value, past + new):
        if window is None or not _suits(graph, window, reader, int(codes[0])):
            return {}
        found[reader] = KeptRows(source, new, past, lag, int(codes[0]))
    return found


def _range_of(node: Node | None) -> tuple[int, int] | None:
    """Return the rows that a slice takes; None of another node."""
    if node is None or node.op != "slice":
        return None
    part = node.attributes(SliceAttributes)
    return (part.begin, part.end) if part.axis == _ROWS else None


def _windows(
    graph: Graph, both: Node, next_value: Node | None, rows: int
) -> Iterator[tuple[str, Node | None, int]]:
    """Yield what reads the rows, and which tensor and how many rows less: None for no window."""
    for reader in graph.consumers(both.name):
        if reader is next_value:
            continue
        taken = _range_of(reader)
        if taken is None:
            yield both.name, reader if reader.has(Trait.WINDOW) else None, 0
            continue
        windows = graph.consumers(reader.name)
        if taken[0] > 0 or not windows or reader.name in graph.outputs:
            yield reader.name, None, 0
        for window in windows:
            is_window = window.has(Trait.WINDOW)
            yield reader.name, window if is_window else None, rows - taken[1]


def _suits(graph: Graph, window: Node, operand: str, code: int) -> bool:
    """Whether a line buffer can have such rows above the first image."""
    if window.inputs[0] != operand or operand in window.inputs[1:]:
        return False
    kind = PoolAttributes if window.has(Trait.POOL) else ConvAttributes
    rows, columns = window.attributes(kind).padding
    qtype = graph.tensor(operand).qtype
    assert qtype is not None
    is_free = window.has(Trait.POOL) and not any(columns)
    return not any(rows) and (is_free or code == pad_code_of(window, qtype))
