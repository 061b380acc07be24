"""Samples of a tensor in an array: one axis in front, which a batch extent of 1 stands for.

Samples of a graph with states are sequences, with two axes in front: of the sequences, each of
which begins with the initial states, and of their steps. A lone sequence may lack the first.
"""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.arrays import Array

__all__ = [
    "join_batch",
    "join_steps",
    "sample_extents",
    "samples_shape",
    "sequences_shape",
    "split_samples",
    "split_sequences",
]


def split_samples(x: Array, shape: tuple[int, ...]) -> Array | None:
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


def split_sequences(x: Array, shape: tuple[int, ...]) -> Array | None:
    """Return sequences [N, T, *shape] of a tensor of static ``shape``; None if they do not fit.

    Taken is what :func:`split_samples` takes, as the steps of one sequence, and the same with an
    axis of sequences in front.
    """
    steps = split_samples(x, shape)
    if steps is not None:
        return steps[np.newaxis]
    if x.ndim < 2:
        return None
    steps = split_samples(x.reshape(-1, *x.shape[2:]), shape)
    if steps is None or len(steps) != x.shape[0] * x.shape[1]:
        return None
    return steps.reshape(*x.shape[:2], *shape)


def sample_extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents of one stored sample: a batch extent of 1 is none of them."""
    return shape[1:] if shape[:1] == (1,) else shape


def join_batch(x: Array, shape: tuple[int, ...]) -> Array:
    """Return samples [N, *shape] as [N, ...] if the batch extent is 1, else as they are."""
    return x.reshape(len(x), *sample_extents(shape))


def join_steps(x: Array, shape: tuple[int, ...]) -> Array:
    """Return sequences [N, T, *shape] as [N, T, ...] if the batch extent is 1, else as they are."""
    return x.reshape(*x.shape[:2], *sample_extents(shape))


def samples_shape(shape: tuple[int, ...]) -> str:
    """Return the shape that samples of a tensor must have, as users read it."""
    return f"[{', '.join(['N', *map(str, sample_extents(shape))])}]"


def sequences_shape(shape: tuple[int, ...]) -> str:
    """Return the shape that sequences of a tensor must have, as users read it."""
    steps = ", ".join(["T", *map(str, sample_extents(shape))])
    return f"[N, {steps}], or [{steps}] of one sequence"
