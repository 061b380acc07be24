"""Maxima, averages and sums over windows, and tensors that pass through the array unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.engine.layers.depthwise import DepthwiseLayer
from nnef_hw.engine.layers.formats import Most, Places, Residual, Shape
from nnef_hw.engine.layers.layer import AnyContext, EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.nest import LayerPart
from nnef_hw.engine.layers.scale import POOL_SHIFT, Scale, channel_sums
from nnef_hw.engine.layers.windows import WindowLayer
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import Trait, layers
from nnef_hw.parts.engine.sizes import LEVELS

__all__ = ["BorderedAverageLayer", "MaximumLayer", "engine_table"]

_COLUMN, _ROW = LEVELS - 2, LEVELS - 1


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


def _passing(context: AnyContext, **fields: Any) -> DepthwiseLayer:
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


class Area(NamedTuple):
    """A part of a result whose windows have as many taps in the image: rows, columns, factor."""

    rows: range
    columns: range
    factor: int


@dataclass(frozen=True, eq=False, kw_only=True)
class BorderedAverageLayer(DepthwiseLayer):
    """Averages over the taps inside of the image, by one factor for each number of them.

    A part of the layer is an area of the result, a rectangle. No window slides.

    Parameters
    ----------
    areas
        Where the factors belong to.
    """

    areas: tuple[Area, ...]

    @property
    def is_uniform(self) -> bool:
        return True

    @property
    def slides(self) -> bool:
        return False

    def bias(self, shape: Shape) -> IntArray:
        return np.full(len(self.areas) * shape.lanes, self.biases[0], np.int64)

    def per_result(self, values: Sequence[int], shape: Shape, default: int = 0) -> list[int]:
        del default
        each = values if len(values) > 1 else [values[0]] * (1 + max(x.factor for x in self.areas))
        return [each[area.factor] for area in self.areas for _ in range(shape.lanes)]

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        nest, lanes = self.nest(shape, places), shape.lanes
        [step], _ = self.passes(shape)
        blocks = self.target.blocks(lanes)
        found = []
        for n, area in enumerate(self.areas):
            counts = (*nest.counts[:_COLUMN], len(area.columns), len(area.rows))
            starts = {
                name: start + area.columns.start * nest.strides[name][_COLUMN]
                + area.rows.start * nest.strides[name][_ROW]
                for name, start in nest.starts.items()
            }  # fmt: skip
            own = {"constant": places.constant + n * lanes}
            if most is not None:
                own = {"weight": 0, "constant": 0}
            part = replace(nest, counts=counts, starts={**starts, **own})
            pixels = len(area.columns) * len(area.rows)
            constants = range(n * lanes, (n + 1) * lanes)
            found.append(LayerPart(part, [step], pixels * blocks, range(1), constants))
        return found


def _areas(window: Window) -> tuple[Area, ...]:
    """Divide a result into rectangles whose windows have as many taps inside."""
    inside = np.asarray(window.inside)
    counts = np.unique(inside).tolist()
    sides = []
    for lines in (inside.tolist(), inside.T.tolist()):
        begin, runs = 0, []
        for _, run in groupby(lines):
            count = len(list(run))
            runs.append(range(begin, begin + count))
            begin += count
        sides.append(runs)
    return tuple(
        Area(rows, columns, counts.index(inside[rows.start, columns.start]))
        for rows, columns in product(*sides)
    )


@lowers("avg_pool", "box")
def _lower_average(context: EngineContext[layers.SumPool]) -> EngineLayer:
    layer, source, target = context.layer, context.source, context.target
    requant, window, channels = layer.factors, layer.window, context.layer.image[2]
    # Rounding twice is of sums as they are.
    up = 0 if isinstance(requant, TfliteRequant) else POOL_SHIFT
    zero = layer.zero - source.offset
    is_bordered = layer.leaves_padding_out and any(map(any, window.padding))
    filters = np.full((channels, window.taps), 1 << up, np.int64)
    biases = np.full(channels, -window.taps * zero << up, np.int64)
    scale = Scale.of(requant, target.offset, channel_sums(filters, biases, source.high))
    fields = {
        **context.common, "window": window, "pad": zero if is_bordered else source.zero_point,
        "scale": scale.weighted(up) if up else scale, "filters": filters, "biases": biases,
        "is_pool": True,
    }  # fmt: skip
    if is_bordered:
        return BorderedAverageLayer(**fields, areas=_areas(window))
    return DepthwiseLayer(**fields)
