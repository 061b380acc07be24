"""Syntax tree and tensor files to a float Graph; reports every problem, not only the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError, raise_all
from nnef_hw.frontend.nnef.archive import Archive
from nnef_hw.frontend.nnef.binding import bind
from nnef_hw.frontend.nnef.operators import nearest, standard_operators
from nnef_hw.frontend.nnef.syntax import (
    Array,
    ArrayType,
    Assignment,
    Declaration,
    Document,
    Expression,
    Identifier,
    Invocation,
    Tuple,
)
from nnef_hw.frontend.nnef.variables import VariableReader
from nnef_hw.frontend.shapes import SHAPE_RULES, Call
from nnef_hw.ir import Graph, Node, Tensor

__all__ = ["lower"]

_LITERAL_DTYPES = {"scalar": np.float32, "integer": np.int64, "logical": np.bool_}
_MAX_VOLUME = 1 << 28
_EXTENSIONS = {"KHR_enable_fragment_definitions", "KHR_enable_operator_expressions"}


def lower(document: Document, archive: Archive) -> Graph:
    """Check a document and turn it into a graph.

    Raises
    ------
    ModelError, UnsupportedError
        If there is one problem.
    ErrorGroup
        If there are several, each with its location.
    """
    return _Lowering(document, archive).lower()


class _UnknownTensorError(Exception):
    """A tensor whose own assignment is wrong: that was reported already."""


class _Lowering:
    def __init__(self, document: Document, archive: Archive) -> None:
        self._document = document
        self._graph = document.graph
        self._variables = VariableReader(archive)
        self._errors: list[NnefHwError] = []
        self._tensors: dict[str, Tensor] = {}
        self._places: dict[str, Location] = {}
        self._unknown: set[str] = set()
        self._externals: dict[str, Location] = {}
        self._nodes: list[Node] = []
        self._reserved = {
            target.name
            for assignment in self._graph.assignments
            for target in _targets(assignment.target)
        }

    def lower(self) -> Graph:
        for extension in (name for line in self._document.extensions for name in line.names):
            if extension.name not in _EXTENSIONS:
                self._errors.append(
                    UnsupportedError(
                        f"the extension {extension.name!r} is not supported",
                        remedy="export the model as plain NNEF 1.0",
                        location=extension.location,
                    )
                )
        for assignment in self._graph.assignments:
            self._assign(assignment)
        self._check_interface()
        raise_all(self._errors)
        return Graph(
            name=self._graph.name,
            inputs=tuple(item.name for item in self._graph.inputs),
            outputs=tuple(item.name for item in self._graph.outputs),
            tensors=self._tensors,
            nodes=tuple(self._nodes),
        )

    def tensor(self, identifier: Identifier) -> Tensor:
        name = identifier.name
        if name in self._unknown:
            raise _UnknownTensorError
        if name not in self._tensors:
            later = name in self._reserved
            raise ModelError(
                f"the tensor {name!r} is used before it is assigned"
                if later
                else f"there is no tensor {name!r}",
                remedy="move its assignment up" if later else nearest(name, self._tensors),
                location=identifier.location,
            )
        return self._tensors[name]

    def literal(self, name: str, value: bool | int | float, location: Location) -> Tensor:
        dtype = {bool: "logical", int: "integer", float: "scalar"}[type(value)]
        unique, count = name, 0
        while unique in self._reserved:
            count += 1
            unique = f"{name}_{count}"
        self._reserved.add(unique)
        data = _literal_data(value, dtype, location)
        tensor = Tensor(unique, (), dtype, data, location=location)
        self._tensors[unique] = tensor
        return tensor

    def _assign(self, assignment: Assignment) -> None:
        targets = list(_targets(assignment.target))
        fresh = self._fresh(targets)
        try:
            results = self._evaluate(assignment, targets)
        except _UnknownTensorError:
            results = None
        except NnefHwError as error:
            self._errors.append(error)
            results = None
        if results is None:
            self._unknown.update(target.name for target in fresh)
            return
        for target, tensor in zip(targets, results, strict=True):
            if target in fresh:
                self._tensors[target.name] = tensor

    def _fresh(self, targets: list[Identifier]) -> list[Identifier]:
        fresh: list[Identifier] = []
        for target in targets:
            earlier = self._places.get(target.name)
            if earlier is None:
                self._places[target.name] = target.location
                fresh.append(target)
            else:
                self._errors.append(
                    ModelError(
                        f"the tensor {target.name!r} is assigned twice, first in line "
                        f"{earlier.line}",
                        remedy="choose another name",
                        location=target.location,
                    )
                )
        return fresh

    def _evaluate(self, assignment: Assignment, targets: list[Identifier]) -> list[Tensor]:
        invocation = assignment.value
        if not isinstance(invocation, Invocation):
            raise UnsupportedError(
                "only invocations can be assigned so far",
                remedy="write copy(x) instead of x, constant(...) instead of a literal",
                location=invocation.location,
            )
        declaration = self._declaration(invocation)
        is_source = invocation.operator in {"external", "variable", "constant"}
        rule = SHAPE_RULES.get(invocation.operator)
        if rule is None and not is_source:
            raise UnsupportedError(
                f"the operator {invocation.operator!r} is not supported yet",
                remedy="replace it by other operators",
                location=invocation.location,
            )
        call = bind(invocation, targets[0].name if targets else "", declaration, self)
        shapes = [self._shape(call)] if rule is None else rule(call)
        self._check_targets(assignment, declaration, call, len(targets), len(shapes))
        if rule is None:
            return [self._source(call, shapes[0], targets[0])]
        dtypes = call.dtypes if len(call.dtypes) == len(shapes) else call.dtypes * len(shapes)
        self._nodes.append(
            Node(
                op=call.op,
                inputs=tuple(tensor.name for tensor in call.inputs),
                outputs=tuple(target.name for target in targets),
                attrs=call.attrs,
                location=assignment.location,
            )
        )
        return [
            Tensor(target.name, shape, dtype, location=target.location)
            for target, shape, dtype in zip(targets, shapes, dtypes, strict=True)
        ]

    def _declaration(self, invocation: Invocation) -> Declaration:
        operators = standard_operators()
        if invocation.operator not in operators:
            raise UnsupportedError(
                f"the operator {invocation.operator!r} is unknown",
                remedy=nearest(invocation.operator, operators)
                or "only the operators of NNEF 1.0.5 are supported",
                location=invocation.location,
            )
        return operators[invocation.operator]

    def _check_targets(
        self, assignment: Assignment, declaration: Declaration, call: Call, given: int, count: int
    ) -> None:
        if given != count:
            raise call.error(
                f"the operator has {count} result{'s' * (count != 1)}, "
                f"but {given} {'are' if given != 1 else 'is'} assigned"
            )
        is_array = isinstance(declaration.results[0].type, ArrayType)
        if is_array != isinstance(assignment.target, Array):
            raise call.error(
                "the result is an array" if is_array else "the result is not an array",
                "write [a, b] = ..." if is_array else "write a = ... without brackets",
            )

    @staticmethod
    def _shape(call: Call) -> tuple[int, ...]:
        shape = tuple(call.attrs["shape"])
        if any(extent < 1 for extent in shape):
            raise call.error(f"shape {list(shape)} must be positive", at="shape")
        if math.prod(shape) > _MAX_VOLUME:
            raise call.error(
                f"shape {list(shape)} has more than {_MAX_VOLUME} elements",
                "no supported device holds it",
                at="shape",
            )
        return shape

    def _source(self, call: Call, shape: tuple[int, ...], target: Identifier) -> Tensor:
        dtype = call.dtypes[0]
        tensor = Tensor(target.name, shape, dtype, location=target.location)
        if call.op == "external":
            self._externals[target.name] = target.location
            return tensor
        if call.op == "variable":
            return self._variables.read(call, tensor)
        values, volume = call.attrs["value"], math.prod(shape)
        if len(values) not in {1, volume}:
            raise call.error(
                f"{len(values)} values are given for the {volume} elements of shape {list(shape)}",
                "give one, or one per element",
                at="value",
            )
        data = _literal_data(values, dtype, call.places["value"])
        data = np.broadcast_to(data, volume).reshape(shape)
        return Tensor(target.name, shape, dtype, data, location=target.location)

    def _check_interface(self) -> None:
        inputs = {item.name for item in self._graph.inputs}
        for item in self._graph.inputs:
            if item.name not in self._externals and item.name not in self._unknown:
                self._errors.append(
                    ModelError(
                        f"the graph input {item.name!r} is not the result of an external",
                        remedy=f"write {item.name} = external(shape = [...]);",
                        location=item.location,
                    )
                )
        for name, where in self._externals.items():
            if name not in inputs:
                self._errors.append(
                    ModelError(
                        f"the external {name!r} is not an input of the graph",
                        remedy=f"add it: graph {self._graph.name}({name}, ...)",
                        location=where,
                    )
                )
        for item in self._graph.outputs:
            if item.name not in self._places:
                self._errors.append(
                    ModelError(
                        f"the graph result {item.name!r} is never assigned",
                        remedy=nearest(item.name, self._places),
                        location=item.location,
                    )
                )
        for group in (self._graph.inputs, self._graph.outputs):
            for index, item in enumerate(group):
                if item.name in {other.name for other in group[:index]}:
                    self._errors.append(
                        ModelError(
                            f"{item.name!r} is listed twice",
                            remedy="remove one",
                            location=item.location,
                        )
                    )


def _targets(target: Expression) -> Iterator[Identifier]:
    if isinstance(target, Identifier):
        yield target
    elif isinstance(target, Array | Tuple):
        for item in target.items:
            yield from _targets(item)


def _literal_data(values: Any, dtype: str, location: Location) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        data: NDArray[Any] = np.asarray(values, _LITERAL_DTYPES[dtype])
    if not np.isfinite(data).all():
        raise ModelError(
            "a number is too large for 32-bit floats", remedy="scale it down", location=location
        )
    return data
