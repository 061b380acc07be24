"""ONNX graphs to the one Graph; reports every problem, not only the first."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError, raise_all
from nnef_hw.frontend.building.builder import Builder, identifier, without_unused
from nnef_hw.frontend.building.whole_steps import whole_steps
from nnef_hw.frontend.onnx.file.declarations import home_domain, way_out
from nnef_hw.frontend.onnx.file.model import (
    FLOAT32,
    Constant,
    OnnxFunction,
    OnnxGraph,
    OnnxModel,
    OnnxNode,
    as_data,
)
from nnef_hw.frontend.onnx.file.symbols import Symbols
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.function_bodies import (
    FunctionBodies,
    resolved,
    without_inputs,
)  # fmt: skip
from nnef_hw.frontend.onnx.lowering.hoist_quantization import hoist_quantization
from nnef_hw.frontend.onnx.lowering.integer_inputs import is_converted
from nnef_hw.frontend.onnx.lowering.quantized import Quantized, codes, lower_node
from nnef_hw.frontend.onnx.lowering.refused import OTHER_OPERATORS, grouped, with_cut
from nnef_hw.frontend.onnx.lowering.registry import lowering_of
from nnef_hw.frontend.onnx.lowering.requantization import follow
from nnef_hw.frontend.onnx.lowering.tidy import with_shared_variables
from nnef_hw.ir import Graph, Tensor

__all__ = ["lower"]

_MAX_NODES = 1 << 16
_MAX_DEPTH = 32

Scope = ChainMap[str, Value | None]
"""Values by name; None for those whose own node is wrong, which was reported already."""


def lower(
    model: OnnxModel, bodies: FunctionBodies, symbols: Symbols, errors: list[NnefHwError]
) -> Graph:
    """Turn a model into a graph.

    Parameters
    ----------
    bodies
        Bodies of operators that ONNX defines in terms of others.
    symbols
        Shapes of the inputs.
    errors
        Errors that were found before.

    Raises
    ------
    UsageError
        If a symbol has no value.
    ModelError, UnsupportedError
        If there is one problem.
    ErrorGroup
        If there are several.
    """
    return _Lowering(model, bodies, errors).lower(symbols)


class _UnknownValueError(Exception):
    """A value whose own node is wrong: that was reported already."""


class _ProblemsError(Exception):
    """There are problems, which were collected."""


class _Lowering:
    def __init__(
        self,
        model: OnnxModel,
        bodies: FunctionBodies,
        errors: list[NnefHwError],
        *,
        is_part: bool = False,
    ) -> None:
        self._model = model
        self._is_part = is_part
        self._bodies = bodies
        self._location = Location(model.path)
        self.errors = errors
        self._refused: list[OnnxNode] = []
        self._builder = Builder(identifier(model.graph.name), fold=True)
        self._names: dict[str, str] = {}
        self._constants: dict[tuple[Builder, Constant], Value] = {}
        self._depth = 0
        self._count = 0

    def lower(self, symbols: Symbols) -> Graph:
        """Return the graph, or raise the problems with the part that can be read before them."""
        try:
            return self._lower(symbols)
        except _ProblemsError:
            errors = grouped(self.errors)
        if not self._is_part:
            errors = with_cut(errors, self._model, self._refused, partial(self._part, symbols))
        raise_all(errors)
        raise AssertionError("there are problems")

    def _part(self, symbols: Symbols, model: OnnxModel) -> Graph:
        return _Lowering(model, self._bodies, [], is_part=True).lower(symbols)

    def _stop_at_problems(self) -> None:
        if self.errors:
            raise _ProblemsError

    def _lower(self, symbols: Symbols) -> Graph:
        source = self._model.graph
        scope: Scope = ChainMap()
        self._name_values(source)
        for item in source.inputs:
            if item.name not in source.initializers:
                scope[item.name] = self._input(item.name, symbols)
        self._stop_at_problems()
        for name, constant in source.initializers.items():
            scope[name] = self._initializer(name, constant)
        self._block(source.nodes, scope)
        self._stop_at_problems()
        outputs = self._outputs(source, scope)
        graph = with_shared_variables(self._builder.build(outputs))
        return hoist_quantization(without_unused(graph))

    def _name_values(self, graph: OnnxGraph) -> None:
        """Give the model's own values their names before any that are made up here."""
        for name in (
            *(item.name for item in graph.inputs),
            *graph.initializers,
            *(name for node in graph.nodes for name in node.outputs if name),
        ):
            if name not in self._names:
                self._names[name] = self._builder.unique(identifier(name))

    def _input(self, name: str, symbols: Symbols) -> Value | None:
        try:
            element, shape = symbols.resolve(name)
        except NnefHwError as error:
            self.errors.append(error)
            return None
        quant = None
        if element.dtype == "integer" and is_converted(self._model.graph, name):
            element, quant = FLOAT32, whole_steps(element.bits, signed=element.signed)
        tensor = Tensor(
            self._names.pop(name), shape, element.dtype, location=self._location, quant=quant
        )
        self._builder.input(tensor)
        if tensor.volume == 0:
            nothing = as_data(np.zeros(shape), element)
            tensor = self._builder.constant(tensor.name, nothing, location=self._location)
        return Value(tensor, element)

    def _initializer(self, name: str, constant: Constant) -> Value:
        """Return a constant of the file, which a body that is lowered several times has once."""
        key = self._builder, constant
        if key not in self._constants:
            free = None if self._depth else self._names.pop(name, None)
            unique = free or self._builder.unique(identifier(name))
            data, dtype = constant.data, constant.type.dtype
            label = unique if data.ndim else None
            tensor = Tensor(unique, data.shape, dtype, data, label, location=self._location)
            self._constants[key] = Value(self._builder.add(tensor), constant.type)
        return self._constants[key]

    def _outputs(self, graph: OnnxGraph, scope: Scope) -> list[str]:
        """Return the results' names; a value that is not the result of a node is copied."""
        values = [self.plain(self._argument(scope[name])) for name in graph.outputs]
        own = {name for node in self._builder.nodes for name in node.outputs}
        found: dict[str, str] = {}
        outputs: list[str] = []
        for name, value in zip(graph.outputs, values, strict=True):
            tensor = value.tensor
            free = self._names.pop(name, None)
            if tensor.name in own - found.keys():
                found[tensor.name] = free or tensor.name
                outputs.append(free or tensor.name)
                self._rename({tensor.name: free} if free else {})
                continue
            wanted = free or self._builder.unique(identifier(name))
            outputs.append(wanted)
            if tensor.data is not None:
                self._builder.add(replace(tensor, name=wanted))
            else:
                source = self._builder.tensors[found.get(tensor.name, tensor.name)]
                self._builder.node("copy", [source], {}, [wanted], [source.dtype])
        return outputs

    def _block(self, nodes: Sequence[OnnxNode], scope: Scope) -> None:
        for node in nodes:
            results: Sequence[Value | None] = [None] * len(node.outputs)
            try:
                results = self._node(node, scope)
            except _UnknownValueError:
                pass
            except NnefHwError as error:
                self.errors.append(self._about(node, error))
                if not self._depth:
                    self._refused.append(node)
            for index, name in enumerate(node.outputs):
                if name:
                    scope[name] = results[index] if index < len(results) else None

    def _about(self, node: OnnxNode, error: NnefHwError) -> NnefHwError:
        reason = error.reason
        if not reason.startswith(node.label):
            reason = f"{node.label}: {reason}"
        return type(error)(reason, remedy=error.remedy, location=self._location)

    def _node(self, node: OnnxNode, scope: Scope) -> Sequence[Value | None]:
        if node.problem is not None:
            raise node.problem
        function = self._model.functions.get(node.function)
        lowering = lowering_of(node.op, node.since, home_domain(node.op, node.domain))
        if function is None and lowering is None and not self._bodies.exists(node):
            raise self._unsupported(node)
        inputs = [self._argument(scope[name]) if name else None for name in node.inputs]
        self._count += 1
        if self._count > _MAX_NODES:
            raise UnsupportedError(f"the model unrolls to more than {_MAX_NODES} nodes")
        if function is None and lowering is None:
            function = self._bodies.body(node, inputs)
        if function is not None:
            return self._call(node, function, inputs)
        if lowering is None:
            raise self._unsupported(node)
        call = OnnxCall(node, inputs, self._builder, self._location, _Surroundings(self, scope))
        start = len(self._builder.nodes)
        found = lower_node(lowering, call)
        found = follow(call, found) or found
        results = [found] if isinstance(found, Value) else list(found)
        missing = [
            name
            for index, name in enumerate(node.outputs)
            if name and (index >= len(results) or results[index] is None)
        ]
        if missing:
            raise call.unsupported(f"the output {missing[0]!r} is not supported")
        return self._named(call, results, start)

    def _unsupported(self, node: OnnxNode) -> UnsupportedError:
        return UnsupportedError(
            f"{node.label} of opset {node.opset}: the operator is not supported",
            remedy=way_out(node.op, node.domain) or OTHER_OPERATORS,
            location=self._location,
        )

    @staticmethod
    def _argument(value: Value | None) -> Value:
        if value is None:
            raise _UnknownValueError
        return value

    def _named(
        self, call: OnnxCall, results: Sequence[Value | None], start: int
    ) -> list[Value | None]:
        """Give the results that were made for a node the names they have in the model."""
        names: dict[str, str] = {}
        for name, value in zip(call.node.outputs, results, strict=False):
            if name and value is not None and value.tensor.name in call.created - names.keys():
                kept = isinstance(value, Quantized) and name in self._model.graph.outputs
                free = None if self._depth or kept else self._names.pop(name, None)
                names[value.tensor.name] = free or self._builder.unique(identifier(name))
        self._rename(names, start)
        tensors = self._builder.tensors
        if self._depth:
            self._disown(start)
        return [
            value and replace(value, tensor=tensors[names.get(old := value.tensor.name, old)])
            for value in results
        ]

    def _disown(self, start: int) -> None:
        """Locate the values that nodes from number ``start`` on compute at a node of the file."""
        tensors, nodes = self._builder.tensors, self._builder.nodes
        for name in (name for node in nodes[start:] for name in node.outputs):
            tensors[name] = replace(tensors[name], location=self._location)

    def _rename(self, names: Mapping[str, str], start: int = 0) -> None:
        """Rename tensors that nodes from number ``start`` on compute and read."""
        tensors, nodes = self._builder.tensors, self._builder.nodes
        for old, new in names.items():
            tensors[new] = replace(tensors.pop(old), name=new)
            self._builder.reserved.discard(old)
        for index in range(start, len(nodes) if names else 0):
            node = nodes[index]
            nodes[index] = replace(
                node,
                inputs=tuple(names.get(item, item) for item in node.inputs),
                outputs=tuple(names.get(item, item) for item in node.outputs),
            )

    def _call(
        self, node: OnnxNode, function: OnnxFunction, inputs: Sequence[Value | None]
    ) -> list[Value | None]:
        """Lower the body of a function in place of a node that calls it."""
        if len(inputs) > len(function.inputs):
            raise ModelError(
                f"{node.label}: {len(inputs)} inputs are given, but the function takes "
                f"{len(function.inputs)}"
            )
        arguments = [*inputs, *[None] * (len(function.inputs) - len(inputs))]
        absent = {
            name for name, value in zip(function.inputs, arguments, strict=True) if value is None
        }
        attrs = {**function.attrs, **node.attrs}
        nodes = [resolved(without_inputs(item, absent), attrs) for item in function.nodes]
        scope: Scope = ChainMap(dict(zip(function.inputs, arguments, strict=True)))
        before = len(self.errors)
        with self._nested():
            self._block(nodes, scope)
        self.errors[before:] = [self._about(node, error) for error in self.errors[before:]]
        return [scope.get(name) for name in function.outputs]

    def subgraph(
        self,
        graph: OnnxGraph,
        values: Sequence[Value],
        scope: Scope,
        builder: Builder | None = None,
    ) -> list[Value]:
        """Lower a subgraph in place, or into another builder; it sees the values around it."""
        inner = scope.new_child(
            dict(zip((item.name for item in graph.inputs), values, strict=True))
        )
        outer, self._builder = self._builder, builder or self._builder
        try:
            for name, constant in graph.initializers.items():
                inner[name] = self._initializer(name, constant)
            with self._nested():
                self._block(graph.nodes, inner)
            return [self.plain(self._argument(inner[name])) for name in graph.outputs]
        finally:
            self._builder = outer

    def plain(self, value: Value) -> Value:
        """Return a value whose tensor holds it: integers are computed from real numbers."""
        return codes(self._builder, value)

    @contextmanager
    def _nested(self) -> Iterator[None]:
        if self._depth == _MAX_DEPTH:
            raise UnsupportedError(
                f"functions and subgraphs are nested more than {_MAX_DEPTH} deep",
                location=self._location,
            )
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


