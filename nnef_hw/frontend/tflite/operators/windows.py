"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.records import Fields
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall, activate
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.frontend.tflite.operators.bias import bias_of

__all__: list[str] = []

_SAME, _VALID = 0, 1
_INT32 = 2
"""Of ``TensorType``."""


def _steps(call: TfliteCall, *names: str) -> list[int]:
    """Return two options, of rows and of columns."""
    found = [int(call.option(name, 1)) for name in names]
    if min(found) < 1:
        raise call.error(f"{' and '.join(names)} are {found}", "they must be positive")
    return found


def _padding(
    call: TfliteCall, extents: Sequence[int], reach: Sequence[int], stride: Sequence[int]
) -> list[tuple[int, int]]:
    """Return SAME or VALID padding in numbers; an odd one has more behind."""
    code = call.option("Padding")
    if code not in {_SAME, _VALID}:
        raise call.error(f"the padding {code} is neither SAME nor VALID")
    if code == _VALID:
        return [(0, 0)] * len(extents)
    totals = [
        max((-(-n // s) - 1) * s + r - n, 0) for n, r, s in zip(extents, reach, stride, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]


def _check_images(call: TfliteCall, *values: Value) -> None:
    for value in values:
        if value.rank != 4:
            raise call.error(f"an argument has shape {list(value.shape)}, not of four dimensions")


def _check_sums(call: TfliteCall, bias: int, source: int = 0) -> None:
    """Refuse sums of 32 bits behind activations of 16, whose kernel is another one."""
    if call.source(source).kind != "int16" or not call.source(source).is_quantized:
        return
    if call.input(bias) is None:
        # Of depthwise convolutions there is no such option.
        is_short = call.operator.options.get("QuantizedBiasType") == _INT32
    else:
        is_short = call.source(bias).kind == "int32"
    if is_short:
        raise call.unsupported(
            "its sums have 32 bits, as its bias, which are rounded in another way than those of "
            "64 that activations of int16 usually have",
            "quantize it with a bias of int64",
        )


def _convolved(call: TfliteCall, x: Value, weights: Value, axis: int, groups: int) -> Value:
    """Convolve an image with a filter [outC, C / groups, rows, columns]."""
    _check_sums(call, 2)
    stride = _steps(call, "StrideH", "StrideW")
    dilation = _steps(call, "DilationHFactor", "DilationWFactor")
    size = weights.tensor.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    result = call.emit(
        "conv",
        x,
        weights,
        bias_of(call, 2, axis),
        border="constant",
        padding=_padding(call, x.tensor.shape[2:], reach, stride),
        stride=stride,
        dilation=dilation,
        groups=groups,
    )
    return call.activated(result)


@lowers("CONV_2D", newest=8)
def conv_2d(call: TfliteCall) -> Value:
    x, weights = call.required(0), call.required(1)
    _check_images(call, x, weights)
    channels, inner = x.shape[3], weights.shape[3]
    if not inner or channels % inner:
        raise call.error(f"a filter of {inner} channels does not fit an input of {channels}")
    return _convolved(call, call.image(x), call.image(weights), 0, channels // inner)


@lowers("DEPTHWISE_CONV_2D", newest=7)
def depthwise_conv_2d(call: TfliteCall) -> Value:
    """Convolve each channel with as many filters [1, rows, columns, outC] as the options say."""
    x, weights = call.required(0), call.required(1)
    _check_images(call, x, weights)
    kernel = replace(call.transposed(weights, [3, 0, 1, 2]), is_image=True)
    return _convolved(call, call.image(x), kernel, 3, x.shape[3])


@lowers("TRANSPOSE_CONV", newest=5, shape_argument=0)
def transpose_conv(call: TfliteCall) -> Value:
    """Transposed convolution; arguments are the result's shape, the filter, input, and bias."""
    wanted = call.integers(0, "the shape of the result")
    weights, x = call.required(1), call.required(2)
    _check_images(call, x, weights)
    if len(wanted) != 4 or min(wanted) < 1:
        raise call.error(f"the shape of the result is {wanted}")
    _check_sums(call, 3, source=2)
    stride = _steps(call, "StrideH", "StrideW")
    # [outC, rows, columns, C] becomes [C, outC, rows, columns]
    kernel = replace(call.transposed(weights, [3, 0, 1, 2]), is_image=True)
    size = kernel.tensor.shape[2:]
    result = call.emit(
        "deconv",
        call.image(x),
        kernel,
        bias_of(call, 3, 0, source=2),
        border="constant",
        padding=_padding(call, wanted[1:3], size, stride),
        stride=stride,
        dilation=[1, 1],
        groups=1,
        output_shape=[wanted[0], wanted[3], wanted[1], wanted[2]],
    )
    return call.activated(result)


@lowers("Convolution2DTransposeBias", newest=1)
def transpose_conv_of_mediapipe(call: TfliteCall) -> Value:
    """Transposed convolution of MediaPipe; arguments are input, filter and bias.

    Its options are three numbers of 32 bits: padding (1: SAME, 2: VALID) and strides of columns and
    of rows.
    """
    stored = call.option("CustomOptions", b"")
    if len(stored) < 12:
        raise call.error("its options do not say padding and strides")
    code, *strides = (int(item) for item in np.frombuffer(stored[:12], "<i4"))
    if code not in {1, 2} or min(strides) < 1:
        raise call.error(f"its padding is {code}, its strides are {strides}")
    x, weights = call.required(0), call.required(1)
    _check_images(call, x, weights)
    stride, wanted = strides[::-1], call.target().shape
    if len(wanted) != 4:
        raise call.error(f"the result has shape {list(wanted)}, not of four dimensions")
    size = weights.shape[1:3]
    kernel = replace(call.transposed(weights, [3, 0, 1, 2]), is_image=True)
    padding = [(0, 0), (0, 0)]
    if code == 1:
        totals = [max((-(-n // s) - 1) * s + k - n, 0)
                  for n, s, k in zip(wanted[1:3], stride, size, strict=True)]  # fmt: skip
        padding = [(total // 2, total - total // 2) for total in totals]
    return call.emit(
        "deconv", call.image(x), kernel, bias_of(call, 2, 0), border="constant", padding=padding,
        stride=stride, dilation=[1, 1], groups=1,
        output_shape=[wanted[0], wanted[3], wanted[1], wanted[2]],
    )  # fmt: skip


@lowers("L2_POOL_2D", newest=1)
def l2_pool_2d(call: TfliteCall) -> Value:
    """Root of the mean of squares of windows."""
    if call.target().is_quantized:
        raise call.unsupported("codes have no kernel", "use real numbers")
    x = call.required(0)
    _check_images(call, x)
    mean = _windows(call, call.emit("sqr", call.image(x)), "avg_pool")
    root = call.emit("sqrt", mean)
    return activate(call, root, call.option("FusedActivationFunction"))


def _pooled(call: TfliteCall, op: str) -> Value:
    x = call.required(0)
    _check_images(call, x)
    pooled = _windows(call, call.image(x), op)
    return activate(call, pooled, call.option("FusedActivationFunction"))


def _windows(call: TfliteCall, image: Value, op: str) -> Value:
    size = _steps(call, "FilterHeight", "FilterWidth")
    stride = _steps(call, "StrideH", "StrideW")
    padding = _padding(call, image.tensor.shape[2:], size, stride)
    attrs: Fields = {
        "size": [1, 1, *size],
        "border": "ignore" if any(map(any, padding)) else "constant",
        "padding": [(0, 0), (0, 0), *padding],
        "stride": [1, 1, *stride],
        "dilation": [1, 1, 1, 1],
    }
    return call.emit(op, image, **attrs)


@lowers("MAX_POOL_2D", newest=3)
def max_pool_2d(call: TfliteCall) -> Value:
    return _pooled(call, "max_pool")


@lowers("AVERAGE_POOL_2D", newest=3)
def average_pool_2d(call: TfliteCall) -> Value:
    """Mean of windows; padding does not count."""
    return _pooled(call, "avg_pool")
