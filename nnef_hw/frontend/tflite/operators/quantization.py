"""From real numbers to codes, from codes to others, and back."""

from __future__ import annotations

from nnef_hw.frontend.tflite.calls import TfliteCall
from nnef_hw.frontend.tflite.model import FLOAT32
from nnef_hw.frontend.tflite.registry import lowers
from nnef_hw.frontend.tflite.values import Value

__all__: list[str] = []


@lowers("QUANTIZE", newest=6)
def quantize(call: TfliteCall) -> Value:
    """Return the same numbers; the result's format is that of its tensor."""
    if not call.target().is_quantized:
        raise call.error(f"its result {call.target().name!r} has no scale")
    return call.emit("copy", call.required(0))


@lowers("DEQUANTIZE", newest=9)
def dequantize(call: TfliteCall) -> Value:
    """Return the real numbers, which the graph has; floats of 16 bits are such already."""
    x = call.required(0)
    if x.tensor.dtype != "scalar":
        raise call.error(f"its input {call.source(0).name!r} has no scale")
    return Value(x.tensor, FLOAT32, x.is_image)


@lowers("FAKE_QUANT", newest=2)
def fake_quant(call: TfliteCall) -> Value:
    """Leave out what only training needs: the limits of a range."""
    lo, hi = float(call.option("Min")), float(call.option("Max"))
    if not lo < hi:
        raise call.error(f"its range is {lo:g}..{hi:g}")
    return call.emit("clamp", call.required(0), lo, hi)
