"""A TensorFlow Lite model in plain Python values, without FlatBuffers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.errors import NnefHwError
from nnef_hw.ir import Quantization

__all__ = [
    "BOOL",
    "COMPLEX64",
    "ELEMENT_TYPES",
    "FLOAT32",
    "INT32",
    "INT64",
    "ElementType",
    "TfliteModel",
    "TfliteOperator",
    "TfliteSubgraph",
    "TfliteTensor",
]


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type of TensorFlow Lite's tensors.

    Parameters
    ----------
    name
        Its name in the schema, in lower case.
    dtype
        The NNEF data-type it becomes if it is not quantized: ``scalar``, ``integer``, ``logical``.
    bits
        Width in bits.
    storage
        NumPy's type of the stored items; empty if they are packed.
    """

    name: str
    dtype: str
    bits: int
    storage: str
    signed: bool = True

    @property
    def limits(self) -> tuple[int, int]:
        """Least and greatest integer."""
        lo = -(1 << (self.bits - 1)) if self.signed else 0
        return lo, lo + (1 << self.bits) - 1


FLOAT32 = ElementType("float32", "scalar", 32, "<f4")
INT32 = ElementType("int32", "integer", 32, "<i4")
INT64 = ElementType("int64", "integer", 64, "<i8")
BOOL = ElementType("bool", "logical", 8, "|u1", signed=False)
COMPLEX64 = ElementType("complex64", "", 64, "<c8")
RESOURCE = ElementType("resource", "", 32, "<i4")

ELEMENT_TYPES: Mapping[int, ElementType] = MappingProxyType({
    0: FLOAT32,
    1: ElementType("float16", "scalar", 16, "<f2"),
    2: INT32,
    3: ElementType("uint8", "integer", 8, "|u1", signed=False),
    4: INT64,
    6: BOOL,
    7: ElementType("int16", "integer", 16, "<i2"),
    8: COMPLEX64,
    9: ElementType("int8", "integer", 8, "|i1"),
    10: ElementType("float64", "scalar", 64, "<f8"),
    12: ElementType("uint64", "integer", 64, "<u8", signed=False),
    13: RESOURCE,
    15: ElementType("uint32", "integer", 32, "<u4", signed=False),
    16: ElementType("uint16", "integer", 16, "<u2", signed=False),
    17: ElementType("int4", "integer", 4, ""),
})
"""By the code in the schema; strings and variants are not among them."""


@dataclass(frozen=True, slots=True, eq=False)
class TfliteTensor:
    """A tensor of a subgraph.

    Parameters
    ----------
    index
        Its place among the subgraph's tensors.
    type
        None if no graph can have it; ``kind`` then says what it is.
    shape
        Extents; those the file leaves open are 1.
    open_axes
        Axes whose extents the file leaves open.
    data
        The stored items of a constant, None for others.
    scale, zero_point
        Vectors of one item, or of one for each index of ``axis``; empty if it is not quantized.
    problem
        Reason why the tensor cannot be used; reported if it is needed.
    """

    index: int
    name: str
    type: ElementType | None
    kind: str
    shape: tuple[int, ...]
    open_axes: frozenset[int] = frozenset()
    data: Array | None = None
    scale: NDArray[np.float64] | None = None
    zero_point: NDArray[np.int64] | None = None
    axis: int = 0
    is_variable: bool = False
    problem: NnefHwError | None = None

    @property
    def volume(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_quantized(self) -> bool:
        """Whether integers of the tensor stand for real numbers that a graph can hold."""
        return self.scale is not None and self.type is not None and self.type.bits <= 16

    @property
    def quantization(self) -> Quantization | None:
        """Quantization as a line of ``graph.quant``; None if it is not quantized.

        Codes of weights that do not use the least integer are symmetric.
        """
        return self.steps if self.is_quantized else None

    @property
    def steps(self) -> Quantization | None:
        """Quantization of integers of any width, if they have a scale."""
        if self.type is None or self.type.dtype != "integer":
            return None
        if self.scale is None or self.zero_point is None:
            return None
        scale: object = self.scale.item() if self.scale.size == 1 else self._spread(self.scale)
        zeros = self.zero_point
        same = (zeros == zeros[0]).all()
        zero_point: object = int(zeros[0]) if same else self._spread(zeros)
        lo, _ = self.type.limits
        narrow = self.type.signed and self.data is not None and not zeros.any()
        return Quantization(
            "zero_point_linear_quantize",
            {
                "zero_point": zero_point,
                "scale": scale,
                "bits": self.type.bits,
                "signed": self.type.signed,
                "symmetric": bool(narrow and self.data is not None and (self.data > lo).all()),
            },
        )

    def _spread(self, array: Array) -> Array:
        """Return a vector of the tensor's rank, along its axis."""
        return array.reshape([-1 if axis == self.axis else 1 for axis in range(len(self.shape))])


@dataclass(frozen=True, slots=True, eq=False)
class TfliteOperator:
    """An operator.

    Parameters
    ----------
    index
        Its place among the subgraph's operators.
    op
        Name in the schema, such as ``CONV_2D``; that of a custom operator.
    inputs, outputs
        Indices of tensors; -1 for optional inputs left out.
    options
        By their names in the schema; empty if the file gives none.
    name
        Name of its first result.
    version
        The version of the operator whose features the file may use.
    intermediates
        Indices of tensors that say formats of what is computed inside of it.
    """

    index: int
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: AttributeMap
    name: str
    version: int = 1
    intermediates: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"operator {self.index}, {self.op} {self.name!r}"


@dataclass(frozen=True, slots=True, eq=False)
class TfliteSubgraph:
    """A graph: its tensors, and operators in execution order.

    Parameters
    ----------
    names
        Names of tensors in the graph that is made of it, if they are those of a larger one; else
        they are chosen.
    """

    name: str
    tensors: tuple[TfliteTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[TfliteOperator, ...]
    names: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TfliteModel:
    """A model; its first subgraph is what it computes."""

    path: str
    subgraphs: tuple[TfliteSubgraph, ...]
