"""A graph as text, one tensor or node per line: for people, diffs and tests.

The text is complete: :func:`~nnef_hw.ir.parser.parse_graph` reads it back, and says how it is
built up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields, is_dataclass
from hashlib import sha256

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location
from nnef_hw.ir.graph import Graph, Node, Quantization, State, Tensor

__all__ = ["DEFAULT_DTYPES", "KEYWORDS", "format_graph"]

KEYWORDS = frozenset({"constant", "input", "output", "state", "tensor"})
"""Words with which lines that are not nodes begin; tensors of these names are quoted."""

DEFAULT_DTYPES = {"scalar": "float64", "integer": "int64", "logical": "bool"}
"""NumPy's type, by NNEF's, of constants whose text does not name one."""


def format_graph(graph: Graph, *, most_values: int | None = None, places: bool = True) -> str:
    """Return the whole graph.

    Parameters
    ----------
    most_values
        Size of the largest array that is shown whole; of larger ones only the number of elements
        and a digest are shown. Such a text can be compared, but not read back.
    places
        Whether it is shown where in the model nodes and tensors come from.
    """
    return "\n".join(_Printer(most_values, places).graph(graph)) + "\n"


@dataclass(frozen=True, slots=True)
class _Printer:
    most_values: int | None
    places: bool

    def graph(self, graph: Graph) -> Iterator[str]:
        """Yield the lines of a graph."""
        rounding = "" if graph.rounding is None else f" rounding={graph.rounding!r}"
        rows = "" if not graph.rows else f" rows={self._value([*graph.rows.items()])}"
        features = ""
        if graph.features:
            features = f" features={self._value([*graph.features.items()])}"
        yield f"{graph.stage} graph {_name(graph.name)}{rounding}{rows}{features} {{"
        for line in self._statements(graph):
            yield f"  {line}"
        yield "}"

    def _statements(self, graph: Graph) -> Iterator[str]:
        computed = {name for node in graph.nodes for name in node.outputs}
        for name in graph.inputs:
            yield f"input {self._tensor(graph.tensor(name))}"
        for name, state in graph.states.items():
            yield f"state {self._tensor(graph.tensor(name))}{self._state(state)}"
        for name, tensor in graph.tensors.items():
            if tensor.data is not None:
                default = DEFAULT_DTYPES.get(tensor.dtype)
                dtype = "" if tensor.data.dtype.name == default else f"{tensor.data.dtype.name} "
                values = self._values(tensor.data)
                yield f"constant {self._tensor(tensor)} = {dtype}{values}"
            elif name not in computed and name not in {*graph.inputs, *graph.states}:
                yield f"tensor {self._tensor(tensor)}"
        for node in graph.nodes:
            yield from self._node(graph, node)
        for name in graph.outputs:
            yield f"output {_name(name)}"

    def _tensor(self, tensor: Tensor, origin: Location | None = None) -> str:
        text = f"{_name(tensor.name)}: {tensor.dtype}{list(tensor.shape)}"
        for key in ("label", "qtype", "quant"):
            value = getattr(tensor, key)
            if value is not None:
                text += f" {key}={self._value(value)}"
        if tensor.location != origin and self.places:
            text += f" {_location(tensor.location)}"
        return text

    def _state(self, state: State) -> str:
        label = "" if state.label is None else f" label={state.label!r}"
        steps = "" if state.goes_on else f" steps={state.steps}"
        return f" <- {_name(state.result)}{label}{steps} = {self._value(state.initial)}"

    def _node(self, graph: Graph, node: Node) -> Iterator[str]:
        results = [self._tensor(graph.tensor(name), node.location) for name in node.outputs]
        arguments = [_name(name) for name in node.inputs]
        arguments += self._pairs(dict(sorted(node.attrs.items())))
        is_placed = node.location is not None and self.places
        place = f" {_location(node.location)}" if is_placed else ""
        yield from f"{', '.join(results)} = {node.op}({', '.join(arguments)}){place}".split("\n")

    def _pairs(self, values: Mapping[str, object]) -> list[str]:
        return [f"{key}={self._value(value)}" for key, value in values.items()]

    def _value(self, value: object) -> str:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float):
            return repr(value)
        if isinstance(value, str):
            return repr(str(value))
        if isinstance(value, list):
            return f"[{', '.join(map(self._value, value))}]"
        if isinstance(value, tuple):
            items = [*map(self._value, value)]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if isinstance(value, np.ndarray):
            return f"{value.dtype.name}{list(value.shape)} {self._values(value)}"
        if isinstance(value, Graph):
            return "\n".join(self.graph(value))
        if isinstance(value, Quantization):
            ties = {"ties_to_even": True} if value.ties_to_even else {}
            return f"{value.op}({', '.join(self._pairs({**value.args, **ties}))})"
        if is_dataclass(value):
            pairs = {field.name: getattr(value, field.name) for field in fields(value)}
            return f"{type(value).__name__}({', '.join(self._pairs(pairs))})"
        raise TypeError(f"no text for a value of {type(value).__name__}")

    def _values(self, array: Array) -> str:
        """Return the elements; one, if they are all the same."""
        if self.most_values is not None and array.size > self.most_values:
            data = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            return f"<{array.size} values, {sha256(data.tobytes()).hexdigest()[:8]}>"
        if array.size and array.tobytes() == array.size * array.reshape(-1)[:1].tobytes():
            return _element(array.reshape(-1)[0])
        return _nested(array)


def _nested(array: Array) -> str:
    items = [_nested(row) if array.ndim > 1 else _element(row) for row in array]
    return f"[{', '.join(items)}]"


def _element(value: object) -> str:
    """Return the shortest text that is read as this element."""
    short = str(value)
    if isinstance(value, np.floating) and type(value)(float(short)) != value:
        return repr(float(value))
    return short


def _name(name: str) -> str:
    is_plain = re.fullmatch(r"[^\W\d]\w*", name, re.ASCII) and name not in KEYWORDS
    return name if is_plain else repr(name)


def _location(location: Location | None) -> str:
    """Return a place as ``@(file, line, column, text)``, without what is not known at the end."""
    items = [] if location is None else [*astuple(location)]
    while len(items) > 1 and not items[-1]:
        items.pop()
    return f"@({', '.join(map(repr, items))})"
