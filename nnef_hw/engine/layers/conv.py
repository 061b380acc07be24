"""Convolutions and linear layers: every row of the array is an output channel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray, Requant, accumulator_range, fold_zero_point
from nnef_hw.engine.layers.depthwise import DepthwiseLayer
from nnef_hw.engine.layers.layer import Call, Image, Layer, Places, Shape, lowers
from nnef_hw.engine.layers.nest import Nest, Pass
from nnef_hw.engine.layers.scale import Scale, channel_sums, settled
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir.operators import ConvAttributes, WeightsAttributes
from nnef_hw.parts.engine.program import PASS_LEVEL

__all__ = ["ConvLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvLayer(Layer):
    """A convolution: passes over output channels, each over all taps and blocks of channels.

    Parameters
    ----------
    window
        The window; its channel blocks are not looked at.
    filters
        Weights [output channels, taps, channels], less their zero point; those of other groups
        are 0.
    biases
        One per output channel, for codes as the engine has them.
    model_weights, model_kernel
        Weights of the model: filters without those of other groups; rows and columns of its window.
    """

    label = "conv"
    by_lane = False

    window: Window
    filters: NDArray[np.int64]
    biases: IntArray
    model_weights: int
    model_kernel: tuple[int, int]

    @property
    def kernel(self) -> tuple[int, int]:
        return self.model_kernel

    @property
    def weight_bytes(self) -> int:
        return self.model_weights

    @property
    def macs(self) -> int:
        return self.target.pixels * self.weight_bytes

    @property
    def parameters(self) -> int:
        return self.weight_bytes + len(self.biases)

    @cached_property
    def largest_sum(self) -> tuple[int, int]:
        return accumulator_range(self.filters, self.biases, 0, self.pad_high)

    def packed(self, lanes: int) -> ConvLayer | None:
        """Return the same over an operand whose words are whole rows of windows, if one holds them.

        None if that has no fewer words.
        """
        (rows, columns), channels = self.window.kernel, self.source.channels
        codes = columns * channels
        if codes > lanes or columns == 1 or self.window.dilation[1] != 1:
            return None
        source = Image(self.source.height, self.target.width, lanes)
        window = Window(
            source.height, source.width, 1, kernel=(rows, 1), stride=(self.window.stride[0], 1),
            dilation=(self.window.dilation[0], 1), padding=(self.window.padding[0], (0, 0)),
        )  # fmt: skip
        # The codes of a window are the last ones that came: those in the upper lanes.
        filters = np.zeros((len(self.filters), rows, lanes), np.int64)
        filters[:, :, lanes - codes :] = self.filters.reshape(len(self.filters), rows, codes)
        return replace(self, source=source, window=window, filters=filters)

    def filled(self, lanes: int) -> ConvLayer:
        """Return the same over an operand whose first word of a pixel is filled up, not its last.

        What fills it are the codes before: they meet weights of 0.
        """
        fill = -self.source.channels % lanes
        source = replace(self.source, channels=self.source.channels + fill)
        filters = np.pad(self.filters, ((0, 0), (0, 0), (fill, 0)))
        return replace(self, source=source, filters=filters)

    def _padded(self, shape: Shape) -> int:
        """Output channels in whole words."""
        return self.target.blocks(shape.lanes) * shape.lanes

    def nest(self, shape: Shape, places: Places) -> Nest:
        blocks, target_blocks = self.source.blocks(shape.lanes), self.target.blocks(shape.lanes)
        rows, columns = self.window.kernel
        down, across = self.window.stride
        row_step, column_step = self.window.dilation
        line = self.source.width * blocks
        top, left = self.window.padding[0][0], self.window.padding[1][0]
        count = -(-self._padded(shape) // shape.rows)
        words = self.window.taps * blocks
        return Nest(
            counts=(blocks, columns, rows, count, self.target.width, self.target.height),
            strides={
                "read": (1, column_step * blocks, row_step * line, 0, across * blocks, down * line),
                "y": (0, 0, row_step, 0, 0, down),
                "x": (0, column_step, 0, 0, across, 0),
                "weight": (1, blocks, columns * blocks, words, 0, 0),
                "constant": (0, 0, 0, shape.rows, 0, 0),
                "write": (
                    0, 0, 0, shape.rows // shape.lanes, target_blocks,
                    self.target.width * target_blocks,
                ),
            },
            starts={
                "read": places.read - top * line - left * blocks, "y": -top, "x": -left,
                "weight": places.weight, "constant": places.constant, "write": places.write,
            },
        )  # fmt: skip

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        words = self.window.taps * self.source.blocks(shape.lanes)
        full, rest = divmod(self._padded(shape), shape.rows)
        passes = [Pass(words, shape.rows)] * full
        return passes + [Pass(words, rest)] * (rest > 0), self.target.pixels

    def part_level(self, shape: Shape) -> int:
        del shape
        return PASS_LEVEL

    def part_passes(self, shape: Shape, first: int, count: int) -> tuple[list[Pass], int]:
        passes, repeats = self.passes(shape)
        return passes[first : first + count], repeats

    def weight_words(self, shape: Shape) -> int:
        return len(self.passes(shape)[0]) * self.window.taps * self.source.blocks(shape.lanes)

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        passes, blocks = len(self.passes(shape)[0]), self.source.blocks(shape.lanes)
        outputs, taps, channels = self.filters.shape
        whole = np.zeros((passes * shape.rows, taps, blocks * shape.lanes), np.int64)
        whole[:outputs, :, :channels] = self.filters
        split = whole.reshape(passes, shape.rows, taps * blocks, shape.lanes)
        return split.transpose(0, 2, 1, 3).reshape(-1, shape.rows, shape.lanes)

    def bias(self, shape: Shape) -> IntArray:
        bias = np.zeros(self._padded(shape), np.int64)
        bias[: len(self.biases)] = self.biases
        return bias


@lowers("conv", "linear")
def _lower_conv(call: Call) -> Layer:
    node = call.node
    source, target = call.format(node.inputs[0]), call.format(node.name)
    channels = call.image(node.inputs[0]).channels
    groups = node.attributes(WeightsAttributes).groups
    codes = call.graph.constant(node.inputs[1]).astype(np.int64)
    codes = codes.reshape(*codes.shape[:2], -1).transpose(0, 2, 1)
    codes = codes - call.qtype(node.inputs[1]).zero_point
    by_channel = groups == channels == len(codes) > 1
    filters = codes if by_channel else _ungrouped(codes, channels, groups)
    biases = fold_zero_point(call.graph.constant(node.inputs[2]), filters, source.zero_point)
    requant = node.attrs["requant"]
    if isinstance(requant, Requant):
        filters, biases, requant = settled(filters, biases, requant, source.high)
    sums = channel_sums(filters, biases, source.high)
    fields: dict[str, Any] = {
        **call.common, "window": _window(call), "pad": source.zero_point,
        "scale": Scale.of(requant, target.offset, sums), "biases": biases,
    }  # fmt: skip
    if by_channel:
        return DepthwiseLayer(**fields, filters=filters[:, :, 0])
    kernel = fields["window"].kernel
    return ConvLayer(
        **fields, filters=filters, model_weights=int(codes.size), model_kernel=kernel
    )  # fmt: skip


def _ungrouped(codes: NDArray[np.int64], channels: int, groups: int) -> NDArray[np.int64]:
    """Weights [output channels, taps, channels], with 0 for the channels of other groups."""
    if groups == 1:
        return codes
    outputs, taps, inputs = codes.shape
    filters = np.zeros((outputs, taps, channels), np.int64)
    for n, rows in enumerate(np.split(codes, groups)):
        of_group = slice(n * len(rows), (n + 1) * len(rows))
        filters[of_group, :, n * inputs : (n + 1) * inputs] = rows
    return filters


def _window(call: Call) -> Window:
    node, image = call.node, call.image(call.node.inputs[0])
    if node.op == "linear":
        return Window(image.height, image.width, 1)
    conv = node.attributes(ConvAttributes)
    rows, columns = (*call.graph.tensor(node.inputs[1]).shape[2:], 1, 1)[:2]
    return Window(
        image.height, image.width, 1, kernel=(rows, columns), stride=conv.stride,
        dilation=conv.dilation, padding=conv.padding,
    )  # fmt: skip
