"""Operators that ONNX itself defines by others: their bodies, as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.frontend.onnx.file.checks import check_function
from nnef_hw.frontend.onnx.file.model import (
    ELEMENT_TYPES,
    AttributeReference,
    OnnxFunction,
    OnnxGraph,
    OnnxNode,
)
from nnef_hw.frontend.onnx.lowering.calls import Value
from nnef_hw.frontend.onnx.lowering.protobuf import Decoder
from nnef_hw.frontend.onnx.lowering.registry import lowering_of

__all__ = ["FunctionBodies", "resolved", "without_inputs"]

_CODES = {element: code for code, element in ELEMENT_TYPES.items()}


class FunctionBodies:
    """The bodies of operators that no function of ours lowers.

    Parameters
    ----------
    decoder
        Reads the messages that the ``onnx`` package gives.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    @staticmethod
    def exists(node: OnnxNode) -> bool:
        """Whether ONNX defines a node's operator by others."""
        from onnx import defs

        if node.domain or lowering_of(node.op, node.since) is not None:
            return False
        schema = defs.get_schema(node.op, node.opset, node.domain)
        return bool(schema.has_function or schema.has_context_dependent_function)

    def body(self, node: OnnxNode, inputs: Sequence[Value | None]) -> OnnxFunction | None:
        """Return the body for the types and shapes of a node's arguments; None if it has none."""
        from onnx import FunctionProto, defs
        from onnx import __version__ as onnx_version

        schema = defs.get_schema(node.op, node.opset, node.domain)
        if schema.has_function:
            version = _version(schema.function_opset_versions, node.opset)
            proto = schema.get_function_with_opset_version(version)
        else:
            version = _version(schema.context_dependent_function_opset_versions, node.opset)
            proto = schema.get_context_dependent_function_with_opset_version(
                version, _node_proto(node), [_type_proto(value) for value in inputs]
            )
        if not proto:
            return None
        function = self._decoder.function(FunctionProto.FromString(proto), {"": version})
        problems: list[NnefHwError] = []
        # bodies leave out what computes optional results that nobody wants
        check_function(replace(function, outputs=()), node.op, problems)
        if problems:
            raise UnsupportedError(
                f"{node.label} of opset {node.opset}: what onnx {onnx_version} replaces it by does "
                "not fit these arguments"
            )
        return function


def _version(versions: Sequence[int], opset: int) -> int:
    """Return the newest version that is not newer than the model's."""
    fitting = [version for version in versions if version <= opset]
    return max(fitting) if fitting else min(versions)


def _node_proto(node: OnnxNode) -> bytes:
    from onnx import helper

    attrs: Fields = {
        key: value
        for key, value in node.attrs.items()
        if isinstance(value, int | float | str | list) and value != []
    }
    proto = helper.make_node(node.op, node.inputs, node.outputs, domain=node.domain, **attrs)
    return bytes(proto.SerializeToString())


def _type_proto(value: Value | None) -> bytes:
    from onnx import TypeProto, helper

    if value is None:
        return bytes(TypeProto().SerializeToString())
    proto = helper.make_tensor_type_proto(_CODES[value.type], value.shape)
    return bytes(proto.SerializeToString())


def resolved(node: OnnxNode, attrs: Mapping[str, object]) -> OnnxNode:
    """Return a function's node with the attributes that it takes from the call."""
    own: dict[str, object] = {}
    for name, value in node.attrs.items():
        if isinstance(value, AttributeReference):
            override = attrs.get(value.name)
            if override is not None:
                own[name] = override
        elif isinstance(value, OnnxGraph):
            own[name] = replace(value, nodes=tuple(resolved(item, attrs) for item in value.nodes))
        else:
            own[name] = value
    return replace(node, attrs=own)


def without_inputs(node: OnnxNode, absent: set[str]) -> OnnxNode:
    """Return a function's node without the optional inputs that the call leaves out."""
    if absent.isdisjoint(node.inputs):
        return node
    return replace(node, inputs=tuple("" if name in absent else name for name in node.inputs))
