"""Convolutions on an array that sums over taps: one channel at a time, or several by themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts import Part, WindowPart
from nnef_hw.parts.arrays.depthwise import DepthwiseArray
from nnef_hw.parts.streams.stream import SumHop, SumQueue
from nnef_hw.parts.streams.width import Pack
from nnef_hw.parts.windows.banked import BankedLineBuffer
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.streaming.filters.arrays import AnyArray, ArrayFolding, multiplier_choices
from nnef_hw.streaming.layers.kept import depends_on
from nnef_hw.streaming.layers.requantize import digit_choices, interval_of
from nnef_hw.streaming.layers.windows import buffered_cycles, least_depth, useful_depths

__all__ = ["TapFolding", "View", "lines_of", "tap_foldings"]


class View(NamedTuple):
    """An image as an array reads it: windows of beats of ``lanes`` of its ``channels``."""

    window: Window
    lanes: int
    channels: int


@dataclass(frozen=True, kw_only=True)
class TapFolding(ArrayFolding, ABC):
    """An array of ``lanes`` channels, behind a line buffer.

    Parameters
    ----------
    lanes, taps
        Channels at once, and products of each per word.
    lines
        Rows that a banked line buffer keeps; 0 if taps come one by one.
    depth
        Words of the line buffer in that case, else 0.
    """

    lanes: int
    taps: int
    lines: int
    depth: int = 0
    digit_bits: int = 1
    digit_stages: int = 1
    kept_passes: int = 1
    in_dsp: int = 0
    weight_style: str = "block"

    is_shared: ClassVar[bool] = False
    """Whether all lanes take the same codes."""

    @property
    def shape(self) -> dict[str, int]:
        return {"rows": 1, "lanes": self.lanes, "taps": self.taps, "lines": self.lines}

    @depends_on("lanes")
    def packing(self, layer: AnyArray, view: View, device: Device) -> tuple[Pack, ...]:
        """Return the parts that make beats of codes."""
        del device
        return layer.packing(view.channels, view.lanes)

    @depends_on("lanes", "lines", "depth")
    def buffer(self, layer: AnyArray, view: View, device: Device) -> WindowPart:
        """Return the line buffer."""
        formats = layer.buffer_formats(device)
        if self.lines:
            return BankedLineBuffer(
                window=view.window, lanes=view.lanes, lines=self.lines, **formats,
                long_wires=device.long_wires,
            )  # fmt: skip
        return LineBuffer(
            window=view.window, lanes=view.lanes, depth=self.depth, **formats,
            decides_early=device.long_wires,
        )  # fmt: skip

    @depends_on("lanes", "taps", "kept_passes", "in_dsp", "weight_style")
    def array(self, layer: AnyArray, device: Device) -> DepthwiseArray:
        """Return the array."""
        return DepthwiseArray(
            channels=layer.out_channels, positions=layer.weights_of_channel, lanes=self.lanes,
            taps=self.taps, w_bits=layer.w_bits, lut_ram=device.family.has_lut_ram,
            shared=self.is_shared and self.lanes > 1,
            **layer.array_formats(self, device),
        )  # fmt: skip

    @depends_on("digit_bits", "digit_stages")
    def behind(self, layer: AnyArray, device: Device) -> tuple[Part, ...]:
        """Return the parts that sums pass.

        Where wires are long, they hop: all sums of a pass move when the first one leaves, and that
        takes logic of its own.
        """
        parts = super().behind(layer, device)
        if not device.long_wires:
            return parts
        queue, *others = parts
        assert isinstance(queue, SumQueue)
        return (queue, SumHop(bits=queue.bits), *others)

    @abstractmethod
    def view(self, layer: Any) -> View:
        """Return the array's view of a layer's windows."""

    def parts(self, layer: AnyArray, device: Device) -> tuple[Part, ...]:
        """Return the parts of a layer."""
        view = self.view(layer)
        buffer, array = self.buffer(layer, view, device), self.array(layer, device)
        before = *self.packing(layer, view, device), *self.in_front(buffer, device)
        return (*before, buffer, array, *self.behind(layer, device))

    def cycles(self, layer: AnyArray, device: Device) -> int:
        """Cycles per frame of a layer that nothing makes wait."""
        view = self.view(layer)
        array = self.array(layer, device)
        reading = self.reading(layer, array, view.window.out_pixels, device)
        buffer = self.buffer(layer, view, device)
        if isinstance(buffer, LineBuffer):
            return buffered_cycles(buffer, reading, view.channels, layer.operand_lanes)
        return max(reading, layer.beats)


T = TypeVar("T", bound=TapFolding)


def lines_of(window: Window) -> int:
    """Rows that a banked line buffer keeps so that its reader never waits for the writer."""
    return 1 << (window.reach[0] + window.stride[0] - 1).bit_length()


def tap_foldings(size: T, layer: AnyArray, device: Device) -> Iterator[T]:
    """Vary the requantizer, the kind of multipliers and the weight memory of an array of a size."""
    view = size.view(layer)
    if size.lines and (view.window.starts_in_padding or view.window.goes_on):
        return
    for digits in digit_choices(layer.requant, device):
        plain = replace(size, **digits)
        kept = _kept_passes(plain, layer, device)
        weight_words = plain.array(layer, device).depth
        for kind in multiplier_choices(
            (size.lanes * size.taps, 0), layer.source.bits, layer.w_bits, weight_words, device
        ):
            depth = 0 if size.lines else least_depth(view.window)
            folding = replace(plain, **kind, kept_passes=kept, depth=depth)
            buffer = folding.buffer(layer, view, device)
            if not isinstance(buffer, LineBuffer):
                yield folding
                continue
            array = folding.array(layer, device)
            reading = folding.reading(layer, array, view.window.out_pixels, device)
            of_depth = partial(_of_depth, folding, layer, view, device)
            for words in useful_depths(
                of_depth, view.window, reading, view.channels, layer.operand_lanes
            ):
                yield replace(folding, depth=words)


def _of_depth(
    folding: TapFolding, layer: AnyArray, view: View, device: Device, depth: int
) -> LineBuffer:
    """Return the line buffer of the folding with another depth."""
    buffer = replace(folding, depth=depth).buffer(layer, view, device)
    assert isinstance(buffer, LineBuffer)
    return buffer


def _kept_passes(folding: TapFolding, layer: AnyArray, device: Device) -> int:
    """Return for how many passes sums are kept: those that are inside at full rate."""
    interval = interval_of(layer.requant, folding)
    array = folding.array(layer, device)
    beats = array.lanes // array.out_lanes
    period = max(array.words, beats * interval)

    def stay(array: DepthwiseArray) -> int:
        return array.latency + 1 + (beats - 1) * interval

    if stay(array) <= period:
        return 1
    return max(2, -(-stay(replace(array, kept_passes=2)) // period))
