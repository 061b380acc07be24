"""Float reference: element-wise operators beyond the standard."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nnef_hw.reference.real.elementwise import align
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always

__all__: list[str] = []

_BINARY: dict[str, Callable[[Array, Array], object]] = {
    "xor": np.logical_xor,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}
_ERF = np.vectorize(math.erf, otypes=[np.float64])


@operator("erf", batch=always)
def erf(call: Evaluation) -> Array:
    return np.asarray(_ERF(call.args[0]))


@operator("round_even", batch=always)
def round_even(call: Evaluation) -> Array:
    return np.asarray(np.rint(call.args[0]))


@operator("is_nan", batch=always)
def is_nan(call: Evaluation) -> Array:
    return np.asarray(np.isnan(call.args[0]))


@operator("is_inf", batch=always)
def is_inf(call: Evaluation) -> Array:
    x = call.args[0]
    above = call.attr("positive", True) & np.isposinf(x)
    below = call.attr("negative", True) & np.isneginf(x)
    return np.asarray(above | below)


@operator("bit_not", batch=always)
def bit_not(call: Evaluation) -> Array:
    return np.asarray(np.invert(call.args[0]))


@operator(*_BINARY, batch=always)
def binary(call: Evaluation) -> Array:
    return np.asarray(_BINARY[call.node.op](*align(*call.args)))


@operator("mod", batch=always)
def mod(call: Evaluation) -> Array:
    """Remainder with the divisor's sign, or with the dividend's if ``fmod``."""
    function = np.fmod if call.attr("fmod", False) else np.mod
    return np.asarray(function(*align(*call.args)))
