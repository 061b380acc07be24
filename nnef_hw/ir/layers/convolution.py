"""Convolutions and linear layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.images.windows import convolve, pad_border
from nnef_hw.arithmetic.numerics import QType, Requant, accumulator_range, fold_zero_point
from nnef_hw.arithmetic.records import Fields
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.layers.layer import Codes, Layer, format_of, layers
from nnef_hw.ir.operators import ConvAttributes
from nnef_hw.ir.operators.attributes import Pair

__all__ = ["Convolution"]

_EXACT_IN_SINGLE = 1 << 24
"""Integers up to here are float32 numbers."""


@layers("conv", "linear")
@dataclass(frozen=True, eq=False, kw_only=True)
class Convolution(Layer):
    """Products with a filter, summed, plus a bias, requantized; a linear layer has one tap.

    Parameters
    ----------
    weights
        [output channels, taps, channels of a group], less their zero point.
    weight_format
        Format of the stored weights.
    is_quantized
        Whether the model's author chose the codes of the weights.
    bias
        One per output channel, for codes less their zero point.
    requant
        How sums become codes.
    kernel, stride, dilation, padding
        Of the window, rows first; padding has the code of 0.0.
    groups
        Parts that the channels are divided into, each with filters of its own.
    """

    weights: Codes
    weight_format: QType
    is_quantized: bool
    bias: Codes
    requant: Requant | TfliteRequant
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    groups: int = 1

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        operand, weights, bias = (graph.tensor(name) for name in node.inputs)
        codes = graph.constant(weights.name).astype(np.int64)
        by_tap = codes.reshape(*codes.shape[:2], -1).transpose(0, 2, 1)
        geometry: Fields = {}
        if len(codes.shape) > 2:
            conv = node.attributes(ConvAttributes)
            rows, columns = codes.shape[2:]
            geometry = {
                "kernel": (rows, columns), "stride": conv.stride, "dilation": conv.dilation,
                "padding": conv.padding, "groups": conv.groups,
            }  # fmt: skip
        qtype = format_of(weights)
        return cls(
            node=node, operands=(operand,), result=graph.tensor(node.name),
            weights=by_tap - qtype.zero_point, weight_format=qtype,
            is_quantized=weights.quant is not None,
            bias=graph.constant(bias.name).astype(np.int64).reshape(-1),
            requant=node.attrs["requant"], **geometry,
        )  # fmt: skip

    @property
    def by_channel(self) -> bool:
        """Whether every channel has one filter, for itself: a depthwise convolution."""
        outputs, of_group = len(self.weights), self.weights.shape[2]
        return outputs == self.groups > 1 and of_group == 1

    @cached_property
    def filters(self) -> Codes:
        """Weights of all channels, 0 for those of other groups: [output channels, taps, channels].

        [channels, taps] if every channel has one filter.
        """
        if self.by_channel:
            return self.weights[:, :, 0]
        if self.groups == 1:
            return self.weights
        outputs, taps, inputs = self.weights.shape
        filters = np.zeros((outputs, taps, self.groups * inputs), np.int64)
        for n, rows in enumerate(np.split(self.weights, self.groups)):
            of_group = slice(n * len(rows), (n + 1) * len(rows))
            filters[of_group, :, n * inputs : (n + 1) * inputs] = rows
        return filters

    def folded_bias(self, offset: int = 0) -> Codes:
        """Return the bias for sums of codes as they are, zero point included, less an offset."""
        return fold_zero_point(self.bias, self.weights, self.source.zero_point - offset)

    @cached_property
    def sums(self) -> tuple[int, int]:
        """Least and greatest sum of products with codes as they are, bias included."""
        source = self.source
        return accumulator_range(self.weights, self.folded_bias(), source.lo, source.hi)

    @property
    def pad_code(self) -> int:
        """Code of the padding."""
        return self.source.zero_point

    @cached_property
    def window(self) -> Window:
        """The window: a block for every channel, read by channel if the filters are applied so."""
        height, width, channels = self.image
        return Window(
            height, width, channels, self.kernel, self.stride, self.dilation, self.padding,
            passes=channels if self.by_channel else 1, by_channel=self.by_channel,
        )  # fmt: skip

    @cached_property
    def _kernel(self) -> Array:
        """Weights in the fastest float type that holds all sums of products with codes exactly."""
        source = self.source
        magnitude = int(np.abs(self.weights).sum(axis=(1, 2)).max())
        is_small = magnitude * max(-source.lo, source.hi) <= _EXACT_IN_SINGLE
        outputs, _, channels = self.weights.shape
        kernel = self.weights.transpose(0, 2, 1).reshape(outputs, channels, *self.kernel)
        return kernel.astype(np.float32 if is_small else np.float64)

    @cached_property
    def _folded(self) -> Codes:
        return self.folded_bias().reshape(1, -1, 1, 1)

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        image = x if x.ndim > 2 else x[:, :, np.newaxis, np.newaxis]
        padded = pad_border(image, self.padding, value=self.pad_code)
        kernel = self._kernel
        sums = convolve(
            padded.astype(kernel.dtype), kernel, self.stride, self.dilation, self.groups
        ).astype(np.int64)
        sums += self._folded
        return self.requant.apply(sums.reshape(sums.shape[: x.ndim]))
