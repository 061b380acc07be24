"""Real functions of one number: what the float reference computes and the tables are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.ir import Node, Trait
from nnef_hw.ir.operators import canonical_operators
from nnef_hw.reference.real.program import RealProgram

__all__ = ["UNARY", "activated", "unary_function"]

FloatArray = NDArray[np.float64]
Attrs = AttributeMap


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def _elu(x: FloatArray, a: Attrs) -> FloatArray:
    return np.where(x < 0, a.get("alpha", 1.0) * np.expm1(np.minimum(x, 0)), x)


def _selu(x: FloatArray, a: Attrs) -> FloatArray:
    inner = _elu(x, {"alpha": a.get("alpha", 1.67326319)})
    return np.asarray(a.get("lambda", 1.05070102) * inner)


def _hard_sigmoid(x: FloatArray, a: Attrs) -> FloatArray:
    return np.asarray(np.clip(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0.0, 1.0))


def _clamp(x: FloatArray, a: Attrs) -> FloatArray:
    return np.asarray(np.maximum(np.minimum(x, a["b"]), a["a"]))


def _composed(x: FloatArray, a: Attrs) -> FloatArray:
    """Compute the graph of rank-0 tensors that is the function's body, for every element."""
    body = a["body"]
    result: FloatArray = RealProgram(body, body.inputs).run({body.inputs[0]: x})[body.outputs[0]]
    return result


UNARY: dict[str, Callable[[FloatArray, Attrs], FloatArray]] = {
    "abs": lambda x, a: np.abs(x),
    "acos": lambda x, a: np.arccos(x),
    "acosh": lambda x, a: np.arccosh(x),
    "asin": lambda x, a: np.arcsin(x),
    "asinh": lambda x, a: np.arcsinh(x),
    "atan": lambda x, a: np.arctan(x),
    "atanh": lambda x, a: np.arctanh(x),
    "ceil": lambda x, a: np.ceil(x),
    "clamp": _clamp,
    "cos": lambda x, a: np.cos(x),
    "cosh": lambda x, a: np.cosh(x),
    "elu": _elu,
    "exp": lambda x, a: np.exp(x),
    "floor": lambda x, a: np.floor(x),
    "gelu": lambda x, a: x * _sigmoid(1.702 * x),
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": lambda x, a: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "leaky_relu": lambda x, a: np.where(x < 0, a["alpha"] * x, x),
    "log": lambda x, a: np.log(x),
    "log2": lambda x, a: np.log2(x),
    "neg": lambda x, a: -x,
    "pointwise": _composed,
    "rcp": lambda x, a: 1.0 / x,
    "relu": lambda x, a: np.maximum(x, 0.0),
    "requantize": lambda x, a: x,
    "rescale": lambda x, a: np.floor(a["factor"] * x + a.get("offset", 0.5)),
    "round": lambda x, a: np.floor(x + 0.5),
    "rsqr": lambda x, a: 1.0 / (x * x),
    "rsqrt": lambda x, a: 1.0 / np.sqrt(x),
    "selu": _selu,
    "sigmoid": lambda x, a: _sigmoid(x),
    "sign": lambda x, a: np.sign(x),
    "silu": lambda x, a: x * _sigmoid(x),
    "sin": lambda x, a: np.sin(x),
    "sinh": lambda x, a: np.sinh(x),
    "softplus": lambda x, a: np.logaddexp(x, 0.0),
    "sqr": lambda x, a: x * x,
    "sqrt": lambda x, a: np.sqrt(x),
    "stepwise": _composed,
    "tan": lambda x, a: np.tan(x),
    "tanh": lambda x, a: np.tanh(x),
}
assert UNARY.keys() == {operator.name for operator in canonical_operators(Trait.TABLE)}


def activated(y: FloatArray, attrs: Attrs) -> FloatArray:
    """Apply the function that an operator of sums has as its ``activation``, if any."""
    name = attrs.get("activation")
    return y if name is None else UNARY[name](y, attrs)


def unary_function(node: Node) -> Callable[[FloatArray], FloatArray]:
    """Return the real function of a canonical table operator, its attributes bound."""
    function = UNARY[node.op]
    return lambda x: function(x, node.attrs)
