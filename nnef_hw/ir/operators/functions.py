"""Functions of one activation."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS"]

_FUNCTION = frozenset({Trait.TABLE, Trait.ELEMENTWISE, Trait.RAISES})
_TABLE = "a table of 256 entries"
_CLIPPED = "free behind conv, linear, add and sub, else a table"


def _smooth(name: str, *attributes: str, hardware: str = _TABLE) -> CanonicalOperator:
    return CanonicalOperator(
        name, _FUNCTION, attributes=frozenset(attributes), requant=None, hardware=hardware
    )


def _of_steps(name: str, *attributes: str) -> CanonicalOperator:
    return CanonicalOperator(
        name,
        _FUNCTION | {Trait.EXACT_TABLE},
        attributes=frozenset(attributes),
        requant=None,
        hardware=f"{_TABLE}, for at most 8 bits",
    )


_RELU = CanonicalOperator(
    "relu",
    _FUNCTION | {Trait.LETS_SCALES_THROUGH},
    attributes=frozenset(),
    requant=None,
    hardware=_CLIPPED,
)
_SMOOTH = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "elu", "exp",
    "gelu", "hard_sigmoid", "hard_swish", "log", "log2", "neg", "rcp", "requantize",
    "rsqr", "rsqrt", "selu", "sigmoid", "silu", "sin", "sinh", "softplus", "sqr", "sqrt", "tan",
    "tanh",
)  # fmt: skip

OPERATORS = (
    _RELU,
    _smooth("clamp", "a", "b", hardware=_CLIPPED),
    _smooth("leaky_relu", "alpha"),
    *map(_smooth, _SMOOTH),
    *map(_of_steps, ("ceil", "floor", "round", "sign")),
    _of_steps("rescale", "factor", "offset"),
    # what other operators compute of one number: their ``body``, a graph with one input and output
    _smooth("pointwise", "body"),
    _of_steps("stepwise", "body"),
)
