"""Sizes of a product of rows and matrices, and the order in which both stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.arrays import Array

__all__ = ["Contraction"]


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """Sizes of products of rows and matrices: ``y[r, n] = sum over k of x[r, k] * w[m(r), k, n]``.

    Rows come in the order of the stream. They are multiplied by the matrices of one set after the
    other; of its ``matrices`` each is for ``repeats`` rows in a row, and then it is the next one's
    turn, ``turns`` times all of them.

    Parameters
    ----------
    inner, columns
        Elements of a row (K), and columns of a matrix (N).
    order
        Axes of a set of matrices as it streams, outermost first: ``m`` counts matrices, ``k`` is
        that which is summed over, ``n`` that of the columns.
    """

    sets: int
    matrices: int
    repeats: int
    turns: int
    inner: int
    columns: int
    order: str

    @property
    def rows(self) -> int:
        """Rows of all sets."""
        return self.sets * self.rows_of_set

    @property
    def rows_of_set(self) -> int:
        """Rows that are multiplied by the matrices of one set."""
        return self.turns * self.matrices * self.repeats

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of a set of matrices as it streams, outermost first."""
        named = {"m": self.matrices, "k": self.inner, "n": self.columns}
        return tuple(named[axis] for axis in self.order)

    @property
    def row_axis(self) -> str:
        """The outermost axis of the stream along which there are several elements."""
        pairs = zip(self.order, self.extents, strict=True)
        return next((axis for axis, extent in pairs if extent > 1), self.order[-1])

    @property
    def outer_rows(self) -> int:
        """Elements along that axis."""
        return self.extents[self.order.index(self.row_axis)]

    @property
    def codes(self) -> int:
        """Elements of a set of matrices."""
        return self.matrices * self.inner * self.columns

    @property
    def macs(self) -> int:
        """Products of a frame."""
        return self.rows * self.inner * self.columns

    def multiply(self, x: Array, w: Array) -> Array:
        """Return ``y`` [N, columns, rows] of batches of images [N, C, ...], channels innermost."""
        count = len(x)
        rows = x.reshape(count, self.inner, self.sets, self.turns, self.matrices, self.repeats)
        rows = rows.transpose(0, 2, 4, 3, 5, 1).reshape(
            count, self.sets, self.matrices, -1, self.inner
        )
        stream = np.moveaxis(w.reshape(count, w.shape[1], -1), 1, 2)
        stream = stream.reshape(count, self.sets, *self.extents)
        sums = rows @ stream.transpose(0, 1, *(2 + self.order.index(axis) for axis in "mkn"))
        shape = count, self.sets, self.matrices, self.turns, self.repeats, self.columns
        result: Array = sums.reshape(shape).transpose(0, 5, 1, 3, 2, 4)
        return result.reshape(count, self.columns, -1)
