"""Sweeps over several things, of which the usual run takes a part that covers each of them."""

from itertools import product

import pytest

__all__ = ["alternate", "covering", "few"]


def covering(*axes):
    """Return pytest's parameters of every combination of one value of each axis.

    As many as the longest axis has values are for every run: the n-th of each axis, which begins
    anew where it ends, so that every value of every axis occurs. Axes of the same length are out
    of step from their second pass on. The others are nightly.

    Parameters
    ----------
    axes
        Values of a parameter each, or tuples of the values of several parameters.
    """
    lengths = [len(axis) for axis in axes]
    shifts = [lengths[:place].count(length) for place, length in enumerate(lengths)]
    usual = {
        tuple((n + n // m * shift) % m for m, shift in zip(lengths, shifts, strict=True))
        for n in range(max(lengths))
    }
    rows = []
    for places in product(*(range(len(axis)) for axis in axes)):
        values = []
        for axis, place in zip(axes, places, strict=True):
            value = axis[place]
            values += value if isinstance(value, tuple) else [value]
        rows.append(pytest.param(*values, marks=[] if places in usual else pytest.mark.nightly))
    return rows


def alternate(values, start=0):
    """Return pytest's parameters of which every second one from ``start`` on is for every run.

    Parameters
    ----------
    values
        Values of a parameter, or tuples of the values of several parameters; the others of them
        are nightly.
    start
        0 or 1.
    """
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    nightly = pytest.mark.nightly
    return [pytest.param(*row, marks=[nightly] * ((n - start) % 2)) for n, row in enumerate(rows)]


def few(values, usual):
    """Return pytest's parameters of which those in ``usual`` are for every run.

    Parameters
    ----------
    values
        Values of a parameter, or tuples of the values of several parameters; those that are not
        in ``usual`` are nightly.
    usual
        Some of them.
    """
    usual = list(usual)
    assert all(value in values for value in usual), usual
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[] if value in usual else pytest.mark.nightly,
        )
        for value in values
    ]
