"""Maxima over windows, and tensors that pass as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.engine.depthwise import DepthwiseLayer
from nnef_hw.engine.layer import POOL_SHIFT, Call, Layer, Residual, Scale, Shape, lowers
from nnef_hw.engine.windows import WindowLayer
from nnef_hw.ir.operators import PoolAttributes
from nnef_hw.numerics import AddRequant, IntArray
from nnef_hw.window import Window

__all__ = ["MaximumLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MaximumLayer(WindowLayer):
    """The greatest code of every window and channel."""

    label = "max_pool"
    maximum = True

    @property
    def weight_strides(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        return np.zeros((0, *shape), np.int64)

    def bias(self, shape: Shape) -> IntArray:
        return np.zeros(self.source.blocks(shape.lanes) * shape.lanes, np.int64)


@lowers("max_pool")
def _lower_maximum(call: Call) -> MaximumLayer:
    node, image = call.node, call.image(call.node.inputs[0])
    pool = node.attributes(PoolAttributes)
    window = Window(
        image.height, image.width, 1, kernel=pool.size, stride=pool.stride,
        dilation=pool.dilation, padding=pool.padding,
    )  # fmt: skip
    source = call.format(node.inputs[0])
    pad = 0 if pool.border == "ignore" else source.zero_point
    return MaximumLayer(**call.common, window=window, pad=pad, scale=Scale.identity(source))


@lowers("add", "sub")
def _lower_sum(call: Call) -> Layer:
    """Let the first operand pass as it is, and add the other one to its codes."""
    node, image = call.node, call.image(call.node.inputs[0])
    requant: AddRequant = node.attrs["requant"]
    formats = [call.format(name) for name in node.inputs]
    residual = Residual.of(
        node, requant, 0, formats, call.format(node.name), call.tensors[node.inputs[1]]
    )
    return DepthwiseLayer(
        **call.common, window=Window(image.height, image.width, 1), pad=0,
        scale=Scale.identity(formats[0]), residual=residual,
        filters=np.full((image.channels, 1), 1 << POOL_SHIFT, np.int64),
        biases=np.zeros(image.channels, np.int64), is_pool=True,
    )  # fmt: skip
