"""Convolutions and linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.errors import UnsupportedError
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.streaming.filters.arrays import FilterLayer, stored_bits
from nnef_hw.streaming.filters.depthwise import DepthwiseLayer
from nnef_hw.streaming.filters.systolic import SystolicFolding, systolic_foldings
from nnef_hw.streaming.filters.taps import TapFolding, View, lines_of, tap_foldings
from nnef_hw.streaming.filters.whole import MatrixFolding, matrix_foldings
from nnef_hw.streaming.layers.layer import Contents, StreamContext, lowers

__all__ = ["ConvLayer", "DotFolding"]

MOST_DOT_TAPS = 128
TFLITE_SUM_BITS = 32


@dataclass(frozen=True, kw_only=True)
class DotFolding(TapFolding):
    """All taps and input channels of as many output channels as a beat has, at once.

    For few channels and many taps.
    """

    sort = "dot"
    is_shared = True

    def view(self, layer: ConvLayer) -> View:
        window = layer.window.folded(1, layer.out_channels // self.lanes)
        return View(window, layer.in_channels, layer.in_channels)

    def contents(self, layer: ConvLayer) -> Contents:
        """Return the contents of the folding's parts."""
        weights = layer.weights.reshape(layer.out_channels, -1)
        return layer.array_contents(weights, layer.bias)


ConvFolding = SystolicFolding | DotFolding | MatrixFolding


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvLayer(FilterLayer[ConvFolding]):
    """A convolution or linear layer: a systolic array, one sum after the other, or all at once."""

    label = "conv"

    def kind(self, folding: ConvFolding) -> str:
        return folding.sort

    def foldings(self, device: Device) -> Sequence[ConvFolding]:
        taps = self.window.taps * self.in_channels
        dots: list[DotFolding] = []
        if self.window.taps > 1 and taps <= MOST_DOT_TAPS:
            size = DotFolding(lanes=self.result_lanes, taps=taps, lines=lines_of(self.window))
            dots += tap_foldings(size, self, device)
        return [*systolic_foldings(self, device), *dots, *matrix_foldings(self, device)]

    def parts(self, folding: ConvFolding, device: Device) -> tuple[Part, ...]:
        return folding.parts(self, device)

    def cycles(self, folding: ConvFolding, device: Device) -> int:
        return folding.cycles(self, device)

    def contents(self, folding: ConvFolding) -> Contents:
        return folding.contents(self)


@lowers("conv", "linear")
def _lower_conv(context: StreamContext[layers.Convolution]) -> ConvLayer | DepthwiseLayer:
    layer = context.layer
    acc_bits = signed_bits(*layer.sums)
    if isinstance(layer.requant, TfliteRequant) and acc_bits > TFLITE_SUM_BITS:
        raise UnsupportedError(
            f"{layer.node.op} {layer.node.name!r}: sums of {acc_bits} bits exceed the "
            f"{TFLITE_SUM_BITS} of TensorFlow Lite",
            remedy="use activations of at most 8 bits, or rounding = 'half_up'",
            location=layer.node.location,
        )
    fields = {
        **context.common, "window": context.window(layer.window), "weights": layer.filters,
        "bias": layer.folded_bias(), "requant": layer.requant, "acc_bits": acc_bits,
        "w_bits": stored_bits(layer.filters, layer.weight_format),
        "is_quantized": layer.is_quantized,
    }  # fmt: skip
    if layer.by_channel:
        return DepthwiseLayer(**fields)
    return ConvLayer(**fields, groups=layer.groups)
