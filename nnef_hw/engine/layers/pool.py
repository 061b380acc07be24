"""Maxima over windows; tensors that pass as they are, to be added or looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import AddRequant, IntArray
from nnef_hw.engine.layers.depthwise import DepthwiseLayer
from nnef_hw.engine.layers.layer import Call, Layer, Residual, Shape, lowers
from nnef_hw.engine.layers.scale import POOL_SHIFT, Scale
from nnef_hw.engine.layers.windows import WindowLayer
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import Trait
from nnef_hw.ir.operators import PoolAttributes

__all__ = ["MaximumLayer", "engine_table"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MaximumLayer(WindowLayer):
    """The greatest code of every window and channel."""

    label = "max_pool"
    maximum = True

    @property
    def is_uniform(self) -> bool:
        return True

    @property
    def weight_strides(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        return np.zeros((0, *shape.multipliers), np.int64)

    def bias(self, shape: Shape) -> IntArray:
        return np.zeros(shape.lanes, np.int64)


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
    return MaximumLayer(**call.common, window=window, pad=pad, scale=Scale.identity(source.high))


def _passing(call: Call, **fields: Any) -> DepthwiseLayer:
    """Return a layer that lets the first operand pass as it is."""
    image = call.image(call.node.inputs[0])
    return DepthwiseLayer(
        **call.common, window=Window(image.height, image.width, 1), pad=0,
        scale=Scale.identity(call.format(call.node.inputs[0]).high),
        filters=np.full((image.channels, 1), 1 << POOL_SHIFT, np.int64),
        biases=np.zeros(image.channels, np.int64), is_pool=True, **fields,
    )  # fmt: skip


def engine_table(call: Call) -> tuple[int, ...]:
    """Return the table of a node's function, of codes as the engine has them."""
    source, target = call.format(call.node.inputs[0]), call.format(call.node.name)
    entries = np.asarray(call.node.attrs["table"], np.int64)[: source.high + 1]
    return tuple((entries - target.offset).tolist())


@lowers(Trait.TABLE)
def _lower_function(call: Call) -> Layer:
    return _passing(call, table=engine_table(call))


@lowers("add", "sub")
def _lower_sum(call: Call) -> Layer:
    """Let the first operand pass as it is, and add the other one to its codes."""
    node = call.node
    requant: AddRequant = node.attrs["requant"]
    formats = [call.format(name) for name in node.inputs]
    residual = Residual.of(
        node, requant, 0, formats, call.format(node.name), call.tensors[node.inputs[1]]
    )
    return _passing(call, residual=residual)
