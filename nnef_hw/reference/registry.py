"""The float reference's table of operators; modules of this package fill it on import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Node

__all__ = ["Array", "Call", "Operator", "evaluate", "known_operators", "operator"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation: the node, its arguments and the shapes its results have at batch 1."""

    node: Node
    args: tuple[Array, ...]
    shapes: tuple[tuple[int, ...], ...]
    batch: int = 1

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the node."""
        return self.node.attrs.get(name, default)

    @property
    def shape(self) -> tuple[int, ...]:
        """The first result's shape at this call's batch extent."""
        shape = self.shapes[0]
        return (shape[0] * self.batch, *shape[1:]) if shape else shape


Operator = Callable[[Call], Array | Sequence[Array]]

_OPERATORS: dict[str, Operator] = {}


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register a function as the float reference of NNEF operators."""

    def register(function: Operator) -> Operator:
        for name in names:
            assert name not in _OPERATORS, name
            _OPERATORS[name] = function
        return function

    return register


def known_operators() -> frozenset[str]:
    """Return the names of all operators that have a function."""
    return frozenset(_OPERATORS)


def evaluate(call: Call) -> tuple[Array, ...]:
    """Compute a node's results.

    Raises
    ------
    UnsupportedError
        If the float reference does not know the operator.
    """
    function = _OPERATORS.get(call.node.op)
    if function is None:
        raise UnsupportedError(
            f"operator {call.node.op!r} of {call.node.name!r} cannot be evaluated",
            remedy="replace it by operators of docs/operators.md",
            location=call.node.location,
        )
    with np.errstate(all="ignore"):
        results = function(call)
    return (results,) if isinstance(results, np.ndarray) else tuple(results)
