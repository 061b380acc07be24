"""Arguments of PULP's integer operators: constants and attributes that are whole numbers."""

from __future__ import annotations

import math

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.onnx.file.model import Constant
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall

__all__ = ["integers", "levels", "number"]

_MAX_LEVELS = 1 << 16


def integers(call: OnnxCall, index: int, what: str) -> Array:
    """Return a constant argument that must be whole numbers, as float64."""
    data = call.constant_value(index, what)
    if data is None:
        raise call.error(f"input {index}, {what}, is missing")
    numbers = data.astype(np.float64)
    if not np.isfinite(numbers).all() or (numbers != np.rint(numbers)).any():
        raise call.error(f"{what} has numbers that are no integers")
    return numbers


def number(call: OnnxCall, name: str) -> float:
    """Return an attribute that must be a whole number, or a tensor of one."""
    value: Constant | int = call.attr(name)
    if isinstance(value, int):
        return float(value)
    if value.data.size != 1:
        raise call.error(f"{name} has {value.data.size} elements, not 1")
    found = float(value.data.reshape(-1)[0])
    if not math.isfinite(found) or found != round(found):
        raise call.error(f"{name} is {found:g}, no integer")
    return found


def levels(call: OnnxCall, name: str) -> int:
    """Return an attribute that must be a number of levels: a power of two."""
    found = number(call, name)
    if found not in {float(1 << bits) for bits in range(1, 17)}:
        raise call.error(f"there are {found:g} levels", f"use a power of 2 up to {_MAX_LEVELS}")
    return int(found)
