"""Integer operators of PULP's exporters, quantlib and Deeploy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.frontend.onnx.file.declarations import PULP
from nnef_hw.frontend.onnx.file.model import Constant
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.lowering.requantization import requantized

__all__: list[str] = []

_MAX_LEVELS = 1 << 16


@lowers("RequantShift", 1, domain=PULP)
def requant_shift(call: OnnxCall) -> Value:
    """``clip(floor((x * mul + add) / div + 1/2))`` to a number of levels, from 0 or around 0.

    Exact halves go up, as quantlib's module and the kernels of Deeploy round them.
    """
    x, mul, add = call.required(0), _integers(call, 1), _integers(call, 2)
    old, new = call.attr("n_levels"), call.attr("n_levels_out")
    if (old is None) == (new is None):
        raise call.error(
            "exactly one of the attributes 'n_levels' and 'n_levels_out' must be given"
        )
    div, signed = _number(call, "div"), _number(call, "signed")
    levels = _number(call, "n_levels" if new is None else "n_levels_out")
    if div < 1 or signed not in {0, 1}:
        raise call.error(f"div is {div:g} and signed is {signed:g}", "use 1 or more, and 0 or 1")
    if levels not in {float(1 << bits) for bits in range(1, 17)}:
        raise call.error(f"there are {levels:g} levels", f"use a power of 2 up to {_MAX_LEVELS}")
    lowest = -int(levels) // 2 if signed else 0
    limits = (lowest, lowest + int(levels) - 1)
    return requantized(call, x, mul, add + div // 2, div, limits)


def _integers(call: OnnxCall, index: int) -> NDArray[Any]:
    what = ("the multiplier", "the addend")[index - 1]
    data = call.constant_value(index, what)
    if data is None:
        raise call.error(f"input {index}, {what}, is missing")
    numbers = data.astype(np.float64)
    if not np.isfinite(numbers).all() or (numbers != np.rint(numbers)).any():
        raise call.error(f"{what} has numbers that are no integers")
    return numbers


def _number(call: OnnxCall, name: str) -> float:
    value: Constant = call.attr(name)
    if value.data.size != 1:
        raise call.error(f"{name} has {value.data.size} elements, not 1")
    number = float(value.data.reshape(-1)[0])
    if not np.isfinite(number) or number != np.rint(number):
        raise call.error(f"{name} is {number:g}, no integer")
    return number
