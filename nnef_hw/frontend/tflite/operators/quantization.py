"""From real numbers to codes, from codes to others, and back."""

from __future__ import annotations

import math
from dataclasses import replace

from nnef_hw.frontend.tflite.file.model import FLOAT32
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.ir import Quantization
from nnef_hw.reference.real.quantize import code_range

__all__: list[str] = []


@lowers("QUANTIZE", newest=6)
def quantize(call: TfliteCall) -> Value:
    """Return the same numbers; the result's format is that of its tensor."""
    quant = call.target().steps
    if quant is None:
        raise call.error(f"its result {call.target().name!r} has no scale")
    _check_products(call, quant)
    value = call.emit("copy", call.required(0))
    return replace(value, tensor=call.builder.add(replace(value.tensor, quant=quant)))


def _check_products(call: TfliteCall, target: Quantization) -> None:
    """Refuse codes that do not fit 32 bits where the kernel has shifted them to the left."""
    source = call.source(0).steps
    if source is None:
        return
    lo, hi = code_range(source)
    zero_point = int(source.args["zero_point"])
    factor = float(source.args["scale"]) / float(target.args["scale"])
    most = max(hi - zero_point + 1, zero_point - lo)
    if most << max(math.frexp(factor)[1], 0) > 1 << 31:
        raise call.unsupported(
            f"its scales multiply codes of {call.source(0).kind} by {factor:g}: its kernel exceeds "
            "32 bits, which C leaves undefined",
            "give the result a larger scale",
        )


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
