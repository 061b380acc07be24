"""Frames of which one code is another one than the others, and claims made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from prover import Claim

from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["RAM", "beats", "claim", "marked", "payloads"]

RAM = BlockRam("tiny", ((16, 16), (32, 8), (64, 4), (128, 2)))


def marked(count: int, *, base: int = 0, mark: int = 1) -> list[np.ndarray]:
    """Return frames of so many codes: one of equal codes, then one for each place of the mark."""
    frames = np.full((count + 1, count), base)
    frames[np.arange(count) + 1, np.arange(count)] = mark
    return list(frames)


def beats(codes: Any, lanes: int = 1, frame: int | None = None) -> list[dict[str, Any]]:
    """Return the beats of a frame, or of one that ends after every ``frame`` beats."""
    rows = np.reshape(codes, (-1, lanes)).tolist()
    frame = frame or len(rows)
    return [{"data": row, "last": n % frame == frame - 1} for n, row in enumerate(rows)]


def payloads(stream: Any, frames: Sequence[Sequence[Any]]) -> list[list[int]]:
    """Return frames as the bits of a port's payload."""
    layout = stream.payload.shape()
    return [[layout.const(item).as_bits() for item in frame] for frame in frames]


def claim(
    component: Any,
    frames: Sequence[Any],
    golden: Callable[[np.ndarray], Sequence[Any]],
    *,
    lanes: int = 1,
    items: Callable[[np.ndarray], Sequence[Any]] | None = None,
    **options: Any,
) -> Claim:
    """Return the claim that a component of one input and one output follows a golden model.

    Parameters
    ----------
    frames
        Codes of the input, by mark.
    golden
        Gives the items of the result, as dictionaries.
    items
        Makes items of the codes of an input; without it they are beats.
    """
    take = items or (lambda codes: beats(codes, lanes))
    return Claim(
        component=component,
        inputs={"i": payloads(component.i, [take(frame) for frame in frames])},
        outputs={"o": payloads(component.o, [golden(frame) for frame in frames])},
        **options,
    )
