"""Graph to NNEF text: ``graph.nnef`` and ``graph.quant``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.frontend.nnef.evaluation.custom import format_declaration
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.language.literals import (
    KEYWORDS,
    fits_literals,
    format_value,
    identifiers,
    unique,
)
from nnef_hw.frontend.nnef.language.syntax import ArrayType, Declaration, Parameter
from nnef_hw.frontend.nnef.writing.conform import declaration_of
from nnef_hw.ir import Graph, Node, Stage, Tensor
from nnef_hw.ir.activation import activation_limits

__all__ = ["format_document", "format_quantization", "inline_literals"]

_EXPLICIT_DTYPE = {"cast"}


def inline_literals(graph: Graph) -> set[str]:
    """Return the constants that stand in their invocation: reading names them the same again."""
    if graph.stage != Stage.FLOAT:
        return set()
    uses: dict[str, int] = dict.fromkeys(graph.outputs, 2)
    for node in graph.nodes:
        for name in node.inputs:
            uses[name] = uses.get(name, 0) + 1
    return {
        name
        for node in graph.nodes
        for parameter, name in zip(_tensor_parameters(node.op), node.inputs, strict=False)
        if name == f"{node.name}_{parameter.name}"
        and uses[name] == 1
        and _is_bare_number(graph.tensor(name))
    }


def _tensor_parameters(op: str) -> list[Parameter]:
    declaration = declaration_of(op)
    return [item for item in declaration.parameters if item.is_tensor] if declaration else []


def _is_bare_number(tensor: Tensor) -> bool:
    return (
        tensor.data is not None
        and tensor.shape == ()
        and tensor.label is None
        and tensor.quant is None
        and fits_literals(tensor.data)
    )


def format_document(graph: Graph, labels: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return ``graph.nnef``.

    Parameters
    ----------
    graph
        A graph of any stage; a float one is
        :func:`~nnef_hw.frontend.nnef.writing.conform.conform`'s.
    labels
        Labels of the states and of the constants that are stored in tensor files; other constants
        are written out.
    names
        Identifiers of all tensors, see
        :func:`~nnef_hw.frontend.nnef.language.literals.identifiers`.
    """
    return _Writer(graph, labels, names).document()


