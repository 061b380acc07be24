"""Attributes of sliding windows with NNEF's defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.reference.real.registry import Evaluation

__all__ = ["WindowAttributes", "down_padding", "up_padding"]

Padding = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class WindowAttributes:
    """One item for each axis the window moves along; ``padding`` is empty if it is automatic."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, call: Evaluation, size: Sequence[int]) -> WindowAttributes:
        """Read the attributes of an invocation."""
        ones = (1,) * len(size)
        return cls(
            tuple(size),
            tuple(call.attr("stride") or ones),
            tuple(call.attr("dilation") or ones),
            tuple((int(p), int(q)) for p, q in call.attr("padding") or ()),
        )

    @classmethod
    def one(cls, rank: int) -> WindowAttributes:
        """Return a window of one element."""
        ones = (1,) * rank
        return cls(ones, ones, ones)

    @property
    def reach(self) -> list[int]:
        """Extents the window covers, dilation included."""
        return [(k - 1) * d + 1 for k, d in zip(self.size, self.dilation, strict=True)]


def down_padding(window: WindowAttributes, extents: Sequence[int]) -> Padding:
    """Return the padding of an input of ``extents`` whose windows give ceil(extent / stride)."""
    if window.padding:
        return list(window.padding)
    totals = [
        max((-(-n // s) - 1) * s + reach - n, 0)
        for n, s, reach in zip(extents, window.stride, window.reach, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]


def up_padding(window: WindowAttributes, extents: Sequence[int], results: Sequence[int]) -> Padding:
    """Return the padding of a reverse operation from ``extents`` to ``results``."""
    if window.padding:
        return list(window.padding)
    totals = [
        max((n - 1) * s + reach - result, 0)
        for n, s, reach, result in zip(extents, window.stride, window.reach, results, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]
