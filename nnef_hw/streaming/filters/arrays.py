"""Layers with weights share their data, arrays, and the parts behind these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType, Requant, signed_bits
from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.devices import Device
from nnef_hw.parts import Part, WindowPart
from nnef_hw.parts.arrays.array import DSP_BITS, ArrayPart
from nnef_hw.parts.arrays.weights import WeightRom
from nnef_hw.parts.streams.stream import Skid, SumQueue
from nnef_hw.parts.streams.width import Pack
from nnef_hw.streaming.layers.kept import depends_on
from nnef_hw.streaming.layers.layer import Contents, Folding, WindowLayer
from nnef_hw.streaming.layers.requantize import (
    RequantizerFolding,
    interval_of,
    make_requantizer,
    requant_contents,
)

__all__ = [
    "AnyArray",
    "AnyFilter",
    "AnySumming",
    "ArrayFolding",
    "ArrayLayer",
    "FilterLayer",
    "SummingLayer",
    "multiplier_choices",
    "stored_bits",
]


@dataclass(frozen=True, kw_only=True)
class ArrayFolding(RequantizerFolding):
    """An array: passes whose sums it keeps; where its multipliers and its weights are.

    Parameters
    ----------
    in_dsp
        How many multipliers are in DSP blocks.
    """

    kept_passes: int
    in_dsp: int
    weight_style: str

    @depends_on("digit_bits", "digit_stages")
    def behind(self, layer: AnySumming, device: Device) -> tuple[Part, ...]:
        """Return the parts that sums pass."""
        requantizer = make_requantizer(
            layer.requant, self, channels=layer.out_channels, acc_bits=layer.acc_bits,
            target=layer.target, lanes=layer.result_lanes,
        )  # fmt: skip
        sums = SumQueue(bits=layer.result_lanes * layer.acc_bits + 1)
        queue = (sums,) if device.long_wires else ()
        return (*queue, requantizer)

    def in_front(self, buffer: WindowPart, device: Device) -> tuple[Part, ...]:
        """Return the parts that beats pass before a line buffer.

        Whether this takes one is told by registers, but what gives it, and all in front of that,
        may be far away.
        """
        beat = Skid(bits=buffer.lanes * buffer.bits + 1)
        return (beat,) if device.long_wires else ()

    @depends_on("digit_bits", "digit_stages")
    def interval(self, layer: AnySumming, device: Device) -> int:
        """Cycles per code of the requantizer."""
        del device
        return interval_of(layer.requant, self)

    def reading(self, layer: AnySumming, array: ArrayPart, windows: int, device: Device) -> int:
        """Cycles in which an array reads so many windows, if they are there and its codes leave."""
        interval = self.interval(layer, device)
        cycles = array.window_cycles(interval, queued=device.long_wires)
        # rounded up: a product of fractions takes ten times as long
        return -(-windows * cycles.numerator // cycles.denominator)


F = TypeVar("F", bound=Folding)


@dataclass(frozen=True, eq=False, kw_only=True)
class SummingLayer(WindowLayer[F]):
    """A layer whose array sums products over windows, and requantizes the sums.

    Parameters
    ----------
    window
        The window with one channel block per channel and, unless it is read by channel, one pass:
        folding changes both.
    requant, w_bits, acc_bits
        What is done to sums; widths of weights and sums.
    """

    requant: Requant | TfliteRequant
    w_bits: int
    acc_bits: int

    @property
    def weight_bits(self) -> int:
        return self.w_bits

    @property
    def fits_dsp(self) -> bool:
        """Whether codes and weights are narrow enough for products in DSP blocks."""
        return max(self.source.bits, self.w_bits) <= DSP_BITS

    @property
    @abstractmethod
    def out_channels(self) -> int:
        """Output channels."""

    @property
    def beats(self) -> int:
        """Beats of the image that comes."""
        return self.window.beats // self.operand_lanes

    @property
    def takes_lanes(self) -> bool:
        is_wide = max(self.operand_lanes, self.result_lanes) > 1
        return (
            self.window.channel_blocks % self.operand_lanes == 0
            and self.out_channels % self.result_lanes == 0
            and not (is_wide and self.window.goes_on)
        )

    def packing(self, channels: int, lanes: int) -> tuple[Pack, ...]:
        """Return the part that makes wider beats of so many channels, if they are wider."""
        if lanes == self.operand_lanes:
            return ()
        codes: Fields = {"bits": self.source.bits, "signed": self.source.signed}
        return (Pack(channels=channels, lanes=lanes, in_lanes=self.operand_lanes, **codes),)

    def buffer_formats(self, device: Device) -> AttributeMap:
        """Return the fields of a line buffer that follow from the format of codes."""
        return {
            "bits": self.source.bits, "signed": self.source.signed,
            "pad_code": self.source.zero_point, "ram": device.ram,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayLayer(SummingLayer[F]):
    """A layer with weights.

    Parameters
    ----------
    weights
        [out channels, taps, in channels] or, by channel, [channels, taps], in window order.
    bias
        Bias with the input's zero point folded in.
    is_quantized
        Whether the model's author chose the codes of the weights, which then have no other width.
    """

    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    is_quantized: bool = False

    @property
    def macs(self) -> int:
        return self.window.out_pixels * self.weights_of_model

    @property
    def weights_of_model(self) -> int:
        return int(self.weights.size)

    def narrowed(self, bits: int) -> ArrayLayer[F]:
        return self if self.is_quantized else replace(self, w_bits=min(self.w_bits, bits))

    @property
    def biases(self) -> int:
        return int(self.bias.size)

    @property
    def out_channels(self) -> int:
        return int(self.weights.shape[0])

    @property
    def weights_of_channel(self) -> int:
        """Products of a sum."""
        return int(self.weights[0].size)

    def array_contents(self, weights: NDArray[np.int64], bias: NDArray[np.int64]) -> Contents:
        """Return the contents of the parts of an array."""
        requantize = requant_contents(self.requant, bias.tolist(), self.result_lanes)
        return {"array": {"weights": weights}, "requantize": requantize}

    def array_formats(self, folding: ArrayFolding, device: Device) -> AttributeMap:
        """Return the fields of an array that follow from formats, device and folding."""
        return {
            "kept_passes": folding.kept_passes, "x_bits": self.source.bits,
            "x_signed": self.source.signed, "acc_bits": self.acc_bits, "in_dsp": folding.in_dsp,
            "weights": WeightRom(ram=device.ram, style=folding.weight_style),
            "weight_delay": device.weight_delay, "out_lanes": self.result_lanes,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class FilterLayer(ArrayLayer[F]):
    """A convolution or linear layer; channels of other groups have weights of 0."""

    groups: int = 1

    @property
    def in_channels(self) -> int:
        """Input channels."""
        return int(self.weights.shape[2])

    @property
    def weights_of_model(self) -> int:
        return int(self.weights.size) // self.groups


AnySumming: TypeAlias = SummingLayer[Any]
"""A layer that sums, whatever its choices of foldings are."""
AnyArray: TypeAlias = ArrayLayer[Any]
"""A layer with an array, whatever its choices of foldings are."""
AnyFilter: TypeAlias = FilterLayer[Any]
"""A convolution or linear layer, whatever its choices of foldings are."""


def multiplier_choices(
    in_dsp: Sequence[int], x_bits: int, w_bits: int, words: int, device: Device
) -> list[Fields]:
    """List where multipliers and weights may be, as fields of a folding.

    ``in_dsp`` are the numbers of multipliers that may be in DSP blocks if codes and weights are
    narrow enough, ``words`` is the depth of a weight memory.
    """
    if max(x_bits, w_bits) > DSP_BITS:
        in_dsp = [0]
    styles = ["block", "logic"] if words <= device.logic_words else ["block"]
    return [{"in_dsp": dsp, "weight_style": style} for dsp, style in product(in_dsp, styles)]


def stored_bits(weights: NDArray[np.int64], qtype: QType) -> int:
    """Bits of a weight in memory: one if all are +1 or -1."""
    if (np.abs(weights) == 1).all():
        return 1
    bits = max(signed_bits(int(weights.min()), int(weights.max())), 2)
    return bits if bits > DSP_BITS else max(bits, qtype.bits)