class _Surroundings:
    """Surroundings of a node's subgraphs: the scope the node stands in."""

    def __init__(self, lowering: _Lowering, scope: Scope) -> None:
        self._lowering, self._scope = lowering, scope

    def lower(
        self,
        graph: OnnxGraph,
        values: Sequence[Value],
        builder: Builder | None = None,
        captured: Mapping[str, Value] | None = None,
    ) -> list[Value]:
        """Lower a subgraph for some arguments and return its results."""
        scope = self._scope.new_child(dict(captured or {}))
        return self._lowering.subgraph(graph, values, scope, builder)

    def attempt(
        self,
        graph: OnnxGraph,
        values: Sequence[Value],
        builder: Builder,
        captured: Mapping[str, Value],
    ) -> list[Value] | None:
        """Lower a subgraph as :meth:`lower` does; None, and no error, if that is not possible."""
        errors = self._lowering.errors
        before = len(errors)
        try:
            results = self.lower(graph, values, builder, captured)
        except (NnefHwError, _UnknownValueError):
            results = None
        if len(errors) == before:
            return results
        del errors[before:]
        return None

    def captured(self, graph: OnnxGraph) -> dict[str, Value]:
        """Return the values from outside that a subgraph reads."""
        names = [*graph.outputs, *(name for node in graph.nodes for name in node.inputs)]
        for node in graph.nodes:
            for value in node.attrs.values():
                if isinstance(value, OnnxGraph):
                    names += self.captured(value)
        own = {item.name for item in graph.inputs}
        found = {name: self._scope.get(name) for name in names if name not in own}
        plain = self._lowering.plain
        return {name: plain(value) for name, value in found.items() if value is not None}
