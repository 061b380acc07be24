"""Fourier transforms, by constant matrices, and what becomes of complex numbers."""

from __future__ import annotations

import math

import numpy as np

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import Lowering, lowers
from nnef_hw.frontend.tflite.lowering.values import Complex, Value

__all__ = ["lower_in_parts"]


@lowers("RFFT2D", newest=1)
def rfft2d(call: TfliteCall) -> Complex:
    """Transform rows [..., 1, N], cut or filled up with zeros: the first half of the bins."""
    x, lengths = call.plain(call.required(0)), call.integers(1, "the lengths")
    if x.rank < 2 or len(lengths) != 2 or min(lengths) < 1:
        raise call.error(f"transforms of lengths {lengths} do not fit the shape {list(x.shape)}")
    *outer, rows, count = x.shape
    height, points = lengths
    if height > 1:
        raise call.unsupported(
            f"it transforms images of {height} rows",
            "transform rows, one by one, as tf.signal.rfft does",
        )
    if rows > 1:
        axis = x.rank - 2
        x = call.emit("slice", x, axes=[axis], begin=[0], end=[1], stride=[1])
    used = min(count, points)
    if used < count:
        x = call.emit("slice", x, axes=[x.rank - 1], begin=[0], end=[used], stride=[1])
    bins = points // 2 + 1
    angles = 2 * np.pi * np.outer(np.arange(bins), np.arange(used)) / points
    flat = call.reshaped(x, (math.prod(outer), used))
    return Complex.of(
        *(
            call.reshaped(call.emit("linear", flat, call.constant(matrix), 0.0), (*outer, 1, bins))
            for matrix in (np.cos(angles), -np.sin(angles))
        )
    )


@lowers("COMPLEX_ABS", newest=1)
def complex_abs(call: TfliteCall) -> Value:
    real, imaginary = (call.emit("sqr", part) for part in call.complex(0).parts)
    return call.emit("sqrt", call.emit("add", real, imaginary))


@lowers("REAL", newest=1)
def real_part(call: TfliteCall) -> Value:
    return call.complex(0).parts[0]


@lowers("IMAG", newest=1)
def imaginary_part(call: TfliteCall) -> Value:
    return call.complex(0).parts[1]


def lower_in_parts(call: TfliteCall, lowering: Lowering) -> Complex:
    """Lower an operator that moves complex numbers: their parts are moved alike."""
    parts = [lowering(call.with_input(part)) for part in call.complex(0).parts]
    real, imaginary = (part for part in parts if isinstance(part, Value))
    return Complex.of(real, imaginary)
