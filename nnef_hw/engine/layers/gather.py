"""Codes that only change their places: one per cycle, from wherever they are, or word by word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.formats import ANYWHERE, Image, Most, Places, Shape
from nnef_hw.engine.layers.layer import AnyContext, EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.nest import LayerPart, Nest, Pass
from nnef_hw.engine.layers.pieces import Axis, Piece, WordView, is_idle, nest_of, words_of
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.layers.scale import POOL_SHIFT, Scale
from nnef_hw.ir import layers
from nnef_hw.parts.engine.array import ArrayUse
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.pairs import Gathering, Packing
from nnef_hw.parts.engine.sizes import LEVELS

__all__ = ["GatherLayer", "lower_move", "plain_piece", "row_layer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class GatherLayer(EngineLayer):
    """Codes of one or several tensors, each to its place in the result.

    Every word that is read gives one code, of a lane that goes with its address; or, where several
    results may leave together and all words stay as they are, all of its codes.

    Parameters
    ----------
    pieces
        Parts of the result, one for each operand.
    others
        Operands behind the first one.
    """

    label = "gather"

    pieces: tuple[Piece, ...]
    others: tuple[str, ...] = ()

    @property
    def read_tensors(self) -> tuple[str, ...]:
        return (self.operand, *self.others)

    def part_operand(self, n: int) -> str:
        return self.read_tensors[n]

    def renamed(self, names: Mapping[str, str]) -> EngineLayer:
        changed: Fields = {"others": tuple(names.get(x, x) for x in self.others)}
        return replace(super().renamed(names), **changed)

    @property
    def may_add(self) -> bool:
        return False

    @property
    def may_write_row(self) -> bool:
        return True

    def view(self, lanes: int) -> WordView | None:
        """Return where all words of so many codes are in the operand, if they only move."""
        [first, *others] = self.pieces
        nest = nest_of(first, lanes, ANYWHERE)
        words = None if nest is None else words_of(nest, lanes)
        is_plain = self.table is None and self.row is None and not first.is_bordered
        if others or words is None or not is_plain:
            return None
        return WordView.of(self.operand, words)

    def is_idle(self, lanes: int) -> bool:
        """Whether all words of so many codes stay as they are, in their order."""
        [first, *others] = self.pieces
        return not others and self.table is None and self.row is None and is_idle(first, lanes)

    def fits(self, lanes: int) -> bool:
        """Whether the layer can be computed in words of so many codes."""
        anywhere = ANYWHERE._replace(others=(0,) * len(self.others))
        nests = [nest_of(piece, lanes, anywhere, n) for n, piece in enumerate(self.pieces)]
        if len(nests) > 1 and any(nest is not None and nest.packs for nest in nests):
            return False
        return None not in nests

    def _nest(self, shape: Shape, places: Places, n: int) -> Nest:
        nest = nest_of(self.pieces[n], shape.lanes, places, n)
        assert nest is not None, f"{self.name}: {self.pieces[n]}"
        words = None if self.gathers(shape) else words_of(nest, shape.lanes)
        return words or nest

    def gathers(self, shape: Shape) -> bool:
        if shape.results == 1:
            return True
        anywhere = ANYWHERE._replace(others=(0,) * len(self.others))
        nests = (nest_of(x, shape.lanes, anywhere, n) for n, x in enumerate(self.pieces))
        return any(nest is None or words_of(nest, shape.lanes) is None for nest in nests)

    def packs(self, shape: Shape) -> list[bool]:
        """Return whether the words of each piece follow one another, whatever its loops are."""
        anywhere = ANYWHERE._replace(others=(0,) * len(self.others))
        return [self._nest(shape, anywhere, n).packs for n in range(len(self.pieces))]

    def nest(self, shape: Shape, places: Places) -> Nest:
        return self._nest(shape, places, 0)

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        codes = sum(piece.codes(shape.lanes) for piece in self.pieces)
        return [Pass(1, self._results(shape))], codes // self._results(shape)

    def _results(self, shape: Shape) -> int:
        """Codes of a word that is read."""
        return 1 if self.gathers(shape) else shape.lanes

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        found = []
        for n, piece in enumerate(self.pieces):
            nest = self._nest(shape, places, n)
            if most is not None:
                nest = replace(nest, starts={**nest.starts, "weight": 0, "constant": 0})
            results, constants = self._results(shape), range(len(self.bias(shape)))
            words = piece.codes(shape.lanes) // results
            found.append(LayerPart(nest, [Pass(1, results)], words, range(1), constants))
        return found

    def part_level(self, shape: Shape) -> int:
        del shape
        return LEVELS - 1

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        words = np.zeros((1, *shape.multipliers), np.int64)
        words[0, 0, : self._results(shape)] = 1 << POOL_SHIFT
        return words

    def bias(self, shape: Shape) -> IntArray:
        return np.zeros(max(shape.results, self._results(shape)), np.int64)

    def work(self, shape: Shape) -> ArrayUse:
        own = super().work(shape)
        bordered = any(piece.is_bordered for piece in self.pieces)
        return own if bordered else replace(own, height=1, width=1)

    def records(self, shape: Shape) -> tuple[Record, ...]:
        gathers = (Gathering(gathers=1), Packing(packs=any(self.packs(shape))))
        return (*super().records(shape), *(gathers if self.gathers(shape) else ()))


def _layer(context: AnyContext, pieces: Sequence[Piece], pad: int = 0) -> GatherLayer:
    layer, (operand, *others) = context.layer, context.operands
    return GatherLayer(
        node=layer.node, tensor=layer.result.name, operand=operand, source=pieces[0].source,
        target=pieces[0].target, pad=pad, scale=Scale.identity(context.target.high),
        pieces=tuple(pieces), others=tuple(others),
    )  # fmt: skip


def plain_piece(source: Image, target: Image) -> Piece:
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
        pieces.append(replace(plain_piece(image, target), into_pixel=pixel, into_channel=channel))
        begin += {1: image.channels, 2: image.height, 3: image.width}[axis]
    return pieces


def slice_piece(source: Image, target: Image, part: layers.Slice) -> Piece:
    """Return the piece of a part along one axis."""
    piece = plain_piece(source, target)
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


@lowers("concat")
def _lower_concat(context: EngineContext[layers.Concat]) -> EngineLayer:
    images = [Image(*layers.image_of(x)) for x in context.layer.operands]
    return _layer(
        context, concat_pieces(images, Image(*context.layer.result_image), context.layer.axis)
    )


@lowers("slice")
def _lower_slice(context: EngineContext[layers.Slice]) -> EngineLayer:
    return _layer(context, [slice_piece(*_images(context), context.layer)])


@lowers("nearest_upsample")
def _lower_upsample(context: EngineContext[layers.Upsample]) -> EngineLayer:
    return _layer(context, [upsample_piece(*_images(context), context.layer.factor)])


@lowers("depth_to_space")
def _lower_depth(context: EngineContext[layers.DepthToSpace]) -> EngineLayer:
    return _layer(context, [depth_piece(*_images(context), context.layer.factor)])


@lowers("pad")
def _lower_pad(context: EngineContext[layers.Pad]) -> EngineLayer:
    pad = context.layer
    return _layer(
        context, [pad_piece(*_images(context), pad.padding)], pad.code - context.source.offset
    )


def lower_move(context: EngineContext[layers.Layer], piece: Piece) -> EngineLayer:
    """Return the layer of a reshape or transpose that changes what is in memory."""
    return _layer(context, [piece])


def row_layer(context: EngineContext[layers.WriteRow], place: Place) -> EngineLayer:
    """Return the layer that writes a row of a cache, whose other rows stay."""
    layer = context.layer
    image = Image(1, 1, layer.operands[1].shape[1])
    return GatherLayer(
        node=layer.node, tensor=layer.result.name, operand=context.operands[1], source=image,
        target=image, pad=0, scale=Scale.identity(context.target.high),
        pieces=(plain_piece(image, image),), row=place,
    )  # fmt: skip


def _images(context: AnyContext) -> tuple[Image, Image]:
    return Image(*context.layer.image), Image(*context.layer.result_image)
