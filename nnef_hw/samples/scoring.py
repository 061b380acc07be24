"""Scores of outputs against labels: accuracy or mean error, confusion, the worst samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents

__all__ = ["Score", "confusion", "labelled", "nats", "score", "worst"]

MOST_CLASSES = 100
"""Most classes that a confusion matrix is made of."""
WORST = 8
"""Samples that are named as the worst."""


@dataclass(frozen=True, slots=True)
class Score:
    """Quality of outputs: ``accuracy`` (0..1, integer labels) or ``mae`` (float labels)."""

    kind: str
    value: float


def labelled(graph: Graph, outputs: Array, labels: Array) -> tuple[Array, Array]:
    """Return the real outputs that labels are for, and these, for :func:`score`.

    Labels of a graph with states are of every step of ``outputs`` [N, T, ...], or of the last one
    of every sequence: their number tells.
    """
    if not graph.is_sequential:
        return outputs, labels
    extents = sample_extents(graph.tensor(graph.outputs[0]).shape)
    steps = outputs.reshape(-1, outputs.shape[outputs.ndim - len(extents) - 1], *extents)
    is_class = np.issubdtype(labels.dtype, np.integer)
    if labels.size == steps.size // (math.prod(extents) if is_class else 1):
        return steps.reshape(-1, *extents), labels.reshape(len(steps) * steps.shape[1], -1)
    return steps[:, -1], labels


def score(outputs: Array, labels: Array) -> Score:
    """Compare a network's real outputs [N, ...] with labels.

    Integer labels are classes: the greatest output along axis 1 counts, or a lone output rounded
    (an argmax layer). Float labels give the mean absolute error.
    """
    values = np.asarray(outputs, np.float64)
    if np.issubdtype(labels.dtype, np.integer):
        flat = values.reshape(len(values), -1)
        found = np.floor(flat[:, 0] + 0.5) if flat.shape[1] == 1 else flat.argmax(axis=1)
        if labels.size != len(flat):
            raise SampleError(f"labels have shape {list(labels.shape)}, not [{len(flat)}]")
        return Score("accuracy", float((found == labels.reshape(-1)).mean()))
    if labels.size != values.size:
        raise SampleError(f"labels have shape {list(labels.shape)}, not {list(values.shape)}")
    return Score("mae", float(np.abs(values.reshape(-1) - labels.reshape(-1)).mean()))


def nats(outputs: Array, labels: Array) -> float | None:
    """Return the mean of ``-log p`` of the labels' classes, which outputs are scores of.

    The probability p is that of a softmax over the scores: a model of language is measured so, by
    its next tokens. None of other labels, of those that are no class, of lone outputs,
    and of outputs that a softmax has made already: rows of these, none below 0, have the sum 1.
    """
    values = np.asarray(outputs, np.float64).reshape(len(outputs), -1)
    expected = labels.reshape(-1)
    if not np.issubdtype(labels.dtype, np.integer) or values.shape[1] < 2:
        return None
    if not 0 <= expected.min() <= expected.max() < values.shape[1]:
        return None
    if values.min() >= 0 and np.allclose(values.sum(axis=1), 1.0, atol=0.05):
        return None
    above = values - values.max(axis=1, keepdims=True)
    chosen = above[np.arange(len(expected)), expected]
    return float((np.log(np.exp(above).sum(axis=1)) - chosen).mean())


def confusion(outputs: Array, labels: Array) -> tuple[tuple[int, ...], ...] | None:
    """Return how often a label, row by row, was taken for each class; None for other labels."""
    flat = outputs.reshape(len(outputs), -1)
    expected = labels.reshape(-1)
    is_class = np.issubdtype(labels.dtype, np.integer) and flat.shape[1] > 1
    if not is_class or expected.min() < 0:
        return None
    classes = max(flat.shape[1], int(expected.max()) + 1)
    if classes > MOST_CLASSES:
        return None
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (expected, flat.argmax(axis=1)), 1)
    return tuple(tuple(int(count) for count in row) for row in table)


def worst(
    outputs: Array, labels: Array, positions: NDArray[np.intp]
) -> list[Mapping[str, int | float]]:
    """Return the samples that are judged worst, the worst first.

    Parameters
    ----------
    outputs, labels
        As for :func:`score`, a row for each sample.
    positions
        Numbers of the samples in their file.

    Returns
    -------
    list
        Of classes, ``sample``, ``label``, ``found`` and ``margin``: by how much the label's output
        exceeds all others (below 0: a wrong one is found). Of numbers, ``sample`` and ``error``,
        the mean absolute one. Empty if outputs are classes already, or not of each sample.
    """
    flat = np.asarray(outputs, np.float64).reshape(len(outputs), -1)
    if len(flat) != len(positions):
        return []
    if not np.issubdtype(labels.dtype, np.integer):
        errors = np.abs(flat - labels.reshape(flat.shape)).mean(axis=1)
        order = np.argsort(-errors, kind="stable")[:WORST]
        return [{"sample": int(positions[n]), "error": float(errors[n])} for n in order]
    if flat.shape[1] < 2:
        return []
    expected = labels.reshape(-1)
    rows = np.arange(len(flat))
    others = flat.copy()
    others[rows, expected] = -np.inf
    margins = flat[rows, expected] - others.max(axis=1)
    order = np.argsort(margins, kind="stable")[:WORST]
    return [
        {"sample": int(positions[n]), "label": int(expected[n]),
         "found": int(flat[n].argmax()), "margin": float(margins[n])}
        for n in order
    ]  # fmt: skip
