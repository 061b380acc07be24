"""Facts of the installed ``onnx`` package about operators: versions, arity, attributes, bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.onnx.file.declarations import (
    EARLIER_IN_RUNTIME,
    PULP,
    foreign_schema,
    home_domain,
    way_out,
)
from nnef_hw.frontend.onnx.file.model import AttributeReference, Constant, OnnxGraph, OnnxNode
from nnef_hw.frontend.onnx.lowering.registry import lowering_of

if TYPE_CHECKING:
    from onnx.defs import OpSchema

__all__ = ["Schemas", "standard_domain"]

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "FLOAT": float,
    "INT": int,
    "STRING": str,
    "TENSOR": Constant,
    "SPARSE_TENSOR": Constant,
    "GRAPH": OnnxGraph,
}
_ITEM_TYPES = {"FLOATS": float, "INTS": int, "STRINGS": str}

_WIDTHS = {"add_bits", "bias_bits", "in_bits", "mult_bits", "out_bits", "weight_bits"}
"""Attributes that DORY's exporter adds to standard operators; they change no result."""


def standard_domain(domain: str) -> str:
    """Return the domain under its only name: ``ai.onnx`` is the empty one."""
    return "" if domain == "ai.onnx" else domain


class Schemas:
    """The operators' declarations in every version."""

    def __init__(self, location: Location) -> None:
        from onnx import defs

        self._location = location
        self._defs = defs
        self.newest = defs.onnx_opset_version()
        """The newest opset that is known."""

    def bind(self, node: OnnxNode, decode: Callable[[AttributeValue], AttributeValue]) -> OnnxNode:
        """Return a node with its operator's version and with defaults of attributes.

        Parameters
        ----------
        decode
            Turns the message of a default into a value.

        Raises
        ------
        ModelError
            If the node does not fit the declaration.
        UnsupportedError
            If the operator does not exist in the imported version of its domain.
        """
        schema = self._schema(node)
        self._check_arity(node, schema)
        attrs = {key: value for key, value in node.attrs.items() if key not in _WIDTHS}
        for name in attrs:
            if name not in schema.attributes:
                names = ", ".join(sorted(schema.attributes)) or "none"
                raise ModelError(
                    f"there is no attribute {name!r} in opset {node.opset}",
                    remedy=f"the attributes are {names}",
                )
        for name, declaration in schema.attributes.items():
            if name not in attrs:
                if declaration.required:
                    raise ModelError(f"the attribute {name!r} is missing")
                if declaration.default_value.name:
                    attrs[name] = decode(declaration.default_value)
            elif _is_one_of_pulp(attrs[name], declaration.type.name, schema.domain):
                attrs[name] = [attrs[name]]
            elif not _fits(attrs[name], declaration.type.name):
                raise ModelError(f"the attribute {name!r} is not of type {declaration.type.name}")
        return replace(node, attrs=attrs, since=schema.since_version)

    def _schema(self, node: OnnxNode) -> OpSchema:
        domain = node.domain or "ai.onnx"
        own = foreign_schema(node.op, home_domain(node.op, node.domain))
        if own is not None:
            return own
        if not node.opset:
            raise UnsupportedError(
                f"the domain {domain!r} is not imported",
                remedy=way_out(node.op, node.domain) or "export the model again",
            )
        opset = node.opset
        if not node.domain:
            opset = max(opset, EARLIER_IN_RUNTIME.get(node.op, opset))
        try:
            schema = self._defs.get_schema(node.op, opset, node.domain)
        except self._defs.SchemaError:
            raise UnsupportedError(
                f"there is no such operator in opset {node.opset} of the domain {domain!r}",
                remedy=way_out(node.op, node.domain),
            ) from None
        if schema.deprecated and lowering_of(node.op, schema.since_version, node.domain) is None:
            raise UnsupportedError(f"the operator was removed in opset {schema.since_version}")
        return schema

    @staticmethod
    def _check_arity(node: OnnxNode, schema: OpSchema) -> None:
        sides = (
            ("input", len(node.inputs), schema.min_input, schema.max_input),
            ("output", len(node.outputs), schema.min_output, schema.max_output),
        )
        for what, count, least, most in sides:
            if not least <= count <= most:
                limit = f"{least}" if least == most else f"{least} to {most}"
                raise ModelError(f"it has {count} {what}s, but takes {limit}")


def _is_one_of_pulp(value: object, kind: str, domain: str) -> bool:
    """Whether a value is one integer where a list is declared, as PULP's exporters write it."""
    return domain == PULP and kind == "INTS" and isinstance(value, int)


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, AttributeReference):
        return True
    if kind in _ITEM_TYPES:
        return isinstance(value, list) and all(isinstance(x, _ITEM_TYPES[kind]) for x in value)
    return isinstance(value, _PYTHON_TYPES.get(kind, ()))
