"""Words of a tensor that are read where those of another one are: moves that addresses make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from nnef_hw.engine.layers.nest import Nest

__all__ = ["WordView"]


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
