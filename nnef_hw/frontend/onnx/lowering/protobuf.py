"""ONNX files to plain values: the only module that sees protobuf messages of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError, UsageError
from nnef_hw.frontend.building.model_file import read_model_file
from nnef_hw.frontend.onnx.file.model import (
    ELEMENT_TYPES,
    FLOAT32,
    INT64,
    AttributeReference,
    Constant,
    FunctionKey,
    OnnxFunction,
    OnnxGraph,
    OnnxInput,
    OnnxModel,
    OnnxNode,
)
from nnef_hw.frontend.onnx.file.oldest import OLDEST, complete_attribute, modernize
from nnef_hw.frontend.onnx.file.order import sorted_graph
from nnef_hw.frontend.onnx.file.tensors import decode_sparse_tensor, decode_tensor, type_name
from nnef_hw.frontend.onnx.lowering.schemas import Schemas, standard_domain

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        TypeProto,
        ValueInfoProto,
    )

__all__ = ["Decoder", "read_model"]

_IMPORTING = 3
"""The first IR version of which files say the opsets that they use."""
_UNKNOWN = Constant(np.zeros(()), FLOAT32)
"""Stands for a tensor that cannot be read, which was reported."""


def read_model(path: Path, errors: list[NnefHwError]) -> tuple[OnnxModel, Decoder]:
    """Read an ONNX file; the decoder reads bodies of operators later.

    Parameters
    ----------
    errors
        Gets every problem of the model that others can be found beside.

    Raises
    ------
    UsageError
        If there is no such file, or the ``onnx`` package is not installed.
    ModelError, UnsupportedError
        If the file is no ONNX model, or of a version that cannot be read.
    """
    where = Location(str(path))
    try:
        from google.protobuf.message import DecodeError
        from onnx import ModelProto
    except ImportError:
        raise UsageError(
            f"ONNX models such as {str(path)!r} need the onnx package",
            remedy="pip install onnx",
        ) from None
    content = read_model_file(path, "export it with external data")
    try:
        proto = ModelProto.FromString(content)
    except DecodeError:
        raise ModelError(
            "the file is not an ONNX model, or it is damaged",
            remedy="export it again",
            location=where,
        ) from None
    if not _is_text(proto):
        raise ModelError(
            "a name in the file is not UTF-8 text", remedy="export it again", location=where
        )
    if not proto.HasField("graph"):
        raise ModelError("the file holds no ONNX graph", remedy="export it again", location=where)
    decoder = Decoder(path, errors)
    return decoder.model(proto), decoder


class Decoder:
    """Messages to plain values; problems of the model are collected.

    Parameters
    ----------
    path
        The model's file; external data lie beside it.
    errors
        Gets every problem.
    """

    def __init__(self, path: Path, errors: list[NnefHwError]) -> None:
        self._path, self._folder = path, path.parent
        self._where = Location(str(path))
        self._errors = errors
        self._schemas = Schemas(self._where)
        self._functions: set[FunctionKey] = set()

    def model(self, proto: ModelProto) -> OnnxModel:
        """Return a whole model.

        Raises
        ------
        UnsupportedError
            If its version cannot be read.
        """
        import onnx

        if proto.ir_version > onnx.IR_VERSION:
            raise UnsupportedError(
                f"the model has IR version {proto.ir_version}, but onnx {onnx.__version__} knows "
                f"none above {onnx.IR_VERSION}",
                remedy="pip install --upgrade onnx",
                location=self._where,
            )
        self._check_unique("metadata key", (item.key for item in proto.metadata_props))
        opsets = self._opsets(proto.opset_import, oldest=1)
        first = 1 if proto.ir_version < _IMPORTING else OLDEST
        if opsets.get("", first) < OLDEST:
            modernize(proto.graph)
            opsets[""] = OLDEST
        keys = [_function_key(function) for function in proto.functions]
        self._check_unique("function", (".".join(key) for key in keys))
        self._functions = set(keys)
        functions = [self.function(function, opsets) for function in proto.functions]
        graph = sorted_graph(self._graph(proto.graph, opsets))
        return OnnxModel(str(self._path), graph, {item.key: item for item in functions})

    def function(self, proto: FunctionProto, opsets: Mapping[str, int]) -> OnnxFunction:
        """Return a function of the model, or the body of an operator.

        Parameters
        ----------
        opsets
            Versions of the domains that the function does not import itself.
        """
        own = {**opsets, **self._opsets(proto.opset_import)}
        attrs = {item.name: self._attribute(item, own) for item in proto.attribute_proto}
        return OnnxFunction(
            _function_key(proto),
            tuple(proto.input),
            tuple(proto.output),
            {**dict.fromkeys(proto.attribute), **attrs},
            self._nodes(proto.node, own),
        )

    def _opsets(self, imports: Iterable[Any], *, oldest: int = OLDEST) -> dict[str, int]:
        """Return the versions of the imported domains; the first models imported none."""
        result: dict[str, int] = {}
        for item in imports:
            domain = standard_domain(item.domain)
            if result.setdefault(domain, item.version) != item.version:
                self._errors.append(
                    ModelError(
                        f"the domain {item.domain or 'ai.onnx'!r} is imported in the versions "
                        f"{result[domain]} and {item.version}",
                        location=self._where,
                    )
                )
        version = result.get("", oldest)
        newest = self._schemas.newest
        if not oldest <= version <= newest:
            remedy = "convert it with onnx.version_converter"
            raise UnsupportedError(
                f"the model uses opset {version}, but only {oldest} to {newest} are supported",
                remedy=remedy if version < oldest else "pip install --upgrade onnx",
                location=self._where,
            )
        return result

    def _check_unique(self, what: str, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                self._errors.append(
                    ModelError(f"the {what} {name!r} is defined twice", location=self._where)
                )
            seen.add(name)

    def _graph(self, proto: GraphProto, opsets: Mapping[str, int]) -> OnnxGraph:
        initializers: dict[str, Constant] = {}
        stored: list[tuple[str, Callable[[], Constant]]] = [
            *((x.name, partial(decode_tensor, x, self._folder)) for x in proto.initializer),
            *(
                (x.values.name, partial(decode_sparse_tensor, x, self._folder))
                for x in proto.sparse_initializer
            ),
        ]
        self._check_unique("initializer", (name for name, _ in stored))
        labels = _labels(proto)
        for name, decode in stored:
            try:
                initializers[name] = labels[name] if name in labels else decode()
            except NnefHwError as error:
                initializers[name] = _UNKNOWN
                self._errors.append(self._located(error))
        return OnnxGraph(
            proto.name,
            tuple(map(_input, proto.input)),
            tuple(item.name for item in proto.output),
            initializers,
            self._nodes(proto.node, opsets),
            tuple(map(_input, (*proto.value_info, *proto.output))),
        )

    def _nodes(
        self, protos: Iterable[NodeProto], opsets: Mapping[str, int]
    ) -> tuple[OnnxNode, ...]:
        return tuple(self._node(proto, opsets) for proto in protos)

    def _node(self, proto: NodeProto, opsets: Mapping[str, int]) -> OnnxNode:
        domain = standard_domain(proto.domain)
        name = proto.name or next(filter(None, proto.output), "?")
        attrs: dict[str, object] = {}
        problem: NnefHwError | None = None
        for item in proto.attribute:
            try:
                if item.name in attrs:
                    raise ModelError(f"the attribute {item.name!r} is defined twice")
                attrs[item.name] = self._attribute(item, opsets)
            except NnefHwError as error:
                problem = error
        node = OnnxNode(
            proto.op_type, domain, proto.overload, name, tuple(proto.input), tuple(proto.output),
            attrs, opsets.get(domain, 0),
        )  # fmt: skip
        if problem is not None:
            return self._faulty(node, problem)
        if node.function in self._functions:
            return node
        try:
            return self._schemas.bind(node, self._attribute)
        except NnefHwError as error:
            return self._faulty(node, error)

    def _faulty(self, node: OnnxNode, error: NnefHwError) -> OnnxNode:
        problem = type(error)(
            f"{node.label}: {error.reason}", remedy=error.remedy, location=self._where
        )
        return replace(node, problem=problem)

    def _attribute(self, proto: AttributeProto, opsets: Mapping[str, int] | None = None) -> object:
        if proto.ref_attr_name:
            return AttributeReference(proto.ref_attr_name)
        proto, kinds = complete_attribute(proto), proto.AttributeType
        if proto.type == kinds.FLOAT:
            return _decimal(proto.f)
        if proto.type == kinds.INT:
            return proto.i
        if proto.type == kinds.STRING:
            return _text(proto.name, proto.s)
        if proto.type == kinds.FLOATS:
            return [_decimal(value) for value in proto.floats]
        if proto.type == kinds.INTS:
            return list(proto.ints)
        if proto.type == kinds.STRINGS:
            return [_text(proto.name, value) for value in proto.strings]
        if proto.type == kinds.TENSOR:
            return decode_tensor(proto.t, self._folder)
        if proto.type == kinds.SPARSE_TENSOR:
            return decode_sparse_tensor(proto.sparse_tensor, self._folder)
        if proto.type == kinds.GRAPH:
            return self._graph(proto.g, opsets or {})
        raise UnsupportedError(f"the attribute {proto.name!r} has a type that is not supported")

    def _located(self, error: NnefHwError) -> NnefHwError:
        return type(error)(error.reason, remedy=error.remedy, location=self._where)


def _labels(proto: GraphProto) -> dict[str, Constant]:
    """Return lists of names of classes, which nothing but a class is taken from: as positions."""
    read_otherwise = {
        name
        for node in proto.node
        for index, name in enumerate(node.input)
        if index or node.op_type != "ArrayFeatureExtractor"
    }
    read_otherwise.update(item.name for item in proto.output)
    if any(item.HasField("g") for node in proto.node for item in node.attribute):
        return {}  # a subgraph may read them
    return {
        item.name: Constant(np.arange(len(item.string_data)), INT64)
        for item in proto.initializer
        if item.data_type == item.STRING and item.name not in read_otherwise
        and list(item.dims) == [len(item.string_data)]
    }  # fmt: skip


def _is_text(message: Message) -> bool:
    """Whether all strings are UTF-8: protobuf gives others as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            texts = [value] if isinstance(value, str | bytes) else value
            if any(isinstance(text, bytes) for text in texts):
                return False
        elif field.type == field.TYPE_MESSAGE:
            inner = [value] if hasattr(value, "ListFields") else value
            if not all(map(_is_text, inner)):
                return False
    return True


