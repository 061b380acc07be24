"""Caches whose length grows from step to step, as caches of a fixed length (``--context N``).

Exporters write a step of a language model with inputs ``past_*`` of P rows and outputs
``present_*`` of P + 1. The file is read for N rows at the end of a step, and for another number:
what changes then is an axis of places. On that follows one rewriting: caches of N rows, of which a
step writes one where it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nnef_hw.errors import NnefHwError, UnsupportedError, UsageError, raise_all
from nnef_hw.frontend.building.open_shapes import OpenShapes
from nnef_hw.frontend.named_states import FixedContext
from nnef_hw.ir import Graph, Node, State, Tensor, Trait

__all__ = ["load_with_context"]

Shape: TypeAlias = tuple[int, ...]

_CACHE = re.compile(r"past|cache|memory|key|value", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_PLACE = re.compile(r"pos|place", re.IGNORECASE)
_EXPORT = "export a step whose caches have a fixed length, and name them: --state IN=OUT"
_SHAPED = {"reshape", "tile", "broadcast", "squeeze", "unsqueeze"}
"""Operators whose attributes are shapes."""


def load_with_context(
    read: Callable[[Mapping[str, int]], Graph],
    opened: OpenShapes | None,
    dims: Mapping[str, int],
    wish: FixedContext,
    path: Path | str,
) -> Graph:
    """Read a step whose caches grow, with caches of so many rows as the context has.

    Parameters
    ----------
    read
        Reads the file with values of its symbols.
    opened
        Declared shapes of its inputs; None if no cache of the format grows.
    dims
        Values of symbols that the user gives.

    Raises
    ------
    UsageError
        If no cache grows, or what grows is no cache, or nothing tells a token's place.
    UnsupportedError, ErrorGroup
        If something depends on how many rows there are, in another way than by a softmax.
    """
    if wish.context < 2:
        raise UsageError(f"--context {wish.context} is no context", remedy="give 2 or more places")
    if opened is None:
        raise UsageError(
            f"{path}: --context is for ONNX and NNEF models, whose inputs leave a length open",
            remedy=_EXPORT,
        )
    rows = wish.context - 1
    # The other length is a shorter one, since a longer one may be more than a file allows.
    graph, other = (
        read(_values(opened, dims, wish, count, path)) for count in (rows, rows - 1 or rows + 1)
    )
    return _Growth(graph, other, wish, path).fixed()


def _values(
    opened: OpenShapes, dims: Mapping[str, int], wish: FixedContext, rows: int, path: Path | str
) -> dict[str, int]:
    """Return values of all symbols, for caches that have so many rows before a step."""
    values, shapes = dict(dims), opened.shapes
    named = set(map(_identifier, wish.pairs))
    is_cache = {
        name: _identifier(name) in named
        if named
        else name in opened.caches or bool(_CACHE.search(name) and not _MASK.search(name))
        for name in shapes
    }
    lengths = [
        (name, extent)
        for name, shape in shapes.items()
        for axis, extent in enumerate(shape)
        if axis and isinstance(extent, str) and extent not in dims
    ]
    grown = {extent for name, extent in lengths if is_cache[name]}
    if not grown and not named:
        # No name tells; what grows is a cache, or refused later.
        grown = {extent for name, extent in lengths if not _MASK.search(name)}
    if len(grown) != 1:
        inputs = ", ".join(f"{name} [{', '.join(map(str, x))}]" for name, x in shapes.items())
        several = f"extents {', '.join(sorted(grown))} of caches are open" if grown else (
            "no cache has an open extent"
        )  # fmt: skip
        raise UsageError(
            f"{path}: which axis of which cache has the context is not clear: {several}; inputs "
            f"are {inputs}",
            remedy="name the caches by --state IN=OUT, and all other extents by --dim NAME=N",
        )
    [symbol] = grown
    values[symbol] = rows
    if opened.symbols is not None:
        # Sums are no symbols here. Of tokens and of texts there is one.
        return {**dict.fromkeys(opened.symbols, 1), **values}
    open_ones = [
        (name, extent)
        for name, shape in shapes.items()
        for extent in shape
        if isinstance(extent, str) and extent not in values
    ]
    # Sums last: they are made of others. Of tokens and of texts there is one.
    for name, extent in sorted(open_ones, key=lambda item: "+" in item[1]):
        terms = [term.strip() for term in extent.split("+")]
        if all(term in values or term.isdigit() for term in terms):
            values[extent] = sum(values.get(term) or int(term) for term in terms)
        else:
            values[extent] = rows + 1 if _MASK.search(name) else 1
    return values


class _Growth:
    """A step read for caches of N rows and of another number, which tells its axes of places."""

    def __init__(self, graph: Graph, other: Graph, wish: FixedContext, path: Path | str) -> None:
        self._graph, self._other = graph, other
        self._wish, self._path = wish, path
        self._caches: dict[str, tuple[str, int]] = {}
        """The next value of each, and its axis of places."""

    def fixed(self) -> Graph:
        """Return the graph with caches of a fixed length."""
        graph, masks = self._graph, []
        if [x.name for x in graph.nodes] != [x.name for x in self._other.nodes]:
            raise UnsupportedError(
                f"{self._path}: other operators are computed for another context", remedy=_EXPORT
            )
        for name in graph.inputs:
            if not self._axes(name):
                continue
            found = self._cache(name)
            if found is not None:
                self._caches[name] = found
            elif _MASK.search(name):
                masks.append(name)
            else:
                raise UsageError(
                    f"{self._path}: the input {name!r} grows with the context, and is no cache: no "
                    "output is the input with a row behind it",
                    remedy=_EXPORT,
                )
        self._check_pairs()
        raise_all(list(self._problems()))
        return self._rewritten(masks, self._position())

    def _axes(self, name: str) -> list[int]:
        """Return the axes of a tensor along which there are places."""
        pair = self._graph.tensor(name).shape, self._other.tensor(name).shape
        return [axis for axis, (a, b) in enumerate(zip(*pair, strict=True)) if a != b]

    def _cache(self, name: str) -> tuple[str, int] | None:
        """Return the output that is an input with a row behind it, and the axis of rows."""
        graph = self._graph
        readers = graph.consumers(name)
        if len(readers) != 1 or readers[0].op != "concat" or readers[0].inputs[0] != name:
            return None
        [node] = readers
        axis = int(node.attrs["axis"])
        is_row = len(node.inputs) == 2 and graph.tensor(node.inputs[1]).shape[axis] == 1
        return (node.name, axis) if is_row and node.name in graph.outputs else None

    def _check_pairs(self) -> None:
        found = {before: after for before, (after, _) in self._caches.items()}
        names = {_identifier(a): _identifier(b) for a, b in self._wish.pairs.items()}
        if names and names != found:
            shown = ", ".join(f"{a}={b}" for a, b in found.items()) or "none"
            raise UsageError(
                f"{self._path}: --state names other caches than those that grow by a row: {shown}",
                remedy="omit --state, or name these",
            )
        if not found:
            raise UsageError(
                f"{self._path}: no output is an input with a row behind it, so there is no cache "
                "for --context",
                remedy=_EXPORT,
            )

    def _position(self) -> str:
        """Return the input that tells the place of a token."""
        graph = self._graph
        integers = [
            name for name in graph.inputs
            if graph.tensor(name).dtype == "integer" and graph.tensor(name).volume == 1
        ]  # fmt: skip
        found = [name for name in integers if _PLACE.search(name)]
        if len(found) != 1:
            raise UsageError(
                f"{self._path}: no input tells the place of a token in a text; inputs are "
                f"{', '.join(graph.inputs)}",
                remedy="export the step with an input position_ids of one integer",
            )
        return found[0]

    def _problems(self) -> Iterator[NnefHwError]:
        """Yield an error for each value that follows from the number of rows by no softmax."""
        graph = self._graph
        after = {name for name, _ in self._caches.values()}
        for name in graph.outputs:
            if self._axes(name) and name not in after:
                yield self._refusal(f"the output {name!r} has a number for each row", None)
        for name, tensor in graph.tensors.items():
            if tensor.data is not None and not self._is_even(name):
                what = f"the constant {name!r} depends on how many rows of a cache there are"
                yield self._refusal(
                    what, graph.consumers(name)[0] if graph.consumers(name) else None
                )
        for node, other in zip(graph.nodes, self._other.nodes, strict=True):
            rows = [name for name in node.inputs if self._axes(name)]
            is_kept = any(self._axes(name) for name in node.outputs)
            if node.attrs != other.attrs and node.op not in _SHAPED:
                yield self._refusal("it depends on how many rows of a cache there are", node)
            elif rows and not is_kept and not self._is_weighted(node):
                what = "it computes something of all rows of a cache, also of those not yet written"
                yield self._refusal(what, node)
            elif rows and is_kept and not self._keeps_rows(node):
                what = "rows of a cache go into other rows, also those that are not yet written"
                yield self._refusal(what, node)

    def _keeps_rows(self, node: Node) -> bool:
        """Whether every row of a result is made of the same row of each operand alone."""
        if node.op == "concat":
            is_cache = node.name in {after for after, _ in self._caches.values()}
            return is_cache or node.attrs["axis"] not in self._axes(node.name)
        return (
            node.has(Trait.ELEMENTWISE)
            or node.has(Trait.MOVES)
            or node.op in {"matmul", "softmax", *_SHAPED}
        )

    def _refusal(self, what: str, node: Node | None) -> NnefHwError:
        place = f"{self._path}: {what}" if node is None else f"{node.op} {node.name!r}: {what}"
        return UnsupportedError(place, remedy=_EXPORT, location=node.location if node else None)

    def _is_even(self, name: str) -> bool:
        """Whether a constant says the same of all rows, and of any number of them."""
        first, second = self._graph.tensor(name).data, self._other.tensor(name).data
        assert first is not None
        assert second is not None
        for axis in self._axes(name):
            first, second = np.take(first, [0], axis), np.take(second, [0], axis)
            whole = self._graph.tensor(name).data
            assert whole is not None
            if not (whole == np.take(whole, [0], axis)).all():
                return False
        return bool(np.array_equal(first, second)) or not self._is_read(name)

    def _is_read(self, name: str) -> bool:
        return bool(self._graph.consumers(name)) or name in self._graph.outputs

    def _is_weighted(self, node: Node) -> bool:
        """Whether a node is a product with weights that a softmax gives to rows."""
        return node.op == "matmul" and any(map(self._is_hidden, node.inputs))

    def _is_hidden(self, name: str) -> bool:
        """Whether a tensor is 0 for rows that are not written yet."""
        node = self._graph.producer(name)
        if node is None or not self._axes(name):
            return False
        if node.op == "softmax":
            return any(axis in self._axes(name) for axis in node.attrs["axes"])
        if node.has(Trait.MOVES) or node.op in _SHAPED:
            return self._is_hidden(node.inputs[0])
        return node.op == "mul" and any(map(self._is_hidden, node.inputs))

    def _rewritten(self, masks: Sequence[str], position: str) -> Graph:
        graph, context = self._graph, self._wish.context
        tensors, nodes = dict(graph.tensors), list[Node]()
        states = dict(graph.states)
        for name in masks:
            # All rows are read: those that are not written yet a mask in front of a softmax hides.
            tensor = tensors[name]
            kind = np.int64 if tensor.dtype == "integer" else np.float64
            ones = np.ones(tensor.shape, bool if tensor.dtype == "logical" else kind)
            tensors[name] = replace(tensor, data=ones)
        for before, (after, _) in self._caches.items():
            # Rows lie one behind the other, whatever the axes of the file's caches are.
            shape: Shape = (context, graph.tensor(after).volume // context)
            tensors[before] = replace(tensors[before], shape=shape)
            states[before] = State(np.zeros(shape), f"{after}_rows")
        written = {after: (before, axis) for before, (after, axis) in self._caches.items()}

        def new(name: str, shape: Shape, dtype: str = "scalar", data: object = None) -> str:
            known = None if data is None else np.asarray(data)
            tensors[name] = Tensor(name, shape, dtype=dtype, data=known)
            return name

        def compared(node: Node, op: str, shape: tuple[int, ...], axis: int) -> str:
            """Return the places, compared with the token's, along an axis."""
            places = new(f"{node.name}_places", (context,), "integer", np.arange(context))
            place = new(f"{node.name}_place", (1,), "integer")
            found = new(f"{node.name}_{op}", (context,), "logical")
            extents = tuple(context if n == axis else 1 for n in range(len(shape)))
            whole = new(f"{node.name}_{op}_whole", extents, "logical")
            nodes.extend([
                _reshape(position, place, tensors[position].shape, (1,), node),
                Node(op, (places, place), (found,), {}, node.location),
                _reshape(found, whole, (context,), extents, node),
            ])
            return whole

        for node in graph.nodes:
            if node.name in written:
                before, axis = written[node.name]
                self._write(node, axis, before, compared(node, "eq", (context, 1), 0), new, nodes)
                continue
            axes = self._axes(node.name) if node.op == "softmax" else []
            for axis in (axis for axis in node.attrs["axes"] if axis in axes) if axes else ():
                scores = node.inputs[0]
                shape = tensors[scores].shape
                # <= of places and the token's one
                seen = compared(node, "le", shape, axis)
                lowest = new(f"{node.name}_lowest", (), data=-np.inf)
                shown = new(f"{node.name}_shown", shape)
                nodes.append(Node("select", (seen, scores, lowest), (shown,), {}, node.location))
                node = replace(node, inputs=(shown, *node.inputs[1:]))
            nodes.append(node)
        gone = {*self._caches, *masks}
        return replace(
            graph, nodes=tuple(nodes), tensors=tensors, states=states,
            inputs=tuple(name for name in graph.inputs if name not in gone),
            outputs=tuple(name for name in graph.outputs if name not in written),
        )  # fmt: skip

    def _write(
        self,
        node: Node,
        axis: int,
        cache: str,
        here: str,
        new: Callable[[str, Shape], str],
        nodes: list[Node],
    ) -> None:
        """Write a row of a cache, and bring its rows into the order of a concatenation's result."""
        whole, row = (self._graph.tensor(name).shape for name in (node.name, node.inputs[1]))
        order = [axis, *(n for n in range(len(whole)) if n != axis)]
        features = self._graph.tensor(node.inputs[1]).volume
        name, count = node.name, self._wish.context
        moved = tuple(row[n] for n in order), tuple(whole[n] for n in order)
        first = new(f"{name}_first", moved[0])
        flat, rows = new(f"{name}_row", (1, features)), new(f"{name}_rows", (count, features))
        apart = new(f"{name}_apart", moved[1])
        back = [order.index(n) for n in range(len(whole))]
        nodes.extend([
            Node("transpose", (node.inputs[1],), (first,), {"axes": order}, node.location),
            _reshape(first, flat, moved[0], (1, features), node),
            Node("select", (here, flat, cache), (rows,), {}, node.location),
            _reshape(rows, apart, (count, features), moved[1], node),
            Node("transpose", (apart,), node.outputs, {"axes": back}, node.location),
        ])


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


def _reshape(source: str, result: str, before: Shape, after: Shape, node: Node) -> Node:
    attrs = {"shape": list(after), "axis_start": 0, "axis_count": len(before)}
    return Node("reshape", (source,), (result,), attrs, node.location)
