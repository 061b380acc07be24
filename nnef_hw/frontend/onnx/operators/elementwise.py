"""Element-wise operators and activation functions."""

from __future__ import annotations

import math
from functools import reduce

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.frontend.onnx.file.model import BOOL
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Operand, Value
from nnef_hw.frontend.onnx.lowering.registry import add_lowering, lowers

__all__ = ["hard_sigmoid", "softsign", "thresholded_relu"]

_UNARY: dict[str, tuple[str, tuple[int, ...]]] = {
    "Abs": ("abs", (6, 13)),
    "Acos": ("acos", (7, 22)),
    "Acosh": ("acosh", (9, 22)),
    "Asin": ("asin", (7, 22)),
    "Asinh": ("asinh", (9, 22)),
    "Atan": ("atan", (7, 22)),
    "Atanh": ("atanh", (9, 22)),
    "Ceil": ("ceil", (6, 13)),
    "Cos": ("cos", (7, 22)),
    "Cosh": ("cosh", (9, 22)),
    "Erf": ("erf", (9, 13)),
    "Exp": ("exp", (6, 13)),
    "Floor": ("floor", (6, 13)),
    "Log": ("log", (6, 13)),
    "Neg": ("neg", (6, 13)),
    "Not": ("not", (1,)),
    "Reciprocal": ("rcp", (6, 13)),
    "Relu": ("relu", (6, 13, 14)),
    "Round": ("round_even", (11, 22)),
    "Sigmoid": ("sigmoid", (6, 13)),
    "Sign": ("sign", (9, 13)),
    "Sin": ("sin", (7, 22)),
    "Sinh": ("sinh", (9, 22)),
    "Softplus": ("softplus", (1, 22)),
    "Sqrt": ("sqrt", (6, 13)),
    "Tan": ("tan", (7, 22)),
    "Tanh": ("tanh", (6, 13)),
}

_BINARY: dict[str, tuple[str, tuple[int, ...]]] = {
    "Add": ("add", (6, 7, 13, 14)),
    "And": ("and", (1, 7)),
    "BitwiseAnd": ("bit_and", (18,)),
    "BitwiseOr": ("bit_or", (18,)),
    "BitwiseXor": ("bit_xor", (18,)),
    "Div": ("div", (6, 7, 13, 14)),
    "Mul": ("mul", (6, 7, 13, 14)),
    "Or": ("or", (1, 7)),
    "Sub": ("sub", (6, 7, 13, 14)),
    "Xor": ("xor", (1, 7)),
}

_COMPARISONS: dict[str, tuple[str, tuple[int, ...]]] = {
    "Greater": ("gt", (1, 7, 9, 13)),
    "GreaterOrEqual": ("ge", (12, 16)),
    "Less": ("lt", (1, 7, 9, 13)),
    "LessOrEqual": ("le", (12, 16)),
}


_LARGE = 3.4e38
"""Limits of clipping beyond this are the defaults: none."""


def _operands(call: OnnxCall) -> list[Value]:
    """Return two operands that broadcast; before opset 7 the second one may begin at an axis."""
    x, y = call.inputs
    axis = call.attr("axis")
    if call.attr("broadcast") and axis is not None:
        behind = x.rank - call.axis(axis, x.rank) - y.rank
        y = call.reshaped(y, (*y.shape, *[1] * behind))
    return call.aligned(x, y)


def _register_tables() -> None:
    def unary(op: str) -> AttributeValue:
        return lambda call: call.emit(op, call.required(0))

    def binary(op: str) -> AttributeValue:
        return lambda call: call.emit(op, *_operands(call))

    def comparison(op: str) -> AttributeValue:
        return lambda call: call.emit(op, *_operands(call), element=BOOL)

    for table, make in ((_UNARY, unary), (_BINARY, binary), (_COMPARISONS, comparison)):
        for name, (op, since) in table.items():
            add_lowering(name, since, make(op))


_register_tables()


@lowers("Equal", 1, 7, 11, 13, 19)
def equal(call: OnnxCall) -> Value:
    x, y = _operands(call)
    if x.type.dtype == "logical":
        return call.emit("not", call.emit("xor", x, y))
    return call.emit("eq", x, y, element=BOOL)


