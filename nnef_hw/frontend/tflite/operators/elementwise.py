"""Functions of single elements, and of two tensors element by element."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from nnef_hw.arithmetic.records import Fields
from nnef_hw.arithmetic.tflite.numerics import tflite_difference_scale
from nnef_hw.frontend.tflite.file.model import BOOL
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall, activate
from nnef_hw.frontend.tflite.lowering.registry import add_lowering, lowers
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.ir import Quantization

__all__: list[str] = []


def _unary(op: str, call: TfliteCall) -> Value:
    return call.emit(op, call.required(0), **_differing(op, call))


_NEAR = 1e-3
_WIDE_FUNCTIONS = frozenset({"exp", "gelu", "log", "rsqrt", "sqrt"})


def _differing(op: str, call: TfliteCall) -> Fields:
    """Return the attribute of what hardware computes of codes in another way than the kernel."""
    if not call.target().is_quantized:
        return {}
    if op == "neg":
        return {"differs": "its kernel negates codes, whatever their zero points and scales are"}
    if op in _WIDE_FUNCTIONS and call.source(0).kind == "int16":
        return {"differs": "its kernel fills a table for codes of 16 bits in single precision"}
    return {}


for _name, (_op, _newest) in {
    "ABS": ("abs", 5),
    "CEIL": ("ceil", 1),
    "COS": ("cos", 2),
    "EXP": ("exp", 2),
    "FLOOR": ("floor", 1),
    "LOG": ("log", 2),
    "LOGICAL_NOT": ("not", 1),
    "LOGISTIC": ("sigmoid", 3),
    "NEG": ("neg", 1),
    "ROUND": ("round_even", 1),
    "RSQRT": ("rsqrt", 3),
    "SIGN": ("sign", 2),
    "SIN": ("sin", 2),
    "SQRT": ("sqrt", 2),
    "SQUARE": ("sqr", 1),
    "TANH": ("tanh", 3),
}.items():
    add_lowering(_name, partial(_unary, _op), _newest)


def _function(code: int, call: TfliteCall) -> Value:
    return activate(call, call.required(0), code)


for _name, _code, _newest in (("RELU", 1, 3), ("RELU_N1_TO_1", 2, 1), ("RELU6", 3, 3)):
    add_lowering(_name, partial(_function, _code), _newest)


@lowers("RELU_0_TO_1", newest=1)
def relu_0_to_1(call: TfliteCall) -> Value:
    return call.emit("clamp", call.required(0), 0.0, 1.0)


@lowers("ELU", newest=1)
def elu(call: TfliteCall) -> Value:
    return call.emit("elu", call.required(0), alpha=1.0)


@lowers("LEAKY_RELU", newest=2)
def leaky_relu(call: TfliteCall) -> Value:
    return call.emit("leaky_relu", call.required(0), alpha=float(call.option("Alpha")))


@lowers("PRELU", newest=1)
def prelu(call: TfliteCall) -> Value:
    x, slope = call.required(0), call.required(1)
    if slope.data is not None and slope.volume == 1 and not call.target().is_quantized:
        return call.emit("leaky_relu", x, alpha=float(slope.data.item()))
    return call.spread("prelu", x, slope)


@lowers("HARD_SWISH", newest=1)
def hard_swish(call: TfliteCall) -> Value:
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return call.emit("hard_swish", call.required(0))


@lowers("GELU", newest=3)
def gelu(call: TfliteCall) -> Value:
    """Gelu by erf or tanh; NNEF's ``gelu`` is a third function, an approximation by sigmoid."""
    x = call.required(0)
    if call.option("Approximate"):
        cube = call.emit("mul", call.emit("mul", call.emit("sqr", x), x), 0.044715)
        inner = call.emit("mul", call.emit("add", x, cube), math.sqrt(2 / math.pi))
        bell = call.emit("tanh", inner)
    else:
        bell = call.emit("erf", call.emit("mul", x, math.sqrt(0.5)))
    factors = call.emit("mul", x, 0.5), call.emit("add", bell, 1.0)
    return call.emit("mul", *factors, **_differing("gelu", call))


def _binary(op: str, call: TfliteCall) -> Value:
    a, b = call.required(0), call.required(1)
    target = call.target()
    is_wide = op in {"add", "sub"} and target.is_quantized and target.kind == "int16"
    if is_wide and call.option("PotScaleInt16", True) and _are_powers_of_two(call):
        raise call.unsupported(
            "its scales are powers of two, for which it rounds sums in a way of its own",
            "convert the model with a newer TensorFlow",
        )
    return call.activated(call.spread(op, a, b))


def _are_powers_of_two(call: TfliteCall) -> bool:
    """Whether the kernel takes the scales of operands and result for such (``CheckedLog2``)."""
    scales = [tensor.scale for tensor in (call.source(0), call.source(1), call.target())]
    logs = [math.log2(float(scale[0])) for scale in scales if scale is not None]
    return all(abs(log - round(log)) < _NEAR for log in logs)


