"""Rows of the steps before that windows or branches read: they stay there, without a loop.

In the graph they are a state in front of the new rows (``concat``), whose next value are the last
rows of both (``slice``). Hardware that did the same would stream all of these rows in every step.
But a line buffer has them already; and where the first of both rows are read, as beside a branch
that is late, that is the stream some rows later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nnef_hw.ir import Graph, Node, State, Trait
from nnef_hw.ir.layers import Convolution, LogMelFront, MicroFrontStep, MicroNoise, Pool, layer_of
from nnef_hw.ir.operators import SliceAttributes

__all__ = ["KeptRows", "Keeping", "find_kept_noise", "find_kept_rows", "is_put_back"]

_ROWS = 2
"""Axis of rows in [1, C, H, W]: the outermost of a stream."""


class KeptRows(NamedTuple):
    """Rows of this step and of steps before, and where they come from.

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
    is_delay
        Whether they are the first of all these rows, as many as are new.
    """

    source: str
    new: int
    past: int
    lag: int
    code: int
    is_delay: bool = False


@dataclass(frozen=True, slots=True)
class Keeping:
    """Rows, states and nodes that line buffers and delays of a graph keep.

    Attributes
    ----------
    rows
        By the tensor that windows read, or that a delay gives.
    states, nodes
        States that are in them, and what only hands their rows on: by results.
    """

    rows: Mapping[str, KeptRows]
    states: frozenset[str]
    nodes: frozenset[str]


def find_kept_rows(graph: Graph) -> Keeping:
    """Find the states of a fixed graph that are rows in front of a stream, and no more."""
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


def find_kept_noise(graph: Graph, keeping: Keeping) -> Keeping:
    """Find the noise that front ends of a graph estimate and keep, beside rows.

    That is a state whose next value is a ``micro_noise`` of the same samples that its front end
    reads, which have to be kept rows.
    """
    states, nodes = set[str](), set[str]()
    for name, state in graph.states.items():
        node = graph.producer(state.result)
        if node is None or node.op != "micro_noise" or node.inputs[1] != name:
            continue
        samples = node.inputs[0]
        fronts = [reader for reader in graph.consumers(name) if reader is not node]
        is_alone = not graph.consumers(node.name) and not {name, node.name} & {*graph.outputs}
        if (
            samples in keeping.rows
            and is_alone
            and len(fronts) == 1
            and fronts[0].op == "micro_frontend_step"
            and fronts[0].inputs[0] == samples
            and fronts[0].attrs["hop"] == node.attrs["hop"]
            and not state.initial.any()
        ):
            states.add(name)
            nodes.add(node.name)
    return Keeping(keeping.rows, keeping.states | states, keeping.nodes | nodes)


def _views(graph: Graph, name: str) -> Iterator[str]:
    """Yield the moves of a state, each read by the next one."""
    while len(readers := graph.consumers(name)) == 1 and readers[0].has(Trait.MOVES):
        name = readers[0].name
        yield name


def _sliced(graph: Graph, name: str) -> tuple[Node | None, list[str]]:
    """Return the node in front of the moves to a tensor, and what there is from that to it."""
    names = [name]
    while (node := graph.producer(names[-1])) is not None and node.has(Trait.MOVES):
        names.append(node.inputs[0])
    return node, names


def is_put_back(graph: Graph, names: Sequence[str], skipped: str = "") -> bool:
    """Whether moves, each result behind its operand, leave every element in its place at last.

    A state, which takes over what is in front of it, is a reshape to the same shape; so is what is
    ``skipped``.
    """
    first, last = graph.tensor(names[0]), graph.tensor(names[-1])
    elements = np.arange(first.volume).reshape(first.shape)
    for name in names[1:]:
        node = graph.producer(name)
        if node is not None and name != skipped and not node.has(Trait.RESHAPES):
            elements = elements.transpose(node.attrs["axes"])
        elements = elements.reshape(graph.tensor(name).shape)
    places = np.arange(last.volume).reshape(last.shape)
    return first.shape == last.shape and np.array_equal(elements, places)


def _kept(graph: Graph, name: str, state: State, handed_on: list[str]) -> dict[str, KeptRows]:
    """Return the rows of a state by the tensor that is read; nothing if it is no such one.

    ``handed_on`` are views of the state; results of all nodes that keep it are added.
    """
    views = list(handed_on)
    view = views[-1] if views else name
    readers = graph.consumers(view)
    if len(readers) != 1 or readers[0].op != "concat" or readers[0].attrs["axis"] != _ROWS:
        return {}
    [both] = readers
    if len(both.inputs) != 2 or both.inputs[0] != view or both.inputs[1] == view:
        return {}
    source = both.inputs[1]
    past, new = (graph.tensor(operand).shape[_ROWS] for operand in both.inputs)
    next_value, results = _sliced(graph, state.result)
    is_source = past == new and source in results
    if is_source:
        # as many as are new: all of these
        results = results[: results.index(source)]
    handed_on += [both.name, *results]
    if (
        graph.tensor(source).data is not None
        or not (
            is_source or _are_last(graph, next_value, {both.name: new + past, source: new}, past)
        )
        or any(len(graph.consumers(result)) != (n > 0) for n, result in enumerate(results))
        or not is_put_back(graph, [*is_source * [source], *reversed(results), name, *views])
        or not {name, *handed_on}.isdisjoint(graph.outputs)
        or [other.result for other in graph.states.values()].count(state.result) > 1
    ):
        return {}
    codes = state.initial.reshape(-1)
    if (codes != codes[0]).any():
        return {}
    code, found = int(codes[0]), {}
    slices = [node for node in graph.consumers(both.name) if _range_of(node)]
    for part in slices:
        if part is next_value:
            continue
        first, end = _range_of(part) or (0, 0)
        rows = KeptRows(source, new, past, past + new - end, code)
        if not _are_windows(graph, part.name, graph.consumers(part.name), code):
            rows = rows._replace(is_delay=True)
        if first > 0 or (rows.is_delay and end != new):
            return {}
        found[part.name] = rows
    windows = [node for node in graph.consumers(both.name) if node not in slices]
    if not _are_windows(graph, both.name, windows, code):
        return {}
    found[both.name] = KeptRows(source, new, past, 0, code)
    return found


def _are_last(graph: Graph, node: Node | None, rows: Mapping[str, int], count: int) -> bool:
    """Whether a node takes the last rows of a tensor of so many, or of the new ones among them."""
    return any(
        node in graph.consumers(name) and _range_of(node) == (end - count, end)
        for name, end in rows.items()
    )


def _range_of(node: Node | None) -> tuple[int, int] | None:
    """Return the rows that a slice takes; None of another node."""
    if node is None or node.op != "slice":
        return None
    part = node.attributes(SliceAttributes)
    return (part.begin, part.end) if part.axis == _ROWS else None


def _are_windows(graph: Graph, rows: str, readers: Sequence[Node], code: int) -> bool:
    """Whether all readers of rows have line buffers for them."""
    return rows not in graph.outputs and all(
        _keeps_samples(graph, node, rows, code)
        or (node.has(Trait.WINDOW) and _suits(graph, node, rows, code))
        for node in readers
    )


def _keeps_samples(graph: Graph, front: Node, operand: str, code: int) -> bool:
    """Whether a front end of audio reads samples, of which it keeps those of steps before."""
    layer, rows = layer_of(graph, front), graph.tensor(operand).shape[_ROWS]
    if isinstance(layer, MicroFrontStep | MicroNoise):
        return not code and (rows - layer.front.window) % layer.front.hop == 0
    if not isinstance(layer, LogMelFront) or code != layer.source.zero_point:
        return False
    spec = layer.requant.front
    return not layer.before and (rows - spec.reach) % spec.hop == 0


def _suits(graph: Graph, window: Node, operand: str, code: int) -> bool:
    """Whether a line buffer can have such rows above the first image."""
    layer = layer_of(graph, window)
    if window.inputs[0] != operand or operand in window.inputs[1:]:
        return False
    assert isinstance(layer, Convolution | Pool)
    rows, columns = layer.window.padding
    is_free = isinstance(layer, Pool) and not any(columns)
    return not any(rows) and (is_free or code == layer.pad_code)
