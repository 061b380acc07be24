"""Float reference: element-wise operators of the standard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnef_hw.reference.real.functions import UNARY, activated
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always

__all__ = ["align"]


def align(*arrays: Array) -> list[Array]:
    """Append axes of extent 1 until all ranks agree: NNEF broadcasts from the left."""
    rank = max(x.ndim for x in arrays)
    return [x.reshape(x.shape + (1,) * (rank - x.ndim)) for x in arrays]


def _are_integers(*arrays: Array) -> bool:
    return all(x.dtype.kind in "iu" for x in arrays)


def _divide(a: Array, b: Array) -> Array:
    """Quotient; of integers rounded towards zero, 0 if the divisor is 0."""
    if not _are_integers(a, b):
        return np.asarray(np.divide(a, b))
    quotient = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient))


def _power(a: Array, b: Array) -> Array:
    """Power; of integers with a negative exponent rounded towards zero."""
    if not _are_integers(a, b) or not (b < 0).any():
        return np.asarray(np.power(a, b))
    return np.where(
        b < 0, np.trunc(np.power(a, b, dtype=np.float64)), np.power(a, np.maximum(b, 0))
    )


_ARITHMETIC: dict[str, Callable[[Array, Array], object]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _divide,
    "quotient": np.divide,
    "pow": _power,
}
_COMPARISON: dict[str, Callable[[Array, Array], object]] = {
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "gt": np.greater,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


@operator(*sorted(UNARY.keys() - {"clamp"}), batch=always)
def unary(call: Evaluation) -> Array:
    return np.asarray(UNARY[call.node.op](_number(call.args[0]), call.node.attrs))


def _number(x: Array) -> Array:
    """Take truth values for 0 and 1, which NumPy does not do everywhere."""
    return x.astype(np.int64) if x.dtype.kind == "b" else x


@operator(*_ARITHMETIC, batch=always)
def arithmetic(call: Evaluation) -> Array:
    y = np.asarray(_ARITHMETIC[call.node.op](*align(*map(_number, call.args))))
    return activated(y, call.node.attrs)


@operator(*_COMPARISON, batch=always)
def comparison(call: Evaluation) -> Array:
    return np.asarray(_COMPARISON[call.node.op](*align(*call.args)))


@operator("clamp", batch=always)
def clamp(call: Evaluation) -> Array:
    if len(call.args) == 1:
        return np.asarray(UNARY["clamp"](call.args[0], call.node.attrs))
    x, lo, hi = align(*call.args)
    return np.asarray(np.maximum(np.minimum(x, hi), lo))


@operator("select", batch=always)
def select(call: Evaluation) -> Array:
    return np.where(*align(*call.args))


@operator("not", batch=always)
def logical_not(call: Evaluation) -> Array:
    return np.asarray(np.logical_not(call.args[0]))


@operator("copy", "dropout", "cast", batch=always)
def copy(call: Evaluation) -> Array:
    """Return the operand; :func:`~nnef_hw.reference.real.registry.evaluate` converts a cast's."""
    return call.args[0]


@operator("copy_n", batch=always)
def copy_n(call: Evaluation) -> list[Array]:
    return [call.args[0]] * call.attr("times")


@operator("add_n", batch=always)
def add_n(call: Evaluation) -> Array:
    """Sum; 0 of no operands."""
    return np.asarray(sum(align(*call.args))) if call.args else np.zeros(())


@operator("prelu", batch=always)
def prelu(call: Evaluation) -> Array:
    x, alpha = align(*call.args)
    return np.where(x < 0, alpha * x, x)
