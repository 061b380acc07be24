"""Integer functions of PULP's exporters, quantlib and Deeploy: softmax, normalization, tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.integer_functions import (
    SCALE_BITS,
    integer_exponentials,
    shift_exponentials,
)
from nnef_hw.frontend.onnx.file.declarations import PULP
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.lowering.requantization import EXACT, as_integers
from nnef_hw.frontend.onnx.quantization.pulp_arguments import integers, levels, number

__all__: list[str] = []

_ITA_LEVELS = 256
_MOST_EXPONENTIAL = (1 << 16) - 1
_MOST_LEVELS = 256


@lowers("iGELU", 1, domain=PULP)
def i_gelu(call: OnnxCall) -> Value:
    """``x * floor((one + sign(x) * (one - (min(|x|, -b) + b)**2)) / 2)``, as ``GELU_s8_s32``."""
    x, b, one = call.required(0), call.attr("b"), call.attr("one")
    if b > 0 or one < 0:
        raise call.error(f"b is {b} and one is {one}", "b must be 0 or less, one 0 or more")
    beside = call.emit("add", call.emit("min", call.emit("abs", x), float(-b)), float(b))
    bell = call.emit("sub", call.constant(float(one), EXACT), call.emit("sqr", beside))
    curve = call.emit("mul", call.emit("sign", x), bell)
    half = call.emit("mul", call.emit("add", curve, call.constant(float(one), EXACT)), 0.5)
    return call.emit("mul", x, call.emit("floor", half))


@lowers("iHardswish", 1, domain=PULP)
def i_hardswish(call: OnnxCall) -> Value:
    """``x * clip(x + three, 0, six) * one_over_six``, as ``iHardswish_s8_s32``."""
    x = call.required(0)
    three, six, sixth = (float(call.attr(name)) for name in ("three", "six", "one_over_six"))
    if six < 0:
        raise call.error(f"six is {six:g}", "it must not be negative")
    moved = call.emit("add", x, call.constant(three, EXACT))
    kept = call.emit("clamp", moved, 0.0, call.constant(six, EXACT))
    return call.emit("mul", x, call.emit("mul", kept, call.constant(sixth, EXACT)))


@lowers("ITAMax", 1, domain=PULP)
def ita_max(call: OnnxCall) -> Value:
    """Softmax along the last axis with halves of 256 for exponentials, as ``ITAMax_s8``."""
    count = levels(call, "n_levels")
    if count != _ITA_LEVELS:
        raise call.unsupported(
            f"there are {count} levels; ITA shifts by steps of a number of {_ITA_LEVELS}",
            f"use n_levels = {_ITA_LEVELS}",
        )
    return _softmax(call, shift_exponentials(), count)


@lowers("ITAPartialMax", 1, domain=PULP)
def ita_partial_max(call: OnnxCall) -> Value:
    """Refuse a softmax whose sum is shifted whenever a group of codes has a greater one."""
    raise call.unsupported(
        f"sums of groups of {call.attr('group_width')} codes, which lose bits on the way, are not "
        "computed",
        "export it with ITAMax, the same softmax with one sum",
    )


@lowers("iSoftmax", 1, domain=PULP)
def i_softmax(call: OnnxCall) -> Value:
    """Softmax along the last axis with a parabola for exponentials, as ``PACTIntegerSoftmax``."""
    count = levels(call, "n_levels")
    log2, a, b, c = (int(number(call, name)) for name in ("log2", "coeffA", "coeffB", "coeffC"))
    if count > _MOST_LEVELS:
        raise call.unsupported(f"there are {count} levels", f"use at most {_MOST_LEVELS}")
    if log2 < 1:
        raise call.error(f"log2 is {log2}", "it must be 1 or more")
    found = integer_exponentials(log2, a, b, c)
    if not (found[0] >= 1 and found.min() >= 0 and found.max() <= _MOST_EXPONENTIAL):
        raise call.unsupported(
            f"its exponentials lie in {found.min()}..{found.max()}, of 0 it is {found[0]}: they "
            "need another number of bits than 16",
            "give the scores coarser steps, so that its coefficients are smaller",
        )
    return _softmax(call, found, count)


@lowers("iLayerNorm", 1, domain=PULP)
def i_layer_norm(call: OnnxCall) -> Value:
    """Normalize the last axis as ``Layernorm_s8_s8`` does, with quantlib's limits."""
    return _normalize(call, -1, _factors(call, 2, "the bias"))


@lowers("iRMSNorm", 1, domain=PULP)
def i_rms_norm(call: OnnxCall) -> Value:
    """Normalize the last axis by the root of its mean square, as ``iRMSnorm_s8_s8`` does."""
    x, kind = call.required(0), call.attr("stash_type")
    if kind != 1:
        raise call.unsupported(f"stash_type is {kind}", "use stash_type = 1")
    return _normalize(call, call.axis(call.attr("axis"), x.rank), None)


def _softmax(call: OnnxCall, exponentials: NDArray[np.int64], count: int) -> Value:
    x = call.required(0)
    table = call.constant(exponentials.reshape(1, -1), EXACT)
    result = call.emit("integer_softmax", x, table, axes=[x.rank - 1], levels=count)
    return as_integers(call, result, (0, count - 1))


def _normalize(call: OnnxCall, axis: int, bias: NDArray[np.float64] | None) -> Value:
    x, count, divisor = call.required(0), levels(call, "n_levels"), number(call, "D")
    if axis not in {-1, x.rank - 1}:
        raise call.unsupported(f"axis {axis} of {x.rank} is not the last", "use axis = -1")
    shift = int(divisor).bit_length() - 1 if divisor >= 1 else 0
    if divisor != 1 << shift or shift >= SCALE_BITS:
        raise call.unsupported(
            f"it divides by {divisor:g}", f"use a power of 2 below 2^{SCALE_BITS}"
        )
    extents = (1,) * (x.rank - 1) + (x.shape[-1],)
    weight = _factors(call, 1, "the weight")
    factors = []
    for what, numbers in (("weight", weight), ("bias", np.zeros(1) if bias is None else bias)):
        if numbers.size not in {1, x.shape[-1]}:
            raise call.error(
                f"the {what} has {numbers.size} numbers for {x.shape[-1]} of the last axis"
            )
        whole = np.broadcast_to(numbers.reshape(-1), x.shape[-1]).reshape(extents)
        factors.append(call.constant(np.ascontiguousarray(whole), EXACT))
    result = call.emit(
        "integer_normalize", x, *factors, axes=[x.rank - 1], shift=shift, centered=bias is not None
    )
    return as_integers(call, result, (-count // 2, count // 2 - 1))


def _factors(call: OnnxCall, index: int, what: str) -> NDArray[np.float64]:
    """Return a constant of whole numbers that the hardware of a normalization holds."""
    found = integers(call, index, what)
    limit = 1 << SCALE_BITS - 1
    largest = float(np.abs(found).max(initial=0.0))
    if not found.size or largest >= limit:
        raise call.unsupported(
            f"{what} has {found.size} numbers up to {largest:g}", f"use numbers below {limit}"
        )
    return found
