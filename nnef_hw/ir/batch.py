"""How samples of a tensor are stored: one axis in front, which a batch extent of 1 stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["join_batch", "sample_extents", "samples_shape", "split_samples"]


def split_samples(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Return the samples [N, *shape] of a tensor of static ``shape``; None if they do not fit.

    Taken are [N, *shape]; [N, ...] if the tensor's batch extent is 1; and one sample alone. The
    rank decides.
    """
    if x.shape[1:] == shape and x.ndim > len(shape):
        return x
    if x.shape == shape:
        return x[np.newaxis]
    if shape[:1] == (1,) and x.ndim == len(shape) and x.shape[1:] == shape[1:]:
        return x[:, np.newaxis]
    return None


def sample_extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents of one stored sample: a batch extent of 1 is none of them."""
    return shape[1:] if shape[:1] == (1,) else shape


def join_batch(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return samples [N, *shape] as [N, ...] if the batch extent is 1, else as they are."""
    return x.reshape(len(x), *sample_extents(shape))


def samples_shape(shape: tuple[int, ...]) -> str:
    """Return what users read: the shape that samples of a tensor must have."""
    return f"[{', '.join(['N', *map(str, sample_extents(shape))])}]"
