"""Convolutions and linear layers: every row of the array is an output channel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray, Requant, accumulator_range
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.depthwise import DepthwiseLayer
from nnef_hw.engine.layers.formats import Image, Places, Shape
from nnef_hw.engine.layers.layer import EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.nest import Nest, Pass
from nnef_hw.engine.layers.scale import Scale, channel_sums, settled
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import layers
from nnef_hw.parts.engine.program import PASS_LEVEL

__all__ = ["ConvLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvLayer(EngineLayer):
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
    pitch, begin
        Words of the operand from a pixel to the next one, and before the first one, where other
        words are between them; pitch 0 if there are none.
    """

    label = "conv"
    by_lane = False

    window: Window
    filters: NDArray[np.int64]
    biases: IntArray
    model_weights: int
    model_kernel: tuple[int, int]
    pitch: int = 0
    begin: int = 0

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

    @property
    def may_write_row(self) -> bool:
        return self.residual is None

    @property
    def is_pixelwise(self) -> bool:
        """Whether every pixel of the result is of the operand's pixel at its place."""
        window = self.window
        sizes = {*window.kernel, *window.stride}
        return sizes == {1} and self.source.pixels == self.target.pixels

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

    def codes_together(self, lanes: int, *, splits_pixels: bool) -> int:
        """Codes of a row that can be a word, where windows begin and end with such words.

        As many as a word has, where pixels may cross its borders; else those of whole pixels. Codes
        of one pixel where neither makes fewer words.

        Parameters
        ----------
        splits_pixels
            Whether pixels may cross borders of words.
        """
        window, channels = self.window, self.source.channels
        if window.dilation[1] != 1 or channels % lanes == 0:
            return channels
        common = gcd(window.kernel[1], window.stride[1], window.padding[1][0], self.source.width)
        if splits_pixels and common * channels % lanes == 0:
            return lanes
        most = min(common, lanes // channels)
        return channels * max((n for n in range(1, most + 1) if common % n == 0), default=1)

    def joined(self, lanes: int, codes: int) -> ConvLayer:
        """Return the same over an operand of which so many codes of a row are a word."""
        channels = self.source.channels
        (rows, columns), (down, across) = self.window.kernel, self.window.stride
        columns, across, left, width = (
            pixels * channels // codes
            for pixels in (columns, across, self.window.padding[1][0], self.source.width)
        )
        source = Image(self.source.height, width, lanes)
        right = (self.target.width - 1) * across + columns - width - left
        window = Window(
            source.height, width, 1, kernel=(rows, columns), stride=(down, across),
            dilation=(self.window.dilation[0], 1),
            padding=(self.window.padding[0], (left, max(0, right))),
        )  # fmt: skip
        filters = np.zeros((len(self.filters), rows * columns, lanes), np.int64)
        filters[:, :, lanes - codes :] = self.filters.reshape(len(filters), rows * columns, codes)
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
        pitch = self.pitch or blocks
        line = self.source.width * pitch
        top, left = self.window.padding[0][0], self.window.padding[1][0]
        count = -(-self._padded(shape) // shape.rows)
        words = self.window.taps * blocks
        return Nest(
            counts=(blocks, columns, rows, count, self.target.width, self.target.height),
            strides={
                "read": (1, column_step * pitch, row_step * line, 0, across * pitch, down * line),
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
                "read": places.read + self.begin - top * line - left * pitch, "y": -top, "x": -left,
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
def _lower_conv(context: EngineContext[layers.Convolution]) -> EngineLayer:
    layer, source, target = context.layer, context.source, context.target
    filters, biases, requant = layer.filters, layer.folded_bias(source.offset), layer.requant
    if isinstance(requant, Requant):
        filters, biases, requant = settled(filters, biases, requant, source.high)
    sums = channel_sums(filters, biases, source.high)
    fields: Fields = {
        **context.common, "window": layer.window, "pad": source.zero_point,
        "scale": Scale.of(requant, target.offset, sums), "biases": biases, "filters": filters,
    }  # fmt: skip
    if layer.by_channel:
        return DepthwiseLayer(**fields)
    return ConvLayer(**fields, model_weights=layer.weights.size, model_kernel=layer.kernel)