class _Writer:
    def __init__(self, graph: Graph, labels: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._graph, self._labels, self._names = graph, labels, names
        self._inline = inline_literals(graph)
        self._used_names = set(names.values()) | KEYWORDS
        self._written: set[str] = set(graph.inputs)

    def document(self) -> str:
        graph = self._graph
        inputs = ", ".join(self._names[name] for name in graph.inputs)
        outputs = ", ".join(self._names[name] for name in graph.outputs)
        name = identifiers([graph.name])[graph.name]
        lines = [*self._header(), f"graph {name}({inputs}) -> ({outputs})", "{"]
        lines += [f"    {line}" for line in self._statements()]
        return "\n".join([*lines, "}", ""])

    def _header(self) -> Iterator[str]:
        yield "version 1.0;"
        used = {node.op for node in self._graph.nodes}
        declared = {**load_library("extended"), **load_library("steps")}
        custom = [item for name, item in declared.items() if name in used]
        if custom:
            yield "extension KHR_enable_fragment_definitions;"
        yield ""
        for declaration in custom:
            yield format_declaration(declaration)
        if custom:
            yield ""

    def _statements(self) -> Iterator[str]:
        graph = self._graph
        for name in graph.inputs:
            tensor = graph.tensor(name)
            shape = format_value(list(tensor.shape))
            yield f"{self._names[name]} = external<{tensor.dtype}>(shape = {shape});"
        for name in graph.states:
            yield self._variable(graph.tensor(name))
        for node in graph.nodes:
            yield from self._constants(node.inputs)
            yield from self._node(node)
        yield from self._constants(graph.outputs)
        yield from self._constants(graph.tensors)
        for name, state in graph.states.items():
            target = self._unused(f"{self._names[name]}_next")
            yield f"{target} = update({self._names[name]}, {self._names[state.result]});"

    def _constants(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            tensor = self._graph.tensor(name)
            if tensor.data is None or name in self._inline or name in self._written:
                continue
            self._written.add(name)
            if name in self._labels:
                yield self._variable(tensor)
                continue
            shape = format_value(list(tensor.shape))
            values = ", ".join(_item(tensor, value) for value in tensor.data.reshape(-1))
            yield (
                f"{self._names[name]} = constant<{tensor.dtype}>(shape = {shape}, "
                f"value = [{values}]);"
            )

    def _variable(self, tensor: Tensor) -> str:
        shape, label = format_value(list(tensor.shape)), self._labels[tensor.name]
        target = self._names[tensor.name]
        return f"{target} = variable<{tensor.dtype}>(shape = {shape}, label = '{label}');"

    def _node(self, node: Node) -> Iterator[str]:
        declaration = declaration_of(node.op)
        results = ", ".join(self._names[name] for name in node.outputs)
        if declaration is None:
            source = self._names[node.inputs[0]]
            yield f"{results} = copy({source});  # {node.op} in fixed.json"
            return
        if isinstance(declaration.results[0].type, ArrayType):
            results = f"[{results}]"
        generic = ""
        if node.op in _EXPLICIT_DTYPE:
            generic = f"<{self._graph.tensor(node.outputs[0]).dtype}>"
        call = f"{node.op}{generic}({', '.join(self._arguments(node, declaration))})"
        activation = node.attrs.get("activation")
        if activation is None:
            yield f"{results} = {call};"
            return
        linear = self._unused(f"{results}_linear")
        yield f"{linear} = {call};"
        limits = "".join(
            f", {format_value(np.float32(limit))}"
            for limit in activation_limits(node)
            if activation == "clamp"
        )
        yield f"{results} = {activation}({linear}{limits});"

    def _arguments(self, node: Node, declaration: Declaration) -> Iterator[str]:
        inputs = [self._operand(name) for name in node.inputs]
        for parameter in declaration.parameters:
            if parameter.is_tensor and isinstance(parameter.type, ArrayType):
                yield f"[{', '.join(inputs)}]"
            elif parameter.is_tensor and parameter.name not in node.attrs:
                yield inputs.pop(0)
            elif parameter.name in node.attrs or parameter.default is None:
                yield f"{parameter.name} = {format_value(node.attrs[parameter.name])}"

    def _operand(self, name: str) -> str:
        tensor = self._graph.tensor(name)
        if name in self._inline and tensor.data is not None:
            return _item(tensor, tensor.data[()])
        return self._names[name]

    def _unused(self, wanted: str) -> str:
        name = unique(wanted, self._used_names)
        self._used_names.add(name)
        return name


def _item(tensor: Tensor, value: AttributeValue) -> str:
    if tensor.dtype == "logical":
        return format_value(bool(value))
    return format_value(int(value) if tensor.dtype == "integer" else np.float32(value))


def format_quantization(graph: Graph, names: Mapping[str, str]) -> str:
    """Return ``graph.quant``: a line for every tensor that its author or we quantized.

    Scales per channel become an array along the channels: dimension 0 of filters, dimension 1 of
    biases.
    """
    lines: list[str] = []
    for name, tensor in graph.tensors.items():
        if tensor.qtype is not None:
            op, args = "zero_point_linear_quantize", _qtype_args(tensor)
        elif tensor.quant is not None:
            op, args = tensor.quant.op, dict(tensor.quant.args)
        else:
            continue
        shown = ", ".join(f"{key} = {format_value(value)}" for key, value in args.items())
        lines.append(f'"{names[name]}": {op}({shown});\n')
    return "".join(lines)


def _qtype_args(tensor: Tensor) -> dict[str, object]:
    qtype = tensor.qtype
    assert qtype is not None
    scale: object = list(qtype.scale) if isinstance(qtype.scale, tuple) else qtype.scale
    shape = tensor.shape
    if isinstance(scale, list) and len(shape) > 1 and shape[0] == 1 and shape[1] == len(scale) != 1:
        scale = [scale]
    return {
        "zero_point": qtype.zero_point,
        "scale": scale,
        "bits": qtype.bits,
        "signed": qtype.signed,
        "symmetric": qtype.narrow,
    }