@lowers("Pow", 1, 7, 12, 13, 15)
def power(call: OnnxCall) -> Value:
    """Power, with the type of the base; common constant exponents have operators of their own."""
    x, y = _operands(call)
    if x.type.dtype == "scalar" and y.data is not None and y.volume == 1:
        functions = {2.0: "sqr", 0.5: "sqrt", -1.0: "rcp", -0.5: "rsqrt", -2.0: "rsqr"}
        function = functions.get(float(y.data.item()))
        if function is not None:
            return call.emit(function, x)
    if x.type.dtype != y.type.dtype and y.type.dtype == "integer":
        y = call.convert(y, x.type)
    elif x.type.dtype != y.type.dtype:
        return call.convert(call.emit("pow", call.convert(x, y.type), y), x.type)
    return call.emit("pow", x, y)


@lowers("Mod", 10, 13, 28)
def modulo(call: OnnxCall) -> Value:
    return call.emit("mod", *_operands(call), fmod=bool(call.attr("fmod")))


@lowers("BitwiseNot", 18)
def bitwise_not(call: OnnxCall) -> Value:
    x = call.required(0)
    if x.type.signed:
        return call.emit("bit_not", x)
    return call.emit("bit_xor", x, x.type.limits[1])


@lowers("BitShift", 11, 28)
def bit_shift(call: OnnxCall) -> Value:
    """Shift; bits that a left shift moves out of the type are lost."""
    x, y = _operands(call)
    if call.attr("direction") == "RIGHT":
        return call.emit("shift_right", x, y)
    shifted = call.emit("shift_left", x, y)
    return shifted if x.type.bits == 64 else call.wrapped(shifted)


@lowers("IsNaN", 9, 13, 20)
def is_nan(call: OnnxCall) -> Value:
    return call.emit("is_nan", call.required(0), element=BOOL)


@lowers("IsInf", 10, 20)
def is_inf(call: OnnxCall) -> Value:
    signs = {key: bool(call.attr(f"detect_{key}")) for key in ("positive", "negative")}
    return call.emit("is_inf", call.required(0), element=BOOL, **signs)


def _folded(call: OnnxCall, op: str) -> Value:
    """Combine any number of operands from left to right."""
    return reduce(lambda x, y: call.spread(op, x, y), call.inputs)


@lowers("Max", 6, 8, 12, 13)
def maximum(call: OnnxCall) -> Value:
    return _folded(call, "max")


@lowers("Min", 6, 8, 12, 13)
def minimum(call: OnnxCall) -> Value:
    return _folded(call, "min")


@lowers("Sum", 6, 8, 13)
def total(call: OnnxCall) -> Value:
    return _folded(call, "add")


@lowers("Mean", 6, 8, 13)
def mean(call: OnnxCall) -> Value:
    count = len(call.inputs)
    return call.emit("div", _folded(call, "add"), float(count)) if count > 1 else call.inputs[0]


@lowers("Where", 9, 16)
def where(call: OnnxCall) -> Value:
    condition, x, y = call.aligned(*call.inputs)
    return call.emit("select", condition, x, y, element=x.type)


@lowers("Clip", 6, 11, 12, 13)
def clip(call: OnnxCall) -> Value:
    """Clip; the upper limit wins over a greater lower one, other than in NNEF's ``clamp``."""
    x = call.required(0)
    lo: Operand | None = call.input(1)
    hi: Operand | None = call.input(2)
    if call.since == 6:
        lo, hi = (
            None if abs(call.attr(key)) > _LARGE else call.attr(key) for key in ("min", "max")
        )
    least, most = _limit_value(lo), _limit_value(hi)
    if least is not None and most is not None:
        return call.emit("clamp", x, min(least, most), most)
    if hi is not None and lo is not None:
        return call.emit("min", call.emit("max", x, lo), hi)
    if lo is not None:
        return call.emit("relu", x) if least == 0 else call.emit("max", x, lo)
    return x if hi is None else call.emit("min", x, hi)


def _limit_value(limit: Operand | None) -> AttributeValue:
    """Return a constant limit's number."""
    if isinstance(limit, Value):
        return None if limit.data is None or limit.volume != 1 else limit.data.item()
    return limit


@lowers("LeakyRelu", 6, 16)
def leaky_relu(call: OnnxCall) -> Value:
    return call.emit("leaky_relu", call.required(0), alpha=call.attr("alpha"))


@lowers("PRelu", 6, 7, 9, 16)
def prelu(call: OnnxCall) -> Value:
    """PRelu; before opset 7 a vector of slopes belongs to the channels."""
    x, slope = call.required(0), call.required(1)
    if slope.data is not None and slope.volume == 1:
        return call.emit("leaky_relu", x, alpha=float(slope.data.item()))
    if call.since == 6 and slope.rank == 1:
        return call.emit("prelu", x, call.reshaped(slope, (1, *slope.shape)))
    return call.emit("prelu", *call.aligned(x, slope))


