"""Parts of a result whose codes only change their places, as loops over codes or words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.engine.layers.formats import ANYWHERE, Image, Places
from nnef_hw.engine.layers.nest import Nest
from nnef_hw.ir import Reordering
from nnef_hw.parts.engine.program import PASS_LEVEL, QUANTITIES
from nnef_hw.parts.engine.sizes import LEVELS

__all__ = ["WordView", "Axis", "Piece", "is_idle", "move_piece", "nest_of", "words_of"]


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
        """Whether the piece reads padding."""
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


def words_of(nest: Nest, lanes: int) -> Nest | None:
    """Return loops over words, of loops over codes of a piece; None if any word is not as it was.

    A word is a pass, for which there are three loops.
    """
    steps, start = nest.strides["read"], nest.starts["read"]
    inner = {name: strides[0] for name, strides in nest.strides.items()}
    is_whole = nest.counts[0] == lanes and inner == {name: int(name == "read") for name in inner}
    is_aligned = not any(number % lanes for number in (start, *steps[1:]))
    outer = nest.counts[1 : 1 + LEVELS - PASS_LEVEL]
    if nest.packs or not is_whole or not is_aligned or prod(outer) * lanes != nest.words:
        return None
    strides = {name: found[1 : 1 + len(outer)] for name, found in nest.strides.items()}
    strides["read"] = tuple(step // lanes for step in strides["read"])
    alone = PASS_LEVEL
    return Nest(
        counts=(*[1] * alone, *outer),
        strides={name: (*[0] * alone, *found) for name, found in strides.items()},
        starts={**nest.starts, "read": start // lanes},
    )  # fmt: skip


def is_idle(piece: Piece, lanes: int) -> bool:
    """Whether all words of so many codes stay as they are, in their order."""
    nest = nest_of(piece, lanes, ANYWHERE)
    words = None if nest is None else words_of(nest, lanes)
    if words is None or piece.is_bordered:
        return False
    places = {(words.starts[name], words.strides[name]) for name in ("read", "write")}
    counts = {words.words, piece.source.words(lanes), piece.target.words(lanes)}
    return len(places) == len(counts) == 1 and words.starts["read"] == 0


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


@dataclass(frozen=True, slots=True)
class WordView:
    """Places of a tensor's words in another tensor.

    Parameters
    ----------
    tensor
        The other one.
    start
        The place there of the first word.
    axes
        How many words there are and how far apart they are there, the innermost axis first.
    """

    tensor: str
    start: int
    axes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, tensor: str, nest: Nest) -> WordView | None:
        """Return where the words are that a nest of loops over words writes, one after the other.

        None if it does not write all of them.
        """
        strides = nest.strides["write"], nest.strides["read"]
        every = sorted(zip(strides[0], nest.counts, strides[1], strict=True))
        loops = [loop for loop in every if loop[1] > 1]
        words = 1
        for write, count, _ in loops:
            if write != words:
                return None
            words *= count
        axes = tuple((count, read) for _, count, read in loops)
        return cls(tensor, nest.starts["read"], axes) if nest.starts["write"] == 0 else None

    @property
    def words(self) -> NDArray[np.int64]:
        """Places of all words, in their order."""
        found = np.array([self.start])
        for count, stride in self.axes:
            found = (np.arange(count)[:, None] * stride + found).ravel()
        return found

    @property
    def joined(self) -> WordView:
        """A view of the same words: axes that follow each other are one."""
        axes: list[tuple[int, int]] = []
        for count, stride in self.axes:
            if axes and stride == axes[-1][0] * axes[-1][1]:
                axes[-1] = axes[-1][0] * count, axes[-1][1]
            else:
                axes.append((count, stride))
        return replace(self, axes=tuple(axes))

    def step(self, count: int, stride: int) -> int | None:
        """Return how far apart words are of which each is so many behind the one before.

        None if these are not all as far apart.
        """
        found = self._split([(count, stride)], 0)
        if found is None or len(found) > 1:
            return None
        return found[0][1] if found else 0

    def behind(self, other: WordView) -> WordView | None:
        """Return the view of what the other one's tensor is in this view; None if there is none."""
        start, rest = self.start, other.start
        for count, stride in self.axes:
            rest, digit = divmod(rest, count)
            start += digit * stride
        found = self._split(other.axes, other.start)
        return None if rest or found is None else replace(self, start=start, axes=tuple(found))

    def _split(self, loops: Sequence[tuple[int, int]], start: int) -> list[tuple[int, int]] | None:
        """Return loops over words as loops over the other tensor's; None if words are no sums.

        They begin at a word.
        """
        counts = [count for count, _ in self.axes]
        # Of each axis, where the last word is.
        last = [start // prod(counts[:n]) % count for n, count in enumerate(counts)]
        found: list[tuple[int, int]] = []
        for count, stride in loops:
            left, step = count, stride
            while left > 1:
                n = next((n for n in range(len(counts)) if step < prod(counts[: n + 1])), None)
                if n is None or step % prod(counts[:n]):
                    return None
                each = step // prod(counts[:n])
                inner = min(left, -(-counts[n] // each))
                if left % inner or (inner < left and counts[n] % each):
                    return None
                last[n] += (inner - 1) * each
                if last[n] >= counts[n]:
                    return None
                found.append((inner, each * self.axes[n][1]))
                left, step = left // inner, prod(counts[: n + 1])
        return found