@lowers("DIV", newest=2)
def div(call: TfliteCall) -> Value:
    """Divide; of codes of 8 bits with an operator of their own."""
    target = call.target()
    more: Fields = {}
    if target.is_quantized and target.kind == "int16":
        more = {"differs": "its kernel divides codes of 16 bits"}
    op = "quotient" if target.is_quantized and not more else "div"
    return call.activated(call.spread(op, call.required(0), call.required(1), **more))


for _name, (_op, _newest) in {
    "ADD": ("add", 6),
    "MAXIMUM": ("max", 4),
    "MINIMUM": ("min", 4),
    "MUL": ("mul", 8),
    "POW": ("pow", 1),
    "SUB": ("sub", 5),
}.items():
    add_lowering(_name, partial(_binary, _op), _newest)


@lowers("SQUARED_DIFFERENCE", newest=2)
def squared_difference(call: TfliteCall) -> Value:
    """Square a difference; of codes, it has the 16 bits that the kernel computes with."""
    difference = call.spread("sub", call.required(0), call.required(1))
    first, second = call.source(0), call.source(1)
    if call.target().kind != "int8" or first.scale is None or second.scale is None:
        return call.emit("sqr", difference)
    scale = tflite_difference_scale(float(first.scale[0]), float(second.scale[0]))
    args = {"zero_point": 0, "scale": scale, "bits": 16, "signed": True, "symmetric": False}
    quant = Quantization("zero_point_linear_quantize", args)
    tensor = call.builder.add(replace(difference.tensor, quant=quant))
    difference = replace(difference, tensor=tensor)
    return call.emit("mul", difference, difference)


@lowers("FLOOR_DIV", newest=3)
def floor_div(call: TfliteCall) -> Value:
    a, b = call.required(0), call.required(1)
    if a.tensor.dtype == "integer":
        if a.data is None or b.data is None or not b.data.all():
            raise call.unsupported("integers are divided when the network runs", "use real numbers")
        return call.constant(call.plain(a).data // call.plain(b).data, a.type)  # type: ignore[operator]
    differs: Fields = {}
    if call.target().is_quantized:
        differs = {"differs": "its kernel divides codes"}
    return call.emit("floor", call.spread("div", a, b), **differs)


@lowers("ADD_N", newest=1)
def add_n(call: TfliteCall) -> Value:
    total, *others = call.inputs
    for value in others:
        total = call.spread("add", total, value)
    return total


def _compared(op: str, call: TfliteCall) -> Value:
    return call.spread(op, call.required(0), call.required(1), element=BOOL)


for _name, (_op, _newest) in {
    "EQUAL": ("eq", 5),
    "GREATER": ("gt", 2),
    "GREATER_EQUAL": ("ge", 3),
    "LESS": ("lt", 3),
    "LESS_EQUAL": ("le", 2),
    "LOGICAL_AND": ("and", 1),
    "LOGICAL_OR": ("or", 1),
    "NOT_EQUAL": ("ne", 4),
}.items():
    add_lowering(_name, partial(_compared, _op), _newest)


@lowers("SELECT", newest=4)
@lowers("SELECT_V2", newest=2)
def select(call: TfliteCall) -> Value:
    """Choose element by element; the older operator's vector chooses along the first axis."""
    condition, first, second = (call.required(index) for index in range(3))
    if call.operator.op == "SELECT" and condition.rank == 1 < first.rank:
        condition = call.reshaped(condition, (condition.volume, *[1] * (first.rank - 1)))
    return call.spread("select", condition, first, second, element=first.type)


@lowers("CAST", newest=9)
def cast(call: TfliteCall) -> Value:
    x, target = call.required(0), call.target().type
    if target is None or not target.dtype:
        raise call.unsupported(f"the result is of {call.target().kind}", "use real numbers")
    if x.tensor.dtype == target.dtype:
        return x
    if x.data is not None:
        kinds = {"integer": np.int64, "logical": np.bool_, "scalar": np.float32}
        return call.constant(np.asarray(call.plain(x).data).astype(kinds[target.dtype]), target)
    return call.emit("cast", x, element=target)


@lowers("SOFTMAX", newest=4)
def softmax(call: TfliteCall) -> Value:
    """Softmax along the last axis."""
    x = call.required(0)
    beta = float(call.option("Beta", 1.0))
    if beta != 1.0:
        x = _scaled(call, x, beta)
    return call.emit("softmax", x, axes=[x.stored_axis(x.rank - 1)])


def _scaled(call: TfliteCall, x: Value, factor: float) -> Value:
    """Multiply; codes stay, and their steps are multiplied."""
    y = call.emit("mul", x, factor)
    quant = call.source(0).quantization
    if quant is None:
        return y
    args = {**quant.args, "scale": float(quant.args["scale"]) * factor}
    return replace(y, tensor=call.builder.add(replace(y.tensor, quant=replace(quant, args=args))))


@lowers("LOG_SOFTMAX", newest=2)
def log_softmax(call: TfliteCall) -> Value:
    x = call.required(0)
    more: Fields = {}
    if call.target().is_quantized:
        more = {"differs": "its kernel takes logarithms of codes in 32 bits"}
    return call.emit("log", call.emit("softmax", x, axes=[x.stored_axis(x.rank - 1)]), **more)
