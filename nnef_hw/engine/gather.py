"""Codes that only change their places: one per cycle, from wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.engine.layer import (
    ANYWHERE,
    Call,
    Image,
    Layer,
    Most,
    Places,
    Shape,
    lowers,
)
from nnef_hw.engine.nest import Nest, Part, Pass
from nnef_hw.engine.scale import POOL_SHIFT, Scale
from nnef_hw.ir import Node, Reordering
from nnef_hw.ir.operators import (
    FactorAttributes,
    PadAttributes,
    PerOperator,
    SliceAttributes,
)
from nnef_hw.numerics import IntArray
from nnef_hw.parts.engine import LEVELS, QUANTITIES

__all__ = ["Axis", "GatherLayer", "Piece", "is_gathered", "lower_move", "move_piece", "nest_of"]


@dataclass(frozen=True, slots=True)
class Axis:
    """Codes of a result in a row, and how far apart they are in the operand.

    Parameters
    ----------
    count
        How many.
    pixels, channels
        From one to the next in the operand.
    into
        From one to the next in the result, in pixels; 0 along its channels.
    row, column
        From one to the next in the operand's rows and columns, if that matters: for padding.
    """

    count: int
    pixels: int = 0
    channels: int = 0
    into: int = 0
    row: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a result that comes from one operand.

    Parameters
    ----------
    source, target
        Images of both.
    along
        Axes of the codes of a pixel of the result, the innermost first.
    across
        Axes of its pixels.
    pixel, channel
        Where it begins in the operand.
    into_pixel, into_channel
        Where it begins in the result; the channel is a whole word's first one.
    top, left
        Row and column in the operand where it begins, if what is outside of that is padding.
    """

    source: Image
    target: Image
    along: tuple[Axis, ...]
    across: tuple[Axis, ...]
    pixel: int = 0
    channel: int = 0
    into_pixel: int = 0
    into_channel: int = 0
    top: int = 0
    left: int = 0

    @property
    def is_bordered(self) -> bool:
        """Whether it reads padding."""
        return any(axis.row or axis.column for axis in self.across)

    def codes(self, lanes: int) -> int:
        """Codes that are read, with those that fill up words."""
        return self.channels(lanes) * prod(axis.count for axis in self.across)

    def channels(self, lanes: int) -> int:
        """Codes of a pixel, with those that fill up its last word."""
        return -(-prod(axis.count for axis in self.along) // lanes) * lanes


@dataclass(frozen=True, slots=True)
class _Loop:
    """Iterations, and what each adds to every quantity."""

    count: int
    read: int
    write: int
    y: int
    x: int

    def times(self, outer: _Loop) -> _Loop | None:
        """Return both as one loop, if they are in a row."""
        own = _Loop(outer.count, *(self.count * x for x in (self.read, self.write, self.y, self.x)))
        return replace(self, count=self.count * outer.count) if outer == own else None


def nest_of(piece: Piece, lanes: int, places: Places, operand: int = 0) -> Nest | None:
    """Return the loops of a piece, which read codes, not words; None if these do not do.

    The codes of a word are whole loops, or part of one; or else those of all words follow one
    another, and none has to be filled up. All together these are at most six.
    """
    source, target = piece.source, piece.target
    blocks, target_blocks = source.blocks(lanes), target.blocks(lanes)
    if piece.into_channel % lanes:
        return None
    loops: list[_Loop] = []
    along = list(piece.along)
    if piece.channels(lanes) != prod(axis.count for axis in along):
        if len(along) > 1:
            return None
        # What fills up a word may be anything.
        along = [replace(along[0], count=piece.channels(lanes))]
    missing, words = lanes, 1
    packs = not _fills_words(along, piece.across, lanes)
    if packs and (target.channels % lanes or piece.into_channel or piece.into_pixel):
        return None
    for axis in (*along, *piece.across):
        count, step = axis.count, (axis.pixels * blocks * lanes + axis.channels)
        if packs:
            loops.append(_Loop(count, step, 0, axis.row, axis.column))
            continue
        if missing > 1:
            inner = count if missing % count == 0 else missing
            loops.append(_Loop(inner, step, 0, axis.row, axis.column))
            missing, count, step = missing // inner, count // inner, step * inner
        write = axis.into * target_blocks if axis.into else words
        words *= 1 if axis.into else count
        loops.append(_Loop(count, step, write, axis.row, axis.column))
    merged: list[_Loop] = []
    for loop in loops:
        if loop.count == 1:
            continue
        together = merged[-1].times(loop) if merged else None
        if together is None:
            merged.append(loop)
        else:
            merged[-1] = together
    if len(merged) > LEVELS:
        return None
    merged += [_Loop(1, 0, 0, 0, 0)] * (LEVELS - len(merged))
    read = (places.others[operand - 1] if operand else places.read) * lanes
    steps = {name: tuple(getattr(loop, name) for loop in merged) for name in ("read", "write")}
    if piece.is_bordered:
        steps |= {name: tuple(getattr(loop, name) for loop in merged) for name in "yx"}
    write = piece.into_pixel * target_blocks + piece.into_channel // lanes
    return Nest(
        counts=tuple(loop.count for loop in merged),
        strides={name: steps.get(name, (0,) * LEVELS) for name in QUANTITIES},
        starts={
            "read": read + piece.pixel * blocks * lanes + piece.channel,
            "y": piece.top, "x": piece.left, "weight": places.weight,
            "constant": places.constant, "write": places.write + write,
        },
        in_codes=True, packs=packs,
    )  # fmt: skip


def _fills_words(along: Sequence[Axis], across: Sequence[Axis], lanes: int) -> bool:
    """Whether the codes of a word are whole loops, or part of one."""
    missing = lanes
    for axis in (*along, *across):
        if missing > 1:
            inner = axis.count if missing % axis.count == 0 else missing
            if axis.count % inner:
                return False
            missing //= inner
    return missing == 1


@dataclass(frozen=True, eq=False, kw_only=True)
class GatherLayer(Layer):
    """Codes of one or several tensors, each to its place in the result.

    Every word that is read gives one code, of a lane that goes with its address.

    Parameters
    ----------
    pieces
        Parts of the result, one for each operand.
    others
        Operands behind the first one.
    """

    label = "gather"
    gathers = True

    pieces: tuple[Piece, ...]
    others: tuple[str, ...] = ()

    @property
    def read_tensors(self) -> tuple[str, ...]:
        return (self.operand, *self.others)

    def part_operand(self, n: int) -> str:
        return self.read_tensors[n]

    @property
    def may_add(self) -> bool:
        return False

    def fits(self, lanes: int) -> bool:
        """Whether it can be done in words of so many codes."""
        anywhere = ANYWHERE._replace(others=(0,) * len(self.others))
        nests = [nest_of(piece, lanes, anywhere, n) for n, piece in enumerate(self.pieces)]
        if len(nests) > 1 and any(nest is not None and nest.packs for nest in nests):
            return False
        return None not in nests

    def _nest(self, shape: Shape, places: Places, n: int) -> Nest:
        nest = nest_of(self.pieces[n], shape.lanes, places, n)
        assert nest is not None, f"{self.name}: {self.pieces[n]}"
        return nest

    def packs(self, shape: Shape) -> list[bool]:
        """Return whether the words of each piece follow one another, whatever its loops are."""
        anywhere = ANYWHERE._replace(others=(0,) * len(self.others))
        return [self._nest(shape, anywhere, n).packs for n in range(len(self.pieces))]

    def nest(self, shape: Shape, places: Places) -> Nest:
        return self._nest(shape, places, 0)

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        return [Pass(1, 1)], sum(piece.codes(shape.lanes) for piece in self.pieces)

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[Part]:
        found = []
        for n, piece in enumerate(self.pieces):
            nest = self._nest(shape, places, n)
            if most is not None:
                nest = replace(nest, starts={**nest.starts, "weight": 0, "constant": 0})
            codes = piece.codes(shape.lanes)
            constants = range(len(self.bias(shape)))
            found.append(Part(nest, [Pass(1, 1)], codes, range(1), constants))
        return found

    def part_level(self, shape: Shape) -> int:
        del shape
        return LEVELS - 1

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        words = np.zeros((1, *shape.multipliers), np.int64)
        words[0, 0, 0] = 1 << POOL_SHIFT
        return words

    def bias(self, shape: Shape) -> IntArray:
        return np.zeros(shape.results, np.int64)

    def fields(self, shape: Shape) -> dict[str, int]:
        packs = int(any(self.packs(shape)))
        bordered = any(piece.is_bordered for piece in self.pieces)
        height, width = (self.source.height, self.source.width) if bordered else (1, 1)
        return {
            **super().fields(shape),
            "gathers": 1,
            "packs": packs,
            "height": height,
            "width": width,
        }


_pieces = PerOperator[Callable[[Call], Sequence[Piece]]]("gathered result")
"""What results of an operator consist of, whose codes only change their places."""


def is_gathered(node: Node) -> bool:
    """Whether codes of a node only change their places."""
    return node.op in _pieces


def _layer(call: Call, pieces: Sequence[Piece], pad: int = 0) -> GatherLayer:
    node = call.node
    return GatherLayer(
        node=node, tensor=node.name, operand=call.tensors[node.inputs[0]],
        source=pieces[0].source, target=pieces[0].target, pad=pad,
        scale=Scale.identity(call.format(node.name).high), pieces=tuple(pieces),
        others=tuple(call.tensors[name] for name in node.inputs[1:]),
    )  # fmt: skip


def _plain(source: Image, target: Image) -> Piece:
    """Return the piece that is the operand as it is, in the upper left of the result."""
    return Piece(
        source, target, (Axis(source.channels, 0, 1),),
        (Axis(source.width, 1, 0, 1), Axis(source.height, source.width, 0, target.width)),
    )  # fmt: skip


def concat_pieces(images: Sequence[Image], target: Image, axis: int) -> list[Piece]:
    """Return the pieces of a concatenation: axis 1 are channels, 2 rows, 3 columns."""
    pieces, begin = [], 0
    for image in images:
        pixel = {1: 0, 2: begin * target.width, 3: begin}[axis]
        channel = begin if axis == 1 else 0
        pieces.append(replace(_plain(image, target), into_pixel=pixel, into_channel=channel))
        begin += {1: image.channels, 2: image.height, 3: image.width}[axis]
    return pieces


def slice_piece(source: Image, target: Image, part: SliceAttributes) -> Piece:
    """Return the piece of a part along one axis."""
    piece = _plain(source, target)
    width, height = piece.across
    return replace(
        piece, along=(Axis(target.channels, 0, 1),),
        across=(replace(width, count=target.width), replace(height, count=target.height)),
        pixel={1: 0, 2: part.begin * source.width, 3: part.begin}[part.axis],
        channel=part.begin if part.axis == 1 else 0,
    )  # fmt: skip


def upsample_piece(source: Image, target: Image, factors: Sequence[int]) -> Piece:
    """Return the piece of rows and columns that are repeated."""
    down, across = factors
    return Piece(
        source, target, (Axis(source.channels, 0, 1),),
        (Axis(across, 0, 0, 1), Axis(source.width, 1, 0, across), Axis(down, 0, 0, target.width),
         Axis(source.height, source.width, 0, down * target.width)),
    )  # fmt: skip


def depth_piece(source: Image, target: Image, factors: Sequence[int]) -> Piece:
    """Return the piece of channels (y, x, c) that are spread over rows and columns."""
    down, across = factors
    channels = target.channels
    return Piece(
        source, target, (Axis(channels, 0, 1),),
        (Axis(across, 0, channels, 1), Axis(source.width, 1, 0, across),
         Axis(down, 0, channels * across, target.width),
         Axis(source.height, source.width, 0, down * target.width)),
    )  # fmt: skip


def pad_piece(source: Image, target: Image, padding: Sequence[tuple[int, int]]) -> Piece:
    """Return the piece of an image with padding around it."""
    (top, _), (left, _) = padding
    return Piece(
        source, target, (Axis(source.channels, 0, 1),),
        (Axis(target.width, 1, 0, 1, 0, 1), Axis(target.height, source.width, 0, target.width, 1)),
        pixel=-top * source.width - left, top=-top, left=-left,
    )  # fmt: skip


def move_piece(source: Image, target: Image, reordering: Reordering) -> Piece | None:
    """Return the piece of a stream that is given in another order; None if axes are cut."""
    extents = reordering.extents
    axes: list[Axis] = []
    for place in reversed(reordering.order):
        parts = _in_pixels(extents[place], prod(extents[place + 1 :]), source.channels)
        if parts is None:
            return None
        axes += parts
    along: list[Axis] = []
    missing = target.channels
    while missing > 1:
        axis = axes.pop(0)
        count = axis.count if missing % axis.count == 0 else missing
        if axis.count % count:
            return None
        along.append(replace(axis, count=count))
        missing //= count
        if count < axis.count:
            rest = Axis(axis.count // count, axis.pixels * count, axis.channels * count)
            axes.insert(0, rest)
    across, pixels = [], 1
    for axis in axes:
        across.append(replace(axis, into=pixels))
        pixels *= axis.count
    return Piece(source, target, tuple(along) or (Axis(1),), tuple(across))


def _in_pixels(count: int, step: int, channels: int) -> list[Axis] | None:
    """Return axes of a stream's codes, so many of them so far apart, in pixels and channels."""
    if count == 1:
        return []
    if step % channels == 0:
        return [Axis(count, pixels=step // channels)]
    if count * step <= channels:
        return [Axis(count, channels=step)]
    if channels % step or count % (channels // step):
        return None
    inner = channels // step
    return [Axis(inner, channels=step), Axis(count // inner, pixels=1)]


@_pieces("concat")
def _concat(call: Call) -> Sequence[Piece]:
    images = [call.image(name) for name in call.node.inputs]
    return concat_pieces(images, call.image(call.node.name), call.node.attrs["axis"])


@_pieces("slice")
def _slice(call: Call) -> Sequence[Piece]:
    return [slice_piece(*_images(call), call.node.attributes(SliceAttributes))]


@_pieces("nearest_upsample")
def _upsample(call: Call) -> Sequence[Piece]:
    return [upsample_piece(*_images(call), call.node.attributes(FactorAttributes).factor)]


@_pieces("depth_to_space")
def _depth(call: Call) -> Sequence[Piece]:
    return [depth_piece(*_images(call), call.node.attributes(FactorAttributes).factor)]


@_pieces("pad")
def _pad(call: Call) -> Sequence[Piece]:
    return [pad_piece(*_images(call), call.node.attributes(PadAttributes).padding)]


@lowers("concat", "slice", "nearest_upsample", "depth_to_space")
def _lower_gather(call: Call) -> Layer:
    return _layer(call, _pieces[call.node.op](call))


@lowers("pad")
def _lower_pad(call: Call) -> Layer:
    name, value = call.node.inputs[0], call.node.attributes(PadAttributes).value
    code = int(call.qtype(name).quantize(value)) - call.format(name).offset
    return _layer(call, _pad(call), code)


def lower_move(call: Call, piece: Piece) -> Layer:
    """Return the layer of a reshape or transpose that changes what is in memory."""
    return _layer(call, [piece])


def _images(call: Call) -> tuple[Image, Image]:
    return call.image(call.node.inputs[0]), call.image(call.node.name)
