"""Operators on codes that onnxruntime adds to the standard, in the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nnef_hw.frontend.onnx.file.declarations import MICROSOFT
from nnef_hw.frontend.onnx.file.model import FLOAT32
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.coding import read_coding
from nnef_hw.frontend.onnx.lowering.quantized import dequantized
from nnef_hw.frontend.onnx.lowering.registry import add_lowering, lowers
from nnef_hw.frontend.onnx.operators.matrix import gemm
from nnef_hw.frontend.onnx.operators.normalization import softmax
from nnef_hw.frontend.onnx.operators.windows import average_pool, global_average_pool
from nnef_hw.frontend.onnx.quantization.quantization import (
    argument,
    product_bias,
    quantized_result,
)

__all__: list[str] = []


def _binary(op: str, call: OnnxCall) -> Value:
    (a, _), (b, _) = argument(call, 0), argument(call, 3)
    return quantized_result(call, call.spread(op, a, b), 6, call.required(0).type)


def _unary(function: Callable[[OnnxCall], Value], call: OnnxCall) -> Value:
    """Compute a function of one argument; its own arguments follow in the node's order."""
    if call.attr("channels_last"):
        raise call.unsupported("channels_last is set", "quantize it in the order N, C, H, W")
    x, _ = argument(call, 0)
    return quantized_result(call, function(call.on(x)), 3, call.required(0).type)


def _leaky_relu(call: OnnxCall) -> Value:
    return call.emit("leaky_relu", call.required(0), alpha=call.attr("alpha"))


def _mean(call: OnnxCall) -> Value:
    x = call.required(0)
    axes = call.axes(call.attr("axes"), x.rank)
    mean = call.emit("mean_reduce", x, axes=axes)
    kept = [extent for axis, extent in enumerate(mean.shape) if axis not in axes]
    return mean if call.attr("keepdims") else call.reshaped(mean, kept)


def _sigmoid(call: OnnxCall) -> Value:
    return call.emit("sigmoid", call.required(0))


def _softmax(call: OnnxCall) -> Value:
    """Softmax as of the opset that it was made from."""
    since = 13 if call.attr("opset") >= 13 else 11
    result: Value = softmax(call.on(call.required(0), since=since))
    return result


for _name, _op in (("QLinearAdd", "add"), ("QLinearMul", "mul")):
    add_lowering(_name, [1], partial(_binary, _op), MICROSOFT)

for _name, _function in {
    "QLinearAveragePool": average_pool,
    "QLinearGlobalAveragePool": global_average_pool,
    "QLinearLeakyRelu": _leaky_relu,
    "QLinearReduceMean": _mean,
    "QLinearSigmoid": _sigmoid,
    "QLinearSoftmax": _softmax,
}.items():
    add_lowering(_name, [1], partial(_unary, _function), MICROSOFT)


@lowers("QGemm", 1, domain=MICROSOFT)
def qgemm(call: OnnxCall) -> Value:
    """Lower a linear layer; without a scale of its result this is real."""
    (a, a_coding), b = argument(call, 0), call.required(3)
    coding = read_coding(call, b.shape, b.type, 4, 5, axis=0 if call.attr("transB") else 1)
    coding = replace(coding, scale=coding.scale * call.attr("alpha"))
    c = product_bias(call, 6, a_coding, coding)
    b = dequantized(call, b, coding, FLOAT32)
    result = gemm(call.on(a, b, c, alpha=1.0, beta=1.0))
    return result if call.input(7) is None else quantized_result(call, result, 7, a_coding.element)


@lowers("QLinearConcat", 1, domain=MICROSOFT)
def qlinear_concat(call: OnnxCall) -> Value:
    count = len(call.arguments)
    if count < 5 or count % 3 != 2:
        raise call.error("its inputs are not triples of codes, scale and zero point")
    parts = [argument(call, index)[0] for index in range(2, count, 3)]
    axis = call.axis(call.attr("axis"), parts[0].rank)
    return quantized_result(call, call.emit("concat", *parts, axis=axis), 0, call.required(2).type)


@lowers("QLinearWhere", 1, domain=MICROSOFT)
def qlinear_where(call: OnnxCall) -> Value:
    (x, _), (y, _) = argument(call, 1), argument(call, 4)
    operands = call.aligned(call.required(0), x, y)
    result = call.emit("select", *operands, element=FLOAT32)
    return quantized_result(call, result, 7, call.required(1).type)
