"""Convolutions and linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import accumulator_range, fold_zero_point, signed_bits
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.errors import UnsupportedError
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir.operators import ConvAttributes, WeightsAttributes
from nnef_hw.parts import Part
from nnef_hw.streaming.filters.arrays import Convolution, stored_bits
from nnef_hw.streaming.filters.depthwise import DepthwiseLayer
from nnef_hw.streaming.filters.systolic import SystolicFolding, systolic_foldings
from nnef_hw.streaming.filters.taps import TapFolding, View, lines_of, tap_foldings
from nnef_hw.streaming.filters.whole import MatrixFolding, matrix_foldings
from nnef_hw.streaming.layers.layer import Call, Contents, lowers

__all__ = ["ConvLayer", "DotFolding"]

MOST_DOT_TAPS = 128
TFLITE_SUM_BITS = 32


@dataclass(frozen=True, kw_only=True)
class DotFolding(TapFolding):
    """All taps and input channels of one output channel at once: few channels, many taps."""

    sort = "dot"

    def view(self, layer: ConvLayer) -> View:
        window = layer.window.folded(1, layer.out_channels)
        return View(window, layer.in_channels, layer.in_channels)

    def contents(self, layer: ConvLayer) -> Contents:
        """Return what its parts hold."""
        weights = layer.weights.reshape(layer.out_channels, -1)
        return layer.array_contents(weights, layer.bias)


ConvFolding = SystolicFolding | DotFolding | MatrixFolding


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvLayer(Convolution[ConvFolding]):
    """A convolution or linear layer: a systolic array, one sum after the other, or all at once."""

    label = "conv"

    def kind(self, folding: ConvFolding) -> str:
        return folding.sort

    def foldings(self, device: Device) -> Sequence[ConvFolding]:
        taps = self.window.taps * self.in_channels
        dots: list[DotFolding] = []
        if self.window.taps > 1 and taps <= MOST_DOT_TAPS and self.result_lanes == 1:
            size = DotFolding(lanes=1, taps=taps, lines=lines_of(self.window))
            dots += tap_foldings(size, self, device)
        return [*systolic_foldings(self, device), *dots, *matrix_foldings(self, device)]

    def parts(self, folding: ConvFolding, device: Device) -> tuple[Part, ...]:
        return folding.parts(self, device)

    def cycles(self, folding: ConvFolding, device: Device) -> int:
        return folding.cycles(self, device)

    def contents(self, folding: ConvFolding) -> Contents:
        return folding.contents(self)


@lowers("conv", "linear")
def _lower_conv(call: Call) -> ConvLayer | DepthwiseLayer:
    node, source = call.node, call.source
    channels = call.image(node.inputs[0])[2]
    groups = node.attributes(WeightsAttributes).groups
    qtype = call.format(node.inputs[1])
    codes = call.graph.constant(node.inputs[1]).astype(np.int64)
    codes = codes.reshape(*codes.shape[:2], -1).transpose(0, 2, 1) - qtype.zero_point
    depthwise = groups == channels == len(codes) > 1
    weights = codes if depthwise else _ungrouped(codes, channels, groups)
    bias = fold_zero_point(call.graph.constant(node.inputs[2]), weights, source.zero_point)
    acc_bits = signed_bits(*accumulator_range(weights, bias, source.lo, source.hi))
    if isinstance(call.attrs["requant"], TfliteRequant) and acc_bits > TFLITE_SUM_BITS:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: sums of {acc_bits} bits exceed the {TFLITE_SUM_BITS} of "
            "TensorFlow Lite",
            remedy="use activations of at most 8 bits, or rounding = 'half_up'",
            location=node.location,
        )
    fields = {
        **call.common, "window": _conv_window(call, by_channel=depthwise), "bias": bias,
        "requant": call.attrs["requant"], "w_bits": stored_bits(weights, qtype),
        "acc_bits": acc_bits,
        "is_quantized": call.graph.tensor(node.inputs[1]).quant is not None,
    }  # fmt: skip
    if depthwise:
        return DepthwiseLayer(**fields, weights=weights[:, :, 0])
    return ConvLayer(**fields, weights=weights, groups=groups)


def _ungrouped(codes: NDArray[np.int64], channels: int, groups: int) -> NDArray[np.int64]:
    """Weights [out channels, taps, channels], with 0 for the channels of other groups."""
    if groups == 1:
        return codes
    outputs, taps, inputs = codes.shape
    weights = np.zeros((outputs, taps, channels), np.int64)
    for n, rows in enumerate(np.split(codes, groups)):
        of_group = slice(n * len(rows), (n + 1) * len(rows))
        weights[of_group, :, n * inputs : (n + 1) * inputs] = rows
    return weights


def _conv_window(call: Call, *, by_channel: bool) -> Window:
    if call.node.op == "linear":
        return call.window()
    channels = call.image(call.node.inputs[0])[2]
    conv = call.node.attributes(ConvAttributes)
    rows, columns = call.graph.tensor(call.node.inputs[1]).shape[2:]
    return call.window(
        kernel=(rows, columns), stride=conv.stride, dilation=conv.dilation, padding=conv.padding,
        passes=channels if by_channel else 1, by_channel=by_channel,
    )  # fmt: skip
