"""An ONNX model in plain Python values, without protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeMap, AttributeValue
from nnef_hw.errors import NnefHwError

__all__ = [
    "BOOL",
    "ELEMENT_TYPES",
    "FLOAT32",
    "INT64",
    "AttributeReference",
    "Constant",
    "ElementType",
    "FunctionKey",
    "OnnxFunction",
    "OnnxGraph",
    "OnnxInput",
    "OnnxModel",
    "OnnxNode",
    "as_data",
]

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type of ONNX tensors.

    Parameters
    ----------
    name
        ONNX's name, in lower case.
    dtype
        The NNEF data-type it becomes: ``scalar``, ``integer`` or ``logical``.
    bits
        Width in bits.
    """

    name: str
    dtype: str
    bits: int
    signed: bool = True

    @property
    def limits(self) -> tuple[int, int]:
        """Least and greatest integer."""
        lo = -(1 << (self.bits - 1)) if self.signed else 0
        return lo, lo + (1 << self.bits) - 1

    def wrap(self, data: Array) -> Array:
        """Return integers as they are in this width: modulo 2^bits."""
        if self.bits == 64:
            return data
        lo, _ = self.limits
        wrapped: Array = ((data - lo) & ((1 << self.bits) - 1)) + lo
        return wrapped


FLOAT32 = ElementType("float", "scalar", 32)
INT64 = ElementType("int64", "integer", 64)
BOOL = ElementType("bool", "logical", 8, signed=False)

ELEMENT_TYPES: Mapping[int, ElementType] = MappingProxyType({
    1: FLOAT32,
    2: ElementType("uint8", "integer", 8, signed=False),
    3: ElementType("int8", "integer", 8),
    4: ElementType("uint16", "integer", 16, signed=False),
    5: ElementType("int16", "integer", 16),
    6: ElementType("int32", "integer", 32),
    7: INT64,
    9: BOOL,
    10: ElementType("float16", "scalar", 16),
    11: ElementType("double", "scalar", 64),
    12: ElementType("uint32", "integer", 32, signed=False),
    13: ElementType("uint64", "integer", 64, signed=False),
    16: ElementType("bfloat16", "scalar", 16),
    21: ElementType("uint4", "integer", 4, signed=False),
    22: ElementType("int4", "integer", 4),
    25: ElementType("uint2", "integer", 2, signed=False),
    26: ElementType("int2", "integer", 2),
})
"""Element types by the code in ``TensorProto.data_type``; no strings, complex or 8-bit floats."""


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A decoded tensor: float32, float64, int64 or bool, whatever width it was stored in."""

    data: Array
    type: ElementType


@dataclass(frozen=True, slots=True)
class AttributeReference:
    """An attribute of a function's node that takes the value of the function's own attribute."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class OnnxNode:
    """A node whose attributes fit its operator.

    Parameters
    ----------
    name
        Name in errors: the node's own, or that of its first output.
    inputs, outputs
        Value names; an empty one is an optional value left out.
    attrs
        Python values, :class:`Constant`, :class:`OnnxGraph` or :class:`AttributeReference`;
        defaults of this version of the operator are in.
    opset
        Version of the domain that the model imports.
    since
        Version that introduced this form of the operator.
    problem
        Reason why the node cannot be used; reported if it is needed.
    """

    op: str
    domain: str
    overload: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: AttributeMap
    opset: int
    since: int = 0
    problem: NnefHwError | None = None

    @property
    def label(self) -> str:
        """Name in messages."""
        operator = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"{operator} {self.name!r}"

    @property
    def function(self) -> FunctionKey:
        """The function it would call."""
        return self.domain, self.op, self.overload


@dataclass(frozen=True, slots=True)
class OnnxInput:
    """A graph's input: extents are numbers, symbols or unknown (None).

    ``type`` is None where it is not a tensor of a supported type, or where a subgraph leaves it
    open; ``kind`` says in words what it is.
    """

    name: str
    type: ElementType | None = None
    shape: tuple[int | str | None, ...] | None = None
    kind: str = "tensor"


@dataclass(frozen=True, slots=True, eq=False)
class OnnxGraph:
    """A graph or a subgraph; ``initializers`` may give inputs their default.

    ``values`` are what the file says of values that nodes compute: types and shapes.
    """

    name: str
    inputs: tuple[OnnxInput, ...]
    outputs: tuple[str, ...]
    initializers: Mapping[str, Constant]
    nodes: tuple[OnnxNode, ...]
    values: tuple[OnnxInput, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class OnnxFunction:
    """A function of the model, or the body that ONNX gives an operator."""

    key: FunctionKey
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, object]
    nodes: tuple[OnnxNode, ...]

    @property
    def name(self) -> str:
        """Name in messages."""
        domain, name, _ = self.key
        return f"{domain}.{name}" if domain else name


@dataclass(frozen=True, slots=True, eq=False)
class OnnxModel:
    """A model: its graph and the functions that nodes may call."""

    path: str
    graph: OnnxGraph
    functions: Mapping[FunctionKey, OnnxFunction] = field(default_factory=dict)


def as_data(values: AttributeValue, element: ElementType) -> Array:
    """Return numbers in the width that tensors of that type are kept in.

    One number seen as many is not copied.
    """
    kinds = {"integer": np.int64, "logical": np.bool_}
    float_kind = np.float64 if element.bits == 64 else np.float32
    array = np.asarray(values)
    return array.astype(kinds.get(element.dtype, float_kind), copy=any(array.strides))
