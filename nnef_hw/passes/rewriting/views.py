"""Tensors seen as images whose channels are axes of one's choice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Node, image_shape
from nnef_hw.passes.rewriting.editor import Editor, reshape_node

__all__ = ["View", "channels_first", "is_image", "reshaped"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A tensor with its ``axes`` in another order, reshaped: [1, C], [1, C, L] or [1, C, H, W].

    Moves that undo each other cost nothing, nor do those that leave the stream as it is.
    """

    axes: tuple[int, ...]
    shape: Shape

    def enter(self, editor: Editor, node: Node, source: str, hint: str) -> str:
        """Emit the moves in front of a node; return the tensor that it reads for ``source``."""
        like = editor.tensors[editor.resolve(source)]
        moved = self._moved(like.shape)
        if self._is_moved:
            name = editor.activation(f"{hint}_moved", moved, like)
            editor.emit(
                Node("transpose", (source,), (name,), {"axes": [*self.axes]}, node.location)
            )
            source = name
        if moved == self.shape:
            return source
        name = editor.activation(hint, self.shape, like)
        editor.emit(reshape_node(source, name, self.shape, node))
        return name

    def leave(self, editor: Editor, node: Node, image: str, result: str) -> None:
        """Emit the moves behind a node that undo those in front of it."""
        like = editor.tensors[result]
        moved = self._moved(like.shape)
        if moved != self.shape and self._is_moved:
            name = editor.activation(f"{result}_reshaped", moved, like)
            editor.emit(reshape_node(image, name, moved, node))
            image = name
        if self._is_moved:
            back = {"axes": np.argsort(self.axes).tolist()}
            editor.emit(Node("transpose", (image,), (result,), back, node.location))
        else:
            editor.emit(reshape_node(image, result, like.shape, node))

    def array(self, data: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return a whole constant in this view."""
        return data.transpose(self.axes).reshape(self.shape)

    @property
    def _is_moved(self) -> bool:
        return self.axes != tuple(range(len(self.axes)))

    def _moved(self, shape: Shape) -> Shape:
        return tuple(shape[axis] for axis in self.axes)


def is_image(shape: Shape) -> bool:
    """Whether layers compute such tensors: [1, C], [1, C, L] or [1, C, H, W]."""
    return image_shape(shape) is not None


def reshaped(shape: Shape, image: Shape) -> View:
    """Return the view of an image of as many elements in the same order."""
    return View(tuple(range(len(shape))), image)


def channels_first(shape: Shape, channels: Collection[int]) -> View:
    """Return the view whose channels are these axes, and whose rows and columns are the others."""
    chosen = sorted(channels)
    others = [axis for axis in range(len(shape)) if axis not in chosen]
    if is_image(shape) and len(chosen) == 1 and chosen != [0]:
        axes = [0, *chosen, *(axis for axis in others if axis)]
        return View(tuple(axes), tuple(shape[axis] for axis in axes))
    ones = [axis for axis in others if shape[axis] == 1]
    extents = [shape[axis] for axis in others if axis not in ones]
    pixels = (extents[0], prod(extents[1:])) if extents else ()
    depth = prod(shape[axis] for axis in chosen)
    axes = [*ones, *chosen, *(axis for axis in others if axis not in ones)]
    kept = [axis for axis in axes if shape[axis] != 1]
    if kept == sorted(kept):
        axes = list(range(len(shape)))
    return View(tuple(axes), (1, depth, *pixels))
