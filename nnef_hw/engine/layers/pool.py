"""Maxima over windows; tensors that pass as they are, to be added or looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.engine.layers.depthwise import DepthwiseLayer
from nnef_hw.engine.layers.layer import Call, Layer, Residual, Shape, lowers
from nnef_hw.engine.layers.scale import POOL_SHIFT, Scale
from nnef_hw.engine.layers.windows import WindowLayer
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import Trait, layers

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
def _lower_maximum(call: Call[layers.MaxPool]) -> MaximumLayer:
    layer, source = call.layer, call.source
    pad = 0 if layer.leaves_padding_out else source.zero_point
    return MaximumLayer(
        **call.common, window=layer.window, pad=pad, scale=Scale.identity(source.high)
    )


def _passing(call: Call[Any], **fields: Any) -> DepthwiseLayer:
    """Return a layer that lets the first operand pass as it is."""
    height, width, channels = call.layer.image
    return DepthwiseLayer(
        **call.common, window=Window(height, width, 1), pad=0,
        scale=Scale.identity(call.source.high),
        filters=np.full((channels, 1), 1 << POOL_SHIFT, np.int64),
        biases=np.zeros(channels, np.int64), is_pool=True, **fields,
    )  # fmt: skip


def engine_table(call: Call[layers.Table]) -> tuple[int, ...]:
    """Return the table of a function, of codes as the engine has them."""
    entries = call.layer.entries[: call.source.high + 1]
    return tuple((entries - call.target.offset).tolist())


@lowers(Trait.TABLE)
def _lower_function(call: Call[layers.Table]) -> Layer:
    return _passing(call, table=engine_table(call))


@lowers("add", "sub")
def _lower_sum(call: Call[layers.Sum]) -> Layer:
    """Let the first operand pass as it is, and add the other one to its codes."""
    return _passing(call, residual=Residual.of(call.layer, 0, call.operands[1]))