@lowers("Elu", 6, 22)
def elu(call: OnnxCall) -> Value:
    return call.emit("elu", call.required(0), alpha=call.attr("alpha"))


@lowers("Selu", 6, 22)
def selu(call: OnnxCall) -> Value:
    attrs = {"alpha": call.attr("alpha"), "lambda": call.attr("gamma")}
    return call.emit("selu", call.required(0), **attrs)


@lowers("Celu", 12, 28)
def celu(call: OnnxCall) -> Value:
    """``alpha * elu(x / alpha)``: the same for positive alpha."""
    x, alpha = call.required(0), float(call.attr("alpha"))
    if alpha <= 0:
        raise call.unsupported(f"alpha {alpha} is not positive")
    if alpha == 1:
        return call.emit("elu", x, alpha=1.0)
    return call.emit("mul", call.emit("elu", call.emit("div", x, alpha), alpha=1.0), alpha)


@lowers("HardSigmoid", 6, 22)
def _hard_sigmoid(call: OnnxCall) -> Value:
    return hard_sigmoid(call, call.required(0), call.attr("alpha"), call.attr("beta"))


def hard_sigmoid(call: OnnxCall, x: Value, alpha: float, beta: float) -> Value:
    """``clamp(alpha * x + beta, 0, 1)``."""
    return call.emit("clamp", call.emit("add", call.emit("mul", x, alpha), beta), 0.0, 1.0)


@lowers("HardSwish", 14, 22)
def hard_swish(call: OnnxCall) -> Value:
    x = call.required(0)
    return call.emit("mul", x, hard_sigmoid(call, x, 1 / 6, 0.5))


@lowers("ThresholdedRelu", 10, 22)
def _thresholded_relu(call: OnnxCall) -> Value:
    return thresholded_relu(call, call.required(0), call.attr("alpha"))


def thresholded_relu(call: OnnxCall, x: Value, alpha: float) -> Value:
    """Return ``x`` where that exceeds alpha, else 0."""
    over = call.emit("gt", x, alpha, element=BOOL)
    return call.emit("select", over, x, call.constant(0, x.type), element=x.type)


@lowers("Shrink", 9)
def shrink(call: OnnxCall) -> Value:
    x, bias, limit = call.required(0), call.attr("bias"), call.attr("lambd")
    over = call.emit("gt", x, limit, element=BOOL)
    under = call.emit("lt", x, -limit, element=BOOL)
    zero = call.constant(0, x.type)
    low = call.emit("select", under, call.emit("add", x, bias), zero, element=x.type)
    return call.emit("select", over, call.emit("sub", x, bias), low, element=x.type)


@lowers("Softsign", 1, 22)
def _softsign(call: OnnxCall) -> Value:
    return softsign(call, call.required(0))


def softsign(call: OnnxCall, x: Value) -> Value:
    """``x / (1 + |x|)``."""
    return call.emit("div", x, call.emit("add", call.emit("abs", x), 1.0))


@lowers("Mish", 18, 22)
def mish(call: OnnxCall) -> Value:
    x = call.required(0)
    return call.emit("mul", x, call.emit("tanh", call.emit("softplus", x)))


@lowers("Swish", 24)
def swish(call: OnnxCall) -> Value:
    x, alpha = call.required(0), call.attr("alpha")
    if alpha == 1:
        return call.emit("silu", x)
    return call.emit("mul", x, call.emit("sigmoid", call.emit("mul", x, alpha)))


@lowers("Gelu", 20)
def gelu(call: OnnxCall) -> Value:
    """Gelu by erf or tanh; NNEF's ``gelu`` is a third function, an approximation by sigmoid."""
    return gelu_of(call, call.required(0), is_tanh=call.attr("approximate") == "tanh")


def gelu_of(call: OnnxCall, x: Value, *, is_tanh: bool) -> Value:
    """``x / 2 * (1 + erf(x / sqrt(2)))``, or the approximation by tanh."""
    if is_tanh:
        cube = call.emit("mul", call.emit("mul", call.emit("sqr", x), x), 0.044715)
        inner = call.emit("mul", call.emit("add", x, cube), math.sqrt(2 / math.pi))
        bell = call.emit("tanh", inner)
    else:
        bell = call.emit("erf", call.emit("div", x, math.sqrt(2)))
    return call.emit("mul", call.emit("mul", x, 0.5), call.emit("add", bell, 1.0))
