"""Quantization, and the operators on codes that the standard has."""

from __future__ import annotations

import numpy as np

from nnef_hw.frontend.onnx.file.declarations import MICROSOFT
from nnef_hw.frontend.onnx.file.model import ELEMENT_TYPES, FLOAT32, ElementType
from nnef_hw.frontend.onnx.file.tensors import type_name
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.coding import Coding, read_coding
from nnef_hw.frontend.onnx.lowering.quantized import dequantized, quantized
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.matrix import matmul
from nnef_hw.frontend.onnx.operators.windows import conv

__all__ = ["argument", "product_bias", "quantized_result"]

_UINT8, _INT32 = ELEMENT_TYPES[2], ELEMENT_TYPES[6]


@lowers("QuantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
@lowers("QuantizeLinear", 1, domain=MICROSOFT)
def quantize_linear(call: OnnxCall) -> Value:
    x, zero_point = call.required(0), call.input(2)
    element = _UINT8 if zero_point is None else zero_point.type
    code = call.attr("output_dtype")
    if code and code not in ELEMENT_TYPES:
        raise call.unsupported(f"its result has {type_name(code)}")
    if code and zero_point is None:
        element = ELEMENT_TYPES[code]
    _check_integers(call, element)
    if code and ELEMENT_TYPES[code] != element:
        raise call.error(f"output_dtype is {ELEMENT_TYPES[code].name}, but the zero point is "
                         f"{element.name}")  # fmt: skip
    coding = _axis_coding(call, x, element)
    return quantized(call, call.convert(x, FLOAT32), coding)


@lowers("DequantizeLinear", 10, 13, 19, 21, 23, 24, 25, 28)
@lowers("DequantizeLinear", 1, domain=MICROSOFT)
def dequantize_linear(call: OnnxCall) -> Value:
    x = call.required(0)
    _check_integers(call, x.type)
    coding = _axis_coding(call, x, x.type)
    element = ELEMENT_TYPES.get(call.attr("output_dtype", 0), call.required(1).type)
    return dequantized(call, x, coding, element)


def _check_integers(call: OnnxCall, element: ElementType) -> None:
    if element.dtype != "integer":
        raise call.error(f"the codes are {element.name}, not integers")


def _axis_coding(call: OnnxCall, x: Value, element: ElementType) -> Coding:
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    if block < 0:
        raise call.error(f"block_size is {block}, not 0 or more")
    return read_coding(call, x.shape, element, 1, 2, axis, block=block)


@lowers("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(call: OnnxCall) -> list[Value]:
    """Quantization by the values' own range, which only constants have beforehand."""
    x = call.required(0)
    if x.data is None:
        raise call.unsupported(
            f"the range of {x.tensor.name!r} is found when the network runs",
            "quantize the network statically, as onnxruntime's quantize_static does",
        )
    data = x.data.astype(np.float32)
    least, most = min(data.min(initial=0), 0), max(data.max(initial=0), 0)
    scale = np.float32(most - least) / np.float32(255)
    if not scale:
        raise call.error(f"{x.tensor.name!r} is 0 everywhere, so it has no scale")
    zero_point = np.clip(np.rint(-least / scale), 0, 255)
    data = np.clip(np.rint(data / scale) + zero_point, 0, 255)
    return [
        call.constant(data, _UINT8),
        call.constant(scale, FLOAT32),
        call.constant(zero_point, _UINT8),
    ]


def argument(
    call: OnnxCall, index: int, axis: int | None = None, *, whole: bool = False
) -> tuple[Value, Coding]:
    """Return the real numbers of a quantized argument, whose scale and zero point follow it."""
    x = call.required(index)
    _check_integers(call, x.type)
    coding = read_coding(call, x.shape, x.type, index + 1, index + 2, axis, whole=whole)
    return dequantized(call, x, coding, FLOAT32), coding


def quantized_result(call: OnnxCall, value: Value, scale: int, element: ElementType) -> Value:
    """Return a result as codes, whose scale and zero point are the arguments from ``scale`` on."""
    zero_point = call.input(scale + 1)
    element = element if zero_point is None else zero_point.type
    coding = read_coding(call, value.shape, element, scale, scale + 1)
    return quantized(call, value, coding)


def product_bias(call: OnnxCall, index: int, x: Coding, weights: Coding) -> Value | None:
    """Return an optional bias, whose codes are steps of products of codes.

    Its last dimension belongs to the output channels, and so do the scales of the weights.
    """
    bias = call.input(index)
    if bias is None:
        return None
    _check_integers(call, bias.type)
    scale = x.scale * weights.scale
    if scale.size > 1 and bias.shape[-1:] != (scale.size,):
        raise call.error(f"a bias of shape {list(bias.shape)} does not fit {scale.size} scales")
    layout = (1,) * (bias.rank - 1) + (-1,) if scale.size > 1 else ()
    scale = scale.reshape(layout)
    coding = Coding(scale, np.zeros(scale.shape, np.int64), bias.type, bias.type.limits)
    return dequantized(call, bias, coding, FLOAT32)


@lowers("QLinearConv", 10)
@lowers("QLinearConv", 1, domain=MICROSOFT)
def qlinear_conv(call: OnnxCall) -> Value:
    if call.attr("channels_last"):
        raise call.unsupported("channels_last is set", "quantize it in the order N, C, H, W")
    x, x_coding = argument(call, 0)
    weights, coding = argument(call, 3, axis=0)
    bias = product_bias(call, 8, x_coding, coding)
    return quantized_result(call, conv(call.on(x, weights, bias)), 6, call.required(0).type)


@lowers("QLinearMatMul", 10, 21)
def qlinear_matmul(call: OnnxCall) -> Value:
    """Lower a product; scales may differ between rows of the first and columns of the second."""
    a, _ = argument(call, 0, axis=-2, whole=True)
    b, _ = argument(call, 3, axis=-1, whole=True)
    return quantized_result(call, matmul(call, a, b), 6, call.required(0).type)


@lowers("ConvInteger", 10)
def conv_integer(call: OnnxCall) -> Value:
    """Compute sums of products of codes with exact real numbers."""
    x, weights = _shifted(call, 0, None), _shifted(call, 1, 0)
    return call.emit("cast", conv(call.on(x, weights)), element=_INT32)


@lowers("MatMulInteger", 10)
def matmul_integer(call: OnnxCall) -> Value:
    """Multiply matrices of codes; zero points may differ between rows and columns."""
    product = matmul(call, _shifted(call, 0, -2), _shifted(call, 1, -1))
    return call.emit("cast", product, element=_INT32)


def _shifted(call: OnnxCall, index: int, axis: int | None) -> Value:
    """Return codes less their zero point, as real numbers."""
    x = call.required(index)
    _check_integers(call, x.type)
    zero_point = call.input(index + 2)
    ones = call.constant(np.ones(zero_point.shape if zero_point else ()), FLOAT32)
    coding = read_coding(call.on(ones, zero_point), x.shape, x.type, 0, 1, axis, whole=True)
    return dequantized(call, x, coding, FLOAT32)
