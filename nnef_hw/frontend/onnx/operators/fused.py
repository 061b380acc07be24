"""Operators that onnxruntime's optimizer joins: products with what follows them."""

from __future__ import annotations

from collections.abc import Callable

from nnef_hw.frontend.onnx.file.declarations import MICROSOFT
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.elementwise import gelu_of, hard_sigmoid
from nnef_hw.frontend.onnx.operators.matrix import gemm, matmul
from nnef_hw.frontend.onnx.operators.normalization import layer_normalized, rms_normalized
from nnef_hw.frontend.onnx.operators.windows import conv

__all__: list[str] = []

Parameters = list[float]


def _clip(call: OnnxCall, x: Value, parameters: Parameters) -> Value:
    return call.emit("clamp", x, *parameters)


def _leaky_relu(call: OnnxCall, x: Value, parameters: Parameters) -> Value:
    return call.emit("leaky_relu", x, alpha=parameters[0])


def _hard_sigmoid(call: OnnxCall, x: Value, parameters: Parameters) -> Value:
    return hard_sigmoid(call, x, *parameters)


def _plain(op: str) -> Callable[[OnnxCall, Value, Parameters], Value]:
    return lambda call, x, parameters: call.emit(op, x)


_ACTIVATIONS: dict[str, tuple[int, Callable[[OnnxCall, Value, Parameters], Value]]] = {
    "Clip": (2, _clip),
    "HardSigmoid": (2, _hard_sigmoid),
    "LeakyRelu": (1, _leaky_relu),
    "Relu": (0, _plain("relu")),
    "Sigmoid": (0, _plain("sigmoid")),
    "Tanh": (0, _plain("tanh")),
}
"""Number of parameters and function, by the name of the activation."""


def _activated(call: OnnxCall, x: Value, parameters: Parameters) -> Value:
    """Apply the activation that is joined; ONNX gives it no defaults here."""
    name = call.attr("activation") or ""
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise call.unsupported(
            f"the activation {name!r} is not supported", f"use one of {', '.join(_ACTIVATIONS)}"
        )
    count, function = _ACTIVATIONS[name]
    if len(parameters) != count:
        raise call.error(f"the activation {name} has {len(parameters)} parameters, not {count}")
    return function(call, x, parameters)


@lowers("FusedConv", 1, domain=MICROSOFT)
def fused_conv(call: OnnxCall) -> Value:
    """``activation(conv(X, W, B) + Z)``."""
    result: Value = conv(call.on(*call.arguments[:3]))
    added = call.input(3)
    if added is not None:
        result = call.spread("add", result, added)
    return _activated(call, result, call.attr("activation_params") or [])


@lowers("FusedGemm", 1, domain=MICROSOFT)
def fused_gemm(call: OnnxCall) -> Value:
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    given = [call.attr(name) for name in names]
    result: Value = gemm(call)
    return _activated(call, result, [value for value in given if value is not None])


@lowers("FusedMatMul", 1, domain=MICROSOFT)
def fused_matmul(call: OnnxCall) -> Value:
    """``alpha * A B`` of matrices that may be transposed, or have the batch behind the rows."""
    a, b = (_turned(call, call.required(index), name) for index, name in enumerate(("A", "B")))
    result = matmul(call, a, b)
    alpha = call.attr("alpha")
    return result if alpha == 1 else call.emit("mul", result, alpha)


def _turned(call: OnnxCall, x: Value, name: str) -> Value:
    """Return a factor as rows and columns behind its batch."""
    axes = list(range(x.rank))
    if call.attr(f"transBatch{name}") and x.rank > 2:
        axes = [*axes[1:-1], axes[0], axes[-1]]
    if call.attr(f"trans{name}") and x.rank > 1:
        axes[-2:] = axes[:-3:-1]
    return call.transposed(x, axes)


@lowers("Gelu", 1, domain=MICROSOFT)
def gelu(call: OnnxCall) -> Value:
    return gelu_of(call, call.required(0), is_tanh=False)


@lowers("BiasGelu", 1, domain=MICROSOFT)
def bias_gelu(call: OnnxCall) -> Value:
    return gelu_of(call, call.spread("add", call.required(0), call.required(1)), is_tanh=False)


@lowers("FastGelu", 1, domain=MICROSOFT)
def fast_gelu(call: OnnxCall) -> Value:
    x, bias = call.required(0), call.input(1)
    return gelu_of(call, x if bias is None else call.spread("add", x, bias), is_tanh=True)


@lowers("QuickGelu", 1, domain=MICROSOFT)
def quick_gelu(call: OnnxCall) -> Value:
    """``x * sigmoid(alpha * x)``."""
    x = call.required(0)
    gate = call.emit("sigmoid", call.emit("mul", x, call.attr("alpha")))
    return call.emit("mul", x, gate)


@lowers("SkipLayerNormalization", 1, domain=MICROSOFT)
def skip_layer_normalization(call: OnnxCall) -> list[Value | None]:
    """Normalize the last axis of a sum, which is the last result."""
    total = _total(call, 4)
    scale, offset = call.required(2), call.input(3)
    return [*layer_normalized(call, total, scale, offset, total.rank - 1), total]


@lowers("SimplifiedLayerNormalization", 1, domain=MICROSOFT)
def simplified_layer_normalization(call: OnnxCall) -> list[Value | None]:
    x = call.required(0)
    axis = call.axis(call.attr("axis"), x.rank)
    y, inverse = rms_normalized(call, x, call.required(1), axis)
    return [y, inverse]


@lowers("SkipSimplifiedLayerNormalization", 1, domain=MICROSOFT)
def skip_simplified_layer_normalization(call: OnnxCall) -> list[Value | None]:
    """Divide the last axis of a sum by its root mean square."""
    total = _total(call, 3)
    y, inverse = rms_normalized(call, total, call.required(2), total.rank - 1)
    return [y, None, inverse, total]


def _total(call: OnnxCall, bias: int) -> Value:
    """Return the sum of the first two arguments, and of a bias if there is one."""
    total = call.spread("add", call.required(0), call.required(1))
    added = call.input(bias)
    return total if added is None else call.spread("add", total, added)
