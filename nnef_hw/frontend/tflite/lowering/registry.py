"""The table of TensorFlow Lite operators: one function lowers one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.values import Value

__all__ = ["Definition", "Lowering", "add_lowering", "definition_of", "known_operators", "lowers"]

Lowering = Callable[[TfliteCall], Value | Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Definition:
    """Facts about an operator.

    Parameters
    ----------
    lowering
        The function that lowers it.
    newest
        The newest version of it, as TensorFlow Lite counts them, whose features are read, or
        refused for a reason of their own, such as types of tensors.
    shape_argument
        Number of the argument that says the shape of its result; None if there is none.
    moves
        Whether it moves elements of its first argument, whatever these are.
    """

    lowering: Lowering
    newest: int
    shape_argument: int | None = None
    moves: bool = False


_DEFINITIONS: dict[str, Definition] = {}


def lowers(
    *ops: str, newest: int, shape_argument: int | None = None, moves: bool = False
) -> Callable[[Any], Any]:
    """Register a function for operators, see :class:`Definition`."""

    def register(function: Lowering) -> Lowering:
        for op in ops:
            add_lowering(op, function, newest, shape_argument, moves=moves)
        return function

    return register


def add_lowering(
    op: str,
    function: Lowering,
    newest: int,
    shape_argument: int | None = None,
    *,
    moves: bool = False,
) -> None:
    """Register a function as :func:`lowers` does."""
    assert op not in _DEFINITIONS, op
    _DEFINITIONS[op] = Definition(function, newest, shape_argument, moves)


def definition_of(op: str) -> Definition | None:
    """Return the facts about an operator; None if it is not supported."""
    return _DEFINITIONS.get(op)


def known_operators() -> Mapping[str, Definition]:
    """Return the whole table, by operator."""
    return _DEFINITIONS
