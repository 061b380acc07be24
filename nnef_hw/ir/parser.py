"""Read a graph from the text that the printer makes of it.

::

    float graph net {                           # float, canonical or fixed
      input x: scalar[1, 2]
      constant w: scalar[3, 2] label='w' = [[0.5, 1.0], [-0.25, 2.0], [1.0, 1.0]]
      constant b: scalar[1, 3] = float32 0.0    # of another type than float64; all the same
      y: scalar[1, 3] = linear(x, w, b, activation=None) @('net.nnef', 7)
      output y
    }

* Behind a graph's name: ``rounding='tflite'``, if its author has one.
* Behind a tensor's shape: ``label``, ``qtype`` and ``quant``, if it has them, then its place.
  Results of a node stand where the node does, unless it is said.
* A state's line ends in ``<- RESULT label='...' = INITIAL VALUE``; a ``tensor`` line is that of
  one which nothing computes.
* Names that are not identifiers are quoted. Line ends are like spaces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.numerics import AddRequant, QType, Requant
from nnef_hw.arithmetic.records import Fields
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant, TfliteAverage, TfliteRequant
from nnef_hw.errors import Location, ModelError
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir.graph import Graph, Node, Quantization, Stage, State, Tensor
from nnef_hw.ir.printer import DEFAULT_DTYPES, KEYWORDS
from nnef_hw.ir.tokens import Tokens

__all__ = ["parse_graph"]

_WORDS = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}
_RECORDS = {
    kind.__name__: kind
    for kind in (
        QType,
        Requant,
        AddRequant,
        TfliteRequant,
        TfliteAddRequant,
        TfliteAverage,
        StreamRows,
        FeatureScales,
    )
}
_ARRAYS = frozenset(
    {"bool", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def parse_graph(text: str, file: str = "graph", first_line: int = 1) -> Graph:
    """Return the graph of a text.

    Parameters
    ----------
    file, first_line
        Where the text stands, for errors.

    Raises
    ------
    ModelError
        If the text is not a graph, or names a tensor that is not in it; with line and column.
    """
    parser = _Parser(text, file, first_line)
    graph = parser.graph()
    if parser.kind != "end":
        parser.fail("the end of the text")
    return graph


class _Parser(Tokens):
    """One method for each rule of the grammar; it begins at the rule's first token."""

    def graph(self) -> Graph:
        if self.word not in list(Stage):
            self.fail("float, canonical or fixed")
        stage = Stage(self.take())
        self.expect("graph")
        name = self.name()
        said = self.properties(("rounding", "rows", "features"))
        self.expect("{")
        scope = _Scope()
        while not self.accept("}"):
            self.statement(scope)
        for used, start in scope.used:
            if used not in scope.tensors:
                reason = f"there is no tensor {used!r} in graph {name!r}"
                raise ModelError(reason, location=self.location(start))
        return Graph(
            name, tuple(scope.inputs), tuple(scope.outputs), scope.tensors, tuple(scope.nodes),
            stage, scope.states, said.get("rounding"), rows=dict(said.get("rows", ())),
            features=dict(said.get("features", ())),
        )  # fmt: skip

    def statement(self, scope: _Scope) -> None:
        if self.kind != "name" or self.word not in KEYWORDS:
            self.node(scope)
            return
        keyword = self.take()
        if keyword == "output":
            scope.outputs.append(self.use(scope))
            return
        start = self.start
        tensor = self.tensor()
        if keyword == "input":
            scope.inputs.append(tensor["name"])
        elif keyword == "state":
            self.expect("<-")
            result = self.use(scope)
            said = self.properties(("label", "steps"))
            self.expect("=")
            label, steps = said.get("label"), said.get("steps", 1)
            scope.states[tensor["name"]] = State(self.typed_array(), result, label, steps)
        elif keyword == "constant":
            self.expect("=")
            default = DEFAULT_DTYPES.get(tensor["dtype"], "")
            dtype = self.take() if self.kind == "name" and self.word in _ARRAYS else default
            tensor["data"] = self.array(dtype, tensor["shape"])
        self.define(scope, tensor, start)

    def node(self, scope: _Scope) -> None:
        results = [(self.start, self.tensor())]
        while self.accept(","):
            results.append((self.start, self.tensor()))
        self.expect("=")
        op = self.identifier("an operator")
        inputs: list[str] = []

        def argument() -> None:
            if self.next_word == "=":
                key = self.identifier("an attribute")
                self.expect("=")
                attrs[key] = self.value()
            else:
                inputs.append(self.use(scope))

        attrs: dict[str, object] = {}
        self.expect("(")
        self.items(argument, ")")
        location = self.place() if self.word == "@" else None
        for start, result in results:
            result.setdefault("location", location)
            self.define(scope, result, start)
        names = tuple(result["name"] for _, result in results)
        scope.nodes.append(Node(op, tuple(inputs), names, attrs, location))

    def define(self, scope: _Scope, fields: Fields, start: int) -> None:
        if fields["name"] in scope.tensors:
            reason = f"there are two tensors {fields['name']!r}"
            raise ModelError(reason, location=self.location(start))
        scope.tensors[fields["name"]] = Tensor(**fields)

    def use(self, scope: _Scope) -> str:
        start, name = self.start, self.name()
        scope.used.append((name, start))
        return name

    def tensor(self) -> Fields:
        """Read name, shape and properties; the place only if it is there."""
        name = self.name()
        self.expect(":")
        if self.word not in DEFAULT_DTYPES:
            self.fail("scalar, integer or logical")
        fields: dict[str, object] = {"name": name, "dtype": self.take(), "shape": self.shape()}
        fields |= self.properties(("label", "qtype", "quant"))
        if self.word == "@":
            fields["location"] = self.place()
        return fields

    def properties(self, known: tuple[str, ...]) -> Fields:
        found = {}
        while self.kind == "name" and self.next_word == "=":
            if self.word not in known:
                self.fail(" or ".join(known))
            key = self.take()
            self.expect("=")
            found[key] = self.value()
        return found

    def name(self) -> str:
        return self.string() if self.kind == "string" else self.identifier("a name")

    def items(self, item: Callable[[], Any], end: str) -> list[Any]:
        """Read items up to the mark behind them; a comma may stand behind the last."""
        found = []
        while not self.accept(end):
            found.append(item())
            if self.word != end:
                self.expect(",")
        return found

    def shape(self) -> tuple[int, ...]:
        self.expect("[")
        return tuple(self.items(self.extent, "]"))

    def extent(self) -> int:
        if self.kind != "number" or not self.word.isdigit():
            self.fail("an extent")
        return int(self.take())

    def place(self) -> Location | None:
        self.expect("@")
        start = self.start
        self.expect("(")
        items = self.items(self.value, ")")
        wanted = (str, int, int, str)[: len(items)]
        if len(items) > 4 or not all(map(isinstance, items, wanted)):
            reason = "a place is (file, line, column, text)"
            raise ModelError(reason, location=self.location(start))
        return Location(*items) if items else None

    def value(self) -> object:
        if self.kind == "string":
            return self.string()
        if self.kind == "number":
            word = self.take()
            return int(word) if re.fullmatch(r"-?\d+", word) else float(word)
        if self.accept("["):
            return self.items(self.value, "]")
        if self.accept("("):
            return tuple(self.items(self.value, ")"))
        if self.kind == "name" and self.word in _ARRAYS:
            return self.typed_array()
        if self.kind == "name" and self.next_word == "graph":
            return self.graph()
        if self.kind == "name" and self.word in _WORDS:
            return _WORDS[self.take()]
        if self.kind == "name" and self.next_word == "(":
            return self.record()
        return self.fail("a value")

    def record(self) -> object:
        """Read ``Kind(field=value, ...)``, or a quantization's operator and arguments."""
        start, kind = self.start, self.take()
        self.expect("(")

        def pair() -> tuple[str, object]:
            key = self.identifier("a field")
            self.expect("=")
            return key, self.value()

        pairs = dict(self.items(pair, ")"))
        if kind not in _RECORDS:
            ties_to_even = bool(pairs.pop("ties_to_even", False))
            return Quantization(kind, pairs, ties_to_even)
        try:
            return _RECORDS[kind](**pairs)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{kind}: {error}", location=self.location(start)) from error

    def typed_array(self) -> Array:
        if self.word not in _ARRAYS:
            self.fail("a type such as float64")
        return self.array(self.take(), self.shape())

    def array(self, dtype: str, shape: tuple[int, ...]) -> Array:
        """Read elements, nested as the shape has it; a single one stands for all."""
        start = self.start
        if self.kind == "omitted":
            reason = "the values of this array were left out when it was printed"
            raise ModelError(reason, remedy="print it whole", location=self.location(start))
        value = self.value()
        try:
            parsed, array = np.asarray(value), np.asarray(value, dtype)
            if parsed.dtype.kind not in "biuf":
                raise ValueError("they are not numbers")
            if array.dtype.kind != "f" and not np.array_equal(parsed, array):
                raise ValueError(f"{dtype} cannot hold all of them")
            if array.ndim == 0:
                return np.full(shape, array)
            if array.size and array.shape != shape:
                raise ValueError(f"their shape is {list(array.shape)}")
            return array.reshape(shape)
        except (OverflowError, TypeError, ValueError) as error:
            reason = f"these are not values of {dtype}{list(shape)}: {error}"
            raise ModelError(reason, location=self.location(start)) from error


@dataclass(slots=True)
class _Scope:
    """Contents of a graph, as far as its statements are read."""

    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)
    used: list[tuple[str, int]] = field(default_factory=list)
