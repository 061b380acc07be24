"""Layers that move codes: nothing is computed, and there is nothing to choose."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nnef_hw.arithmetic.records import Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import Reordering, layers
from nnef_hw.parts import Part
from nnef_hw.parts.images.depthtospace import DepthToSpace
from nnef_hw.parts.images.pad import Pad
from nnef_hw.parts.images.transpose import Transpose
from nnef_hw.parts.images.upsample import Upsample
from nnef_hw.parts.streams.concat import Concat, Split
from nnef_hw.parts.streams.lanes import side_by_side
from nnef_hw.streaming.layers.layer import (
    AnyContext,
    Folding,
    PlainLayer,
    StreamContext,
    WindowLayer,
    lowers,
)

__all__ = [
    "ConcatLayer",
    "DepthToSpaceLayer",
    "PadLayer",
    "SliceLayer",
    "TransposeLayer",
    "UpsampleLayer",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class BeatMove(PlainLayer):
    """A layer that moves whole beats: as many codes side by side as stay together."""

    keeps_lanes = True

    @property
    def beats_format(self) -> Fields:
        """Format of the beats that come."""
        return {**self.codes_format, "lanes": self.operand_lanes}


@dataclass(frozen=True, eq=False, kw_only=True)
class ConcatLayer(BeatMove):
    """Images side by side; each gives ``runs`` codes in turn (design: row, column, channel)."""

    label = "concat"

    pixels: int
    channels: int
    runs: tuple[int, ...]

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.pixels * self.channels // self.operand_lanes

    @property
    def together(self) -> int:
        return math.gcd(*self.runs)

    def part(self, device: Device) -> Part:
        del device
        runs = tuple(run // self.operand_lanes for run in self.runs)
        return Concat(runs=runs, **self.beats_format)


@dataclass(frozen=True, eq=False, kw_only=True)
class SliceLayer(BeatMove):
    """Part of an image: of every ``sum(runs)`` codes those of the second run, ``turns`` times."""

    label = "slice"

    runs: tuple[int, int, int]
    turns: int

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.turns * sum(self.runs) // self.operand_lanes

    @property
    def together(self) -> int:
        return math.gcd(*self.runs)

    def part(self, device: Device) -> Part:
        del device
        kept = tuple(n == 1 for n, run in enumerate(self.runs) if run)
        runs = tuple(run // self.operand_lanes for run in self.runs if run)
        return Split(runs=runs, turns=self.turns, kept=kept, **self.beats_format)


@dataclass(frozen=True, eq=False, kw_only=True)
class PadLayer(WindowLayer[Folding], BeatMove):
    """A border of one code around an image; ``window`` has the image and its padding."""

    label = "pad"

    pad_code: int

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.window.words // self.operand_lanes

    @property
    def together(self) -> int:
        return self.window.channel_blocks

    def part(self, device: Device) -> Part:
        del device
        window = self.window
        return Pad(
            height=window.height, width=window.width,
            channels=window.channel_blocks // self.operand_lanes, padding=window.padding,
            pad_code=self.pad_code, **self.beats_format,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class UpsampleLayer(WindowLayer[Folding], BeatMove):
    """Rows and columns of the image of ``window``, several times each."""

    label = "upsample"

    factors: tuple[int, int]

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.window.beats * math.prod(self.factors) // self.operand_lanes

    @property
    def together(self) -> int:
        return self.window.channel_blocks

    def part(self, device: Device) -> Part:
        window, lanes = self.window, self.operand_lanes
        part = Upsample(
            height=window.height, width=window.width, channels=window.channel_blocks // lanes,
            factors=self.factors, depth=_two_rows(window) // lanes, ram=device.ram,
            **self.codes_format,
        )  # fmt: skip
        return side_by_side(part, lanes)


@dataclass(frozen=True, eq=False, kw_only=True)
class DepthToSpaceLayer(WindowLayer[Folding], BeatMove):
    """Channels (y, x, c) of the image of ``window``, spread over rows and columns."""

    label = "depth_to_space"

    factors: tuple[int, int]

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.window.beats // self.operand_lanes

    @property
    def together(self) -> int:
        return self.window.channel_blocks // math.prod(self.factors)

    def part(self, device: Device) -> Part:
        window, lanes = self.window, self.operand_lanes
        part = DepthToSpace(
            height=window.height, width=window.width, factors=self.factors,
            depth=1 << (_two_rows(window) // lanes - 1).bit_length(),
            channels=self.together // lanes, ram=device.ram, **self.codes_format,
        )  # fmt: skip
        return side_by_side(part, lanes)


@dataclass(frozen=True, eq=False, kw_only=True)
class TransposeLayer(BeatMove):
    """A stream in another order: the axes of ``reordering``, outermost first.

    They need not be those of a tensor: a flat one is divided into what it becomes. Axes that are
    ``backwards`` begin with their end.
    """

    label = "transpose"

    reordering: Reordering
    backwards: tuple[int, ...] = ()

    @property
    def image(self) -> Window:
        return Window(1, 1, self.reordering.volume)

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.reordering.volume // self.operand_lanes

    @property
    def together(self) -> int:
        last = len(self.reordering.extents) - 1
        stays = self.reordering.order[-1] == last and last not in self.backwards
        return self.reordering.extents[-1] if stays else 1

    def part(self, device: Device) -> Part:
        lanes = self.operand_lanes
        turns, inner = (1, self.reordering) if self.backwards else self.reordering.turns
        part = Transpose(
            extents=(*inner.extents[:-1], inner.extents[-1] // lanes), order=inner.order,
            backwards=self.backwards, turns=turns, ram=device.ram, **self.codes_format,
        )  # fmt: skip
        return side_by_side(part, lanes)


def _two_rows(window: Window) -> int:
    """Codes of two rows: the second lets codes in while the first one is read."""
    return 2 * window.width * window.channel_blocks


@lowers("concat")
def _lower_concat(context: StreamContext[layers.Concat]) -> ConcatLayer:
    images: list[tuple[int, ...]] = [layers.image_of(x) for x in context.layer.operands]
    # What an image gives in a turn: the channels of a pixel, a row, or all of it.
    inner = {1: slice(2, 3), 3: slice(1, 3), 2: slice(0, 3)}[context.layer.axis]
    runs = tuple(math.prod(image[inner]) for image in images)
    return _joined(context, runs)


def _joined(context: AnyContext, runs: tuple[int, ...]) -> ConcatLayer:
    height, width, channels = context.layer.result_image
    return ConcatLayer(**context.common, pixels=height * width, channels=channels, runs=runs)


@lowers("slice")
def _lower_slice(context: StreamContext[layers.Slice]) -> SliceLayer:
    """Lower a part along one axis, whose inner axes it takes as they are."""
    part, image = context.layer, context.layer.image
    place = {1: 2, 2: 0, 3: 1}[part.axis]
    inner = math.prod(image[place + 1 :])
    begin, end = part.begin, part.end
    runs = (begin * inner, (end - begin) * inner, (image[place] - end) * inner)
    return SliceLayer(**context.common, runs=runs, turns=math.prod(image[:place]))


@lowers("join_steps", "split_steps")
def _lower_joined(context: StreamContext[layers.JoinSteps | layers.SplitSteps]) -> SliceLayer:
    """Lower steps that follow each other: all of them are one frame now."""
    return SliceLayer(**context.common, runs=(0, context.layer.result.volume, 0), turns=1)


@lowers("last_step")
def _lower_last(context: StreamContext[layers.LastStep]) -> SliceLayer:
    volume = context.layer.result.volume
    return SliceLayer(
        **context.common, runs=((context.layer.steps - 1) * volume, volume, 0), turns=1
    )


@lowers("begin_steps")
def _lower_begin(context: StreamContext[layers.BeginSteps]) -> ConcatLayer:
    """Lower the first value of a state, and those of later steps."""
    volume = context.layer.result.volume
    return _joined(context, (volume, (context.layer.steps - 1) * volume))


@lowers("reverse_steps")
def _lower_reversed(context: StreamContext[layers.ReverseSteps]) -> TransposeLayer:
    steps, volume = context.layer.steps, context.layer.result.volume
    reordering = Reordering((1, steps, volume // steps), (0, 1, 2))
    return TransposeLayer(**context.common, reordering=reordering, backwards=(1,))


@lowers("pad")
def _lower_pad(context: StreamContext[layers.Pad]) -> PadLayer:
    window = Window(*context.layer.image, padding=context.layer.padding)
    return PadLayer(**context.common, window=window, pad_code=context.layer.code)


@lowers("reshape", "transpose")
def _lower_transpose(context: StreamContext[layers.Reshape | layers.Transpose]) -> TransposeLayer:
    """Lower a node that changes the order of the stream."""
    name = context.layer.result.name
    reordering = context.order.reordering(name)
    assert reordering is not None, name
    return TransposeLayer(**context.common, reordering=reordering)


@lowers("nearest_upsample")
def _lower_upsample(context: StreamContext[layers.Upsample]) -> UpsampleLayer:
    window = Window(*context.layer.image)
    return UpsampleLayer(**context.common, window=window, factors=context.layer.factor)


@lowers("depth_to_space")
def _lower_depth_to_space(context: StreamContext[layers.DepthToSpace]) -> DepthToSpaceLayer:
    window = Window(*context.layer.image)
    return DepthToSpaceLayer(**context.common, window=window, factors=context.layer.factor)
