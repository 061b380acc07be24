"""Windows of a stream as sequences of steps, for samples of networks that run step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array

__all__ = ["StreamRows"]


@dataclass(frozen=True, slots=True)
class StreamRows:
    """Rows of a stream that an input takes.

    Parameters
    ----------
    axis
        Axis of time: of the input's shape [1, ...], and so of its samples [N, ...].
    rows
        Rows that it takes at a time.
    front, behind
        Rows of zeros to add to a window of samples, so that what it ends with is what the last
        result is of; less than 0: rows to leave out.
    """

    axis: int
    rows: int
    front: int = 0
    behind: int = 0

    def after(self, other: StreamRows) -> StreamRows:
        """Return how windows become sequences which the other extends before."""
        front, behind = other.front + self.front, other.behind + self.behind
        return replace(self, front=front, behind=behind)

    def accepts(self, x: Array, shape: tuple[int, ...]) -> bool:
        """Whether an array holds windows [N, ...] of an input of that shape: of several rows."""
        if x.ndim != len(shape) or not len(x):
            return False
        others = [n for n in range(1, x.ndim) if n != self.axis]
        length = x.shape[self.axis] + self.front + self.behind
        return all(x.shape[n] == shape[n] for n in others) and (
            x.shape[self.axis] != shape[self.axis] and length > 0
        )

    def windows_shape(self, shape: tuple[int, ...]) -> str:
        """Return the shape of windows of an input of that shape, as users read it."""
        extents = (str(n) if axis != self.axis else "rows" for axis, n in enumerate(shape))
        return f"[N, {', '.join([*extents][1:])}]"

    def extended(self, x: Array) -> Array:
        """Return windows [N, ...] with rows added or left out at both ends."""
        extent = x.shape[self.axis]
        kept = x.take(range(max(0, -self.front), min(extent, extent + self.behind)), self.axis)
        pairs = [(0, 0)] * x.ndim
        pairs[self.axis] = max(0, self.front), max(0, self.behind)
        return np.pad(kept, pairs)

    def sequences(self, x: Array) -> Array:
        """Return windows [N, ...] as sequences of steps [N, T, ...], each of ``rows`` rows.

        If they are no whole number of steps, rows of zeros come first.
        """
        x = self.extended(x)
        lacking = -x.shape[self.axis] % self.rows
        x = np.pad(x, [(lacking if n == self.axis else 0, 0) for n in range(x.ndim)])
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        steps = x.reshape(*before, -1, self.rows, *after)
        return np.moveaxis(steps, self.axis, 1)

    def to_json(self) -> dict[str, int]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, int]) -> StreamRows:
        """Inverse of :meth:`to_json`."""
        return cls(**value)
