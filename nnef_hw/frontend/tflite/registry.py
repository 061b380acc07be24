"""The table of TensorFlow Lite operators: one function lowers one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nnef_hw.frontend.tflite.calls import TfliteCall
from nnef_hw.frontend.tflite.values import Value

__all__ = ["Lowering", "add_lowering", "known_lowerings", "lowering_of", "lowers"]

Lowering = Callable[[TfliteCall], Value | Sequence[Value]]

_LOWERINGS: dict[str, Lowering] = {}


def lowers(*ops: str) -> Callable[[Any], Any]:
    """Register a function for operators."""

    def register(function: Lowering) -> Lowering:
        for op in ops:
            add_lowering(op, function)
        return function

    return register


def add_lowering(op: str, function: Lowering) -> None:
    """Register a function as :func:`lowers` does."""
    assert op not in _LOWERINGS, op
    _LOWERINGS[op] = function


def lowering_of(op: str) -> Lowering | None:
    """Return the function for an operator; None if it is not supported."""
    return _LOWERINGS.get(op)


def known_lowerings() -> Mapping[str, Lowering]:
    """Return the whole table, by operator."""
    return _LOWERINGS
