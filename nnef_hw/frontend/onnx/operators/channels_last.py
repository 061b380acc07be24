"""Operators on images whose channels are the last dimension, as QONNX and FINN write them."""

from __future__ import annotations

from nnef_hw.frontend.onnx.file.declarations import CHANNELS_LAST
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.normalization import batch_normalization
from nnef_hw.frontend.onnx.operators.windows import conv, max_pool

__all__: list[str] = []


def _first(call: OnnxCall, index: int) -> Value:
    """Return an argument with its last dimension in second place."""
    value = call.required(index)
    if value.rank < 2:
        raise call.error(f"input {index} has shape {list(value.shape)}, without channels")
    return call.transposed(value, (0, value.rank - 1, *range(1, value.rank - 1)))


def _last(call: OnnxCall, value: Value) -> Value:
    """Return a value with its second dimension in last place."""
    return call.transposed(value, (0, *range(2, value.rank), 1))


@lowers("Conv", 1, domain=CHANNELS_LAST)
def conv_channels_last(call: OnnxCall) -> Value:
    """Lower a convolution; its filter is [out, kernel..., in]."""
    result: Value = conv(call.on(_first(call, 0), _first(call, 1), call.input(2)))
    return _last(call, result)


@lowers("MaxPool", 1, domain=CHANNELS_LAST)
def max_pool_channels_last(call: OnnxCall) -> Value:
    return _last(call, max_pool(call.on(_first(call, 0)))[0])


@lowers("BatchNormalization", 1, domain=CHANNELS_LAST)
def batch_normalization_channels_last(call: OnnxCall) -> Value:
    inner = call.on(_first(call, 0), *call.arguments[1:], training_mode=0)
    return _last(call, batch_normalization(inner)[0])
