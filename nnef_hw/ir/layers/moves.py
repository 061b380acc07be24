"""Layers whose codes only change their places, and interpolation between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from nnef_hw.arithmetic.images.rearrange import depth_to_space, repeat_pixels, take_slice
from nnef_hw.arithmetic.images.windows import pad_border
from nnef_hw.arithmetic.interpolation import Places, interpolate_codes
from nnef_hw.ir.batch import join_batch, sample_extents
from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.layers.layer import Codes, Layer, format_of, layers
from nnef_hw.ir.operators import (
    FactorAttributes,
    InterpolateAttributes,
    PadAttributes,
    SliceAttributes,
)
from nnef_hw.ir.operators.attributes import Pair

__all__ = [
    "Concat",
    "DepthToSpace",
    "Interpolate",
    "Move",
    "Pad",
    "Reshape",
    "Slice",
    "Transpose",
    "Upsample",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class Move(Layer):
    """Codes of operands at other places: some several times or left out, or one code between."""


@layers("concat")
@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Move):
    """Tensors side by side along an axis."""

    axis: int

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"axis": node.attrs["axis"]}

    def compute(self, *codes: Codes) -> Codes:
        count = max(map(len, codes))
        parts = [np.broadcast_to(x, (count, *x.shape[1:])) for x in codes]
        return np.concatenate(parts, axis=self.axis)


@layers("slice")
@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Move):
    """The part from ``begin`` to before ``end`` along an axis."""

    axis: int
    begin: int
    end: int

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        part = node.attributes(SliceAttributes)
        return {"axis": part.axis, "begin": part.begin, "end": part.end}

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return take_slice(x, self.axis, self.begin, self.end)


@layers("pad")
@dataclass(frozen=True, eq=False, kw_only=True)
class Pad(Move):
    """A border of one code around an image: ``((top, bottom), (left, right))`` pixels."""

    padding: tuple[Pair, Pair]
    code: int

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        operand = graph.tensor(node.inputs[0])
        pad = node.attributes(PadAttributes)
        return cls(
            node=node, operands=(operand,), result=graph.tensor(node.name), padding=pad.padding,
            code=int(format_of(operand).quantize(pad.value)),
        )  # fmt: skip

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return pad_border(x, self.padding, value=self.code)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Enlarged(Move):
    """An image with ``factor`` rows and columns for each of the operand."""

    factor: Pair

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"factor": node.attributes(FactorAttributes).factor}


@layers("nearest_upsample")
@dataclass(frozen=True, eq=False, kw_only=True)
class Upsample(_Enlarged):
    """Rows and columns, several times each."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return repeat_pixels(x, self.factor)


@layers("depth_to_space")
@dataclass(frozen=True, eq=False, kw_only=True)
class DepthToSpace(_Enlarged):
    """Channels (y, x, c), spread over rows and columns."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return depth_to_space(x, self.factor)


@layers("interpolate")
@dataclass(frozen=True, eq=False, kw_only=True)
class Interpolate(Layer):
    """Codes at places between rows and columns of an image."""

    rows: Places
    columns: Places

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        operand = graph.tensor(node.inputs[0])
        rows, columns = node.attributes(InterpolateAttributes).places(operand.shape)
        return cls(
            node=node, operands=(operand,), result=graph.tensor(node.name), rows=rows,
            columns=columns,
        )  # fmt: skip

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return interpolate_codes(x, self.rows, self.columns)


@layers("reshape")
@dataclass(frozen=True, eq=False, kw_only=True)
class Reshape(Move):
    """Another shape of the same codes in the same order."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return x.reshape(len(x), *sample_extents(self.result.shape))


@layers("transpose")
@dataclass(frozen=True, eq=False, kw_only=True)
class Transpose(Move):
    """Another order of the axes.

    Those in front of a sample's need not be a batch extent of 1.
    """

    axes: tuple[int, ...]

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"axes": tuple(node.attrs["axes"])}

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        axes = [axis + 1 for axis in self.axes]
        moved = x.reshape(len(x), *self.operands[0].shape).transpose(0, *axes)
        return join_batch(moved, self.result.shape)
