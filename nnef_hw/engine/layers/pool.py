"""Maxima over windows; tensors that pass as they are, to be added or looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.engine.layers.depthwise import DepthwiseLayer
from nnef_hw.engine.layers.layer import EngineContext, EngineLayer, Residual, Shape, lowers
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
def _lower_maximum(context: EngineContext[layers.MaxPool]) -> MaximumLayer:
    layer, source = context.layer, context.source
    pad = 0 if layer.leaves_padding_out else source.zero_point
    return MaximumLayer(
        **context.common, window=layer.window, pad=pad, scale=Scale.identity(source.high)
    )


def _passing(context: EngineContext[Any], **fields: Any) -> DepthwiseLayer:
    """Return a layer that lets the first operand pass as it is."""
    height, width, channels = context.layer.image
    return DepthwiseLayer(
        **context.common, window=Window(height, width, 1), pad=0,
        scale=Scale.identity(context.source.high),
        filters=np.full((channels, 1), 1 << POOL_SHIFT, np.int64),
        biases=np.zeros(channels, np.int64), is_pool=True, **fields,
    )  # fmt: skip


def engine_table(context: EngineContext[layers.Table]) -> tuple[int, ...]:
    """Return the table of a function, of codes as the engine has them."""
    entries = context.layer.entries[: context.source.high + 1]
    return tuple((entries - context.target.offset).tolist())


@lowers(Trait.TABLE)
def _lower_function(context: EngineContext[layers.Table]) -> EngineLayer:
    return _passing(context, table=engine_table(context))


@lowers("add", "sub")
def _lower_sum(context: EngineContext[layers.Sum]) -> EngineLayer:
    """Let the first operand pass as it is, and add the other one to its codes."""
    return _passing(context, residual=Residual.of(context.layer, 0, context.operands[1]))
