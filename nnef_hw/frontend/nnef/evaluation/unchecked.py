"""Conversion of operands in expressions that were not type-checked."""

from __future__ import annotations

from typing import Any

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.evaluation.evaluation import Evaluation
from nnef_hw.ir import Tensor

__all__ = ["as_index", "as_operand", "as_sequence"]

_EQUALITY = {"==", "!="}


def as_operand(evaluator: Evaluation, value: object, operator: str, location: Location) -> object:
    """Return an operand: a number, or a tensor, which an array stands for.

    Raises
    ------
    ModelError
        If it is a string or a tuple; strings can be compared.
    """
    if isinstance(value, list):
        return evaluator.tensor(value, "operand", location)
    if isinstance(value, tuple) or (isinstance(value, str) and operator not in _EQUALITY):
        raise ModelError(
            f"{_shown(value)} cannot be an operand of {operator!r}",
            remedy="operands are tensors and numbers",
            location=location,
        )
    return value


def as_sequence(value: Any, location: Location) -> Any:
    """Return an array, a tuple or a string.

    Raises
    ------
    ModelError
        If it is something else.
    """
    if isinstance(value, list | tuple | str):
        return value
    raise ModelError(
        f"{_shown(value)} is not an array",
        remedy="it must be an array, a tuple, a string or a constant tensor",
        location=location,
    )


def as_index(value: object, location: Location) -> int:
    """Return an integer.

    Raises
    ------
    ModelError
        If it is something else.
    """
    if isinstance(value, int):
        return value
    raise ModelError(
        f"{_shown(value)} is not an index", remedy="an index is an integer", location=location
    )


def _shown(value: object) -> str:
    return f"the tensor {value.name!r}" if isinstance(value, Tensor) else repr(value)
