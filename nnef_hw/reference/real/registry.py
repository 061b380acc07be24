"""The float reference's table of operators; modules of this package fill it on import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.ir import Node
from nnef_hw.reference.running.batch_rules import BatchRule, never

__all__ = [
    "NUMPY_DTYPES", "Array", "Evaluation", "Operator", "batch_rule", "evaluate", "known_operators",
    "operator",
]  # fmt: skip


NUMPY_DTYPES: dict[str, type] = {"scalar": np.float64, "integer": np.int64, "logical": np.bool_}
"""What the reference computes NNEF's data-types in."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One invocation: the node, its arguments and the shapes its results have at batch 1.

    ``dtypes`` are those of the results; without them they are what NumPy makes of the arguments.
    """

    node: Node
    args: tuple[Array, ...]
    shapes: tuple[tuple[int, ...], ...]
    batch: int = 1
    dtypes: tuple[str, ...] = ()

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the node."""
        return self.node.attrs.get(name, default)

    @property
    def shape(self) -> tuple[int, ...]:
        """The first result's shape at this call's batch extent."""
        shape = self.shapes[0]
        return (shape[0] * self.batch, *shape[1:]) if shape else shape

    def indices(self, values: Array, extent: int) -> Array:
        """Return indices into an axis of this extent as int64; negative ones count from its end.

        Raises
        ------
        ModelError
            If one is outside.
        """
        indices = values.astype(np.int64)
        outside = (indices < -extent) | (indices >= extent)
        if outside.any():
            raise ModelError(
                f"{self.node.op} {self.node.name!r}: the index {indices[outside].flat[0]} is "
                f"outside of the {extent} elements it chooses from",
                location=self.node.location,
            )
        return np.where(indices < 0, indices + extent, indices)


Operator = Callable[[Evaluation], Array | Sequence[Array]]

_OPERATORS: dict[str, Operator] = {}
_BATCH_RULES: dict[str, BatchRule] = {}


def operator(*names: str, batch: BatchRule) -> Callable[[Operator], Operator]:
    """Register a function as the float reference of NNEF operators.

    Parameters
    ----------
    batch
        When axis 0 of its tensors may hold samples.
    """

    def register(function: Operator) -> Operator:
        for name in names:
            assert name not in _OPERATORS, name
            _OPERATORS[name] = function
            _BATCH_RULES[name] = batch
        return function

    return register


def known_operators() -> frozenset[str]:
    """Return the names of all operators that have a function."""
    return frozenset(_OPERATORS)


def batch_rule(name: str) -> BatchRule:
    """Return when axis 0 of an operator's tensors may hold samples; never without a function."""
    return _BATCH_RULES.get(name, never)


def evaluate(call: Evaluation) -> tuple[Array, ...]:
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
        found = function(call)
        # NumPy gives rank-0 results of some functions as numbers
        results = (found,) if isinstance(found, np.ndarray | np.generic) else tuple(found)
        if not call.dtypes:
            return results
        return tuple(
            np.asarray(result).astype(NUMPY_DTYPES[dtype], copy=False)
            for result, dtype in zip(results, call.dtypes, strict=True)
        )