def _function_key(proto: FunctionProto) -> FunctionKey:
    return standard_domain(proto.domain), proto.name, proto.overload


def _input(proto: ValueInfoProto) -> OnnxInput:
    """Return a graph's input; a type other than a tensor is described in words."""
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        return OnnxInput(proto.name, kind=(kind or "value without type").removesuffix("_type"))
    tensor = proto.type.tensor_type
    element = ELEMENT_TYPES.get(tensor.elem_type)
    words = "tensor" if element else f"tensor of {type_name(tensor.elem_type)}"
    shape = _shape(proto.type) if tensor.HasField("shape") else None
    return OnnxInput(proto.name, element, shape, words)


def _shape(proto: TypeProto) -> tuple[int | str | None, ...]:
    extents: list[int | str | None] = []
    for extent in proto.tensor_type.shape.dim:
        # Some exporters write an open extent as -1.
        is_number = extent.WhichOneof("value") == "dim_value" and extent.dim_value != -1
        extents.append(extent.dim_value if is_number else extent.dim_param or None)
    return tuple(extents)


def _decimal(value: float) -> float:
    """Return a float32 as the shortest decimal number that rounds to it: what its author wrote."""
    return float(str(np.float32(value)))


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ModelError(f"the attribute {name!r} is not UTF-8 text") from None
