"""Graph to NNEF text: ``graph.nnef`` and ``graph.quant``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.nnef.operators import standard_operators
from nnef_hw.frontend.nnef.syntax import ArrayType, Declaration
from nnef_hw.ir import Graph, Node, Stage, Tensor

__all__ = ["format_document", "format_quantization", "identifiers", "inline_literals"]

_KEYWORDS = frozenset({
    "version", "extension", "graph", "fragment", "tensor", "integer", "scalar", "logical",
    "string", "shape_of", "length_of", "range_of", "for", "in", "yield", "if", "else", "true",
    "false",
})  # fmt: skip
_EXPLICIT_DTYPE = {"cast"}


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a valid and unique NNEF identifier for each name: the name itself where it is one."""
    wanted = list(names)
    taken = {name for name in wanted if _is_identifier(name)} | _KEYWORDS
    result: dict[str, str] = {}
    for name in wanted:
        if _is_identifier(name):
            result[name] = name
        else:
            result[name] = _unique(re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII) or "_", taken)
            taken.add(result[name])
    return result


def _is_identifier(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name not in _KEYWORDS


def _unique(name: str, taken: set[str] | frozenset[str]) -> str:
    unique, count = name, 0
    while unique in taken:
        count += 1
        unique = f"{name}_{count}"
    return unique


def inline_literals(graph: Graph) -> set[str]:
    """Return the constants that stand in their invocation: reading names them the same again."""
    result: set[str] = set()
    for node in graph.nodes:
        declaration = standard_operators().get(node.op)
        if declaration is None or graph.stage != Stage.FLOAT:
            continue
        parameters = [item for item in declaration.parameters if item.is_tensor]
        for parameter, name in zip(parameters, node.inputs, strict=False):
            tensor = graph.tensor(name)
            if (
                tensor.data is not None
                and tensor.shape == ()
                and tensor.label is None
                and name == f"{node.name}_{parameter.name}"
                and name not in graph.outputs
                and len(graph.consumers(name)) == 1
            ):
                result.add(name)
    return result


def format_document(graph: Graph, labels: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return ``graph.nnef``.

    Parameters
    ----------
    labels
        Labels of the constants that are stored in tensor files; others are written out.
    names
        Identifiers of all tensors, see :func:`identifiers`.

    Raises
    ------
    UnsupportedError
        If a float graph has an operator or a value that NNEF cannot express.
    """
    return _Writer(graph, labels, names).document()


class _Writer:
    def __init__(self, graph: Graph, labels: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._graph, self._labels, self._names = graph, labels, names
        self._inline = inline_literals(graph)
        self._taken = set(names.values()) | _KEYWORDS
        self._written: set[str] = set(graph.inputs)

    def document(self) -> str:
        graph = self._graph
        inputs = ", ".join(self._names[name] for name in graph.inputs)
        outputs = ", ".join(self._names[name] for name in graph.outputs)
        name = identifiers([graph.name])[graph.name]
        lines = ["version 1.0;", "", f"graph {name}({inputs}) -> ({outputs})", "{"]
        for item in graph.inputs:
            tensor = graph.tensor(item)
            shape = _value(list(tensor.shape))
            lines.append(f"    {self._names[item]} = external<{tensor.dtype}>(shape = {shape});")
        for node in graph.nodes:
            lines += [f"    {line}" for item in node.inputs for line in self._constant(item)]
            lines += [f"    {line}" for line in self._node(node)]
        lines += [f"    {line}" for item in graph.outputs for line in self._constant(item)]
        unused = [item for item, tensor in graph.tensors.items() if tensor.data is not None]
        lines += [f"    {line}" for item in unused for line in self._constant(item)]
        return "\n".join([*lines, "}", ""])

    def _constant(self, name: str) -> list[str]:
        tensor = self._graph.tensor(name)
        if tensor.data is None or name in self._inline or name in self._written:
            return []
        self._written.add(name)
        shape = _value(list(tensor.shape))
        if name in self._labels:
            source = f"variable<{tensor.dtype}>(shape = {shape}, label = '{self._labels[name]}')"
        else:
            values = ", ".join(_item(tensor, value) for value in tensor.data.reshape(-1))
            source = f"constant<{tensor.dtype}>(shape = {shape}, value = [{values}])"
        return [f"{self._names[name]} = {source};"]

    def _node(self, node: Node) -> list[str]:
        declaration = standard_operators().get(node.op)
        results = ", ".join(self._names[name] for name in node.outputs)
        if declaration is None:
            if self._graph.stage == Stage.FLOAT:
                raise UnsupportedError(
                    f"{node.op} {node.name!r} cannot be written: NNEF has no such operator",
                    location=node.location,
                )
            source = self._names[node.inputs[0]]
            return [f"{results} = copy({source});  # {node.op} in fixed.json"]
        if isinstance(declaration.results[0].type, ArrayType):
            results = f"[{results}]"
        generic = ""
        if node.op in _EXPLICIT_DTYPE:
            generic = f"<{self._graph.tensor(node.outputs[0]).dtype}>"
        call = f"{node.op}{generic}({', '.join(self._arguments(node, declaration))})"
        activation = node.attrs.get("activation")
        if activation is None:
            return [f"{results} = {call};"]
        linear = _unique(f"{results}_linear", self._taken)
        self._taken.add(linear)
        return [f"{linear} = {call};", f"{results} = {activation}({linear});"]

    def _arguments(self, node: Node, declaration: Declaration) -> list[str]:
        arguments: list[str] = []
        inputs = [self._operand(name) for name in node.inputs]
        for parameter in declaration.parameters:
            if parameter.is_tensor and isinstance(parameter.type, ArrayType):
                arguments.append(f"[{', '.join(inputs)}]")
            elif parameter.is_tensor and parameter.name not in node.attrs:
                arguments.append(inputs.pop(0))
            elif parameter.name in node.attrs or parameter.default is None:
                arguments.append(f"{parameter.name} = {_value(node.attrs[parameter.name])}")
        return arguments

    def _operand(self, name: str) -> str:
        tensor = self._graph.tensor(name)
        if name in self._inline and tensor.data is not None:
            return _item(tensor, tensor.data[()])
        return self._names[name]


def _item(tensor: Tensor, value: Any) -> str:
    if tensor.dtype == "logical":
        return _value(bool(value))
    if tensor.dtype == "integer":
        return str(int(value))
    if not np.isfinite(value):
        raise UnsupportedError(f"the constant {tensor.name!r} holds {value}, which NNEF cannot say")
    return _float(np.float32(value))


def _float(value: Any) -> str:
    text = str(value)
    return text if "." in text or "e" in text else f"{text}.0"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, float):
        if not np.isfinite(value):
            raise UnsupportedError(f"the attribute value {value} cannot be written in NNEF")
        return _float(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    return str(int(value))


def format_quantization(graph: Graph, names: Mapping[str, str]) -> str:
    """Return ``graph.quant``: a ``zero_point_linear_quantize`` line for every tensor with a QType.

    Scales per channel become an array along the channels: dimension 0 of filters, dimension 1 of
    biases.
    """
    lines: list[str] = []
    for name, tensor in graph.tensors.items():
        if (qtype := tensor.qtype) is None:
            continue
        scale = _scale(qtype.scale, tensor.shape)
        flags = f"signed = {_value(qtype.signed)}, symmetric = {_value(qtype.narrow)}"
        lines.append(
            f'"{names[name]}": zero_point_linear_quantize(zero_point = {qtype.zero_point}, '
            f"scale = {scale}, bits = {qtype.bits}, {flags});\n"
        )
    return "".join(lines)


def _scale(scale: float | tuple[float, ...], shape: tuple[int, ...]) -> str:
    if not isinstance(scale, tuple):
        return _float(scale)
    text = f"[{', '.join(map(_float, scale))}]"
    is_bias = len(shape) > 1 and shape[0] == 1 and shape[1] == len(scale) != 1
    return f"[{text}]" if is_bias else text
