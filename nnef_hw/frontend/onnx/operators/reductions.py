"""Reductions; ONNX may drop the reduced dimensions, NNEF keeps them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnef_hw.arithmetic.records import AttributeValue, Fields
from nnef_hw.frontend.onnx.file.model import FLOAT32, INT64
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import add_lowering, lowers

__all__: list[str] = []

_Reduction = Callable[[OnnxCall, Value, list[int]], Value]


def _reduce(call: OnnxCall, x: Value, op: str, axes: list[int]) -> Value:
    attrs: Fields = {"normalize": False} if op == "sum_reduce" else {}
    return call.emit(op, x, axes=axes, **attrs)


def _sum(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return _reduce(call, x, "sum_reduce", axes)


def _mean(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    if x.type.dtype == "integer":
        return call.convert(_mean(call, call.convert(x, FLOAT32), axes), x.type)
    return _reduce(call, x, "mean_reduce", axes)


def _product(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return _reduce(call, x, "product_reduce", axes)


def _maximum(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return _reduce(call, x, "any_reduce" if x.type.dtype == "logical" else "max_reduce", axes)


def _minimum(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return _reduce(call, x, "all_reduce" if x.type.dtype == "logical" else "min_reduce", axes)


def _l1(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return _sum(call, call.emit("abs", x), axes)


def _sum_square(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return _sum(call, call.emit("sqr", x), axes)


def _l2(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return call.emit("sqrt", _sum_square(call, x, axes))


def _log_sum(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    return call.emit("log", _sum(call, x, axes))


def _log_sum_exp(call: OnnxCall, x: Value, axes: list[int]) -> Value:
    """Log of the sum of exponentials, the maximum taken out so that none overflows."""
    peak = _reduce(call, x, "max_reduce", axes)
    total = _sum(call, call.emit("exp", call.emit("sub", x, peak)), axes)
    return call.emit("add", call.emit("log", total), peak)


_NORMS = (1, 11, 13, 18)
_REDUCTIONS: dict[str, tuple[_Reduction, tuple[int, ...], float]] = {
    "ReduceSum": (_sum, (1, 11, 13), 0),
    "ReduceMean": (_mean, _NORMS, np.nan),
    "ReduceProd": (_product, _NORMS, 1),
    "ReduceMax": (_maximum, (1, 11, 12, 13, 18, 20), -np.inf),
    "ReduceMin": (_minimum, (1, 11, 12, 13, 18, 20), np.inf),
    "ReduceL1": (_l1, _NORMS, 0),
    "ReduceL2": (_l2, _NORMS, 0),
    "ReduceSumSquare": (_sum_square, _NORMS, 0),
    "ReduceLogSum": (_log_sum, (*_NORMS, 28), -np.inf),
    "ReduceLogSumExp": (_log_sum_exp, (*_NORMS, 28), -np.inf),
}
"""How each operator is lowered, in which versions, and what an empty set gives."""


def _lowering(reduction: _Reduction, of_nothing: float) -> AttributeValue:
    def lower(call: OnnxCall) -> Value:
        x = call.required(0)
        listed = call.attr("axes")
        if listed is None:
            listed = call.integers(1, "the axes") or []
        if not listed and call.attr("noop_with_empty_axes"):
            return x
        axes = sorted(call.axes(listed, x.rank)) or list(range(x.rank))
        if x.volume:
            result = reduction(call, x, axes) if axes else x
        else:
            result = _of_nothing(call, x, axes, of_nothing)
        if call.attr("keepdims") or not axes:
            return result
        return call.emit("squeeze", result, axes=axes)

    return lower


def _of_nothing(call: OnnxCall, x: Value, axes: list[int], value: float) -> Value:
    shape = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
    if x.type.dtype == "integer" and not np.isfinite(value):
        value = x.type.limits[0 if value < 0 else 1]
    if x.type.dtype == "logical":
        value = value > 0
    return call.constant(np.full(shape, value), x.type)


for _name, (_reduction, _since, _nothing) in _REDUCTIONS.items():
    add_lowering(_name, _since, _lowering(_reduction, _nothing))


def _arg_reduce(call: OnnxCall, op: str) -> Value:
    x = call.required(0)
    axis = call.axis(call.attr("axis"), x.rank)
    op += "_last" if call.attr("select_last_index") else ""
    result = call.emit(op, x, element=INT64, axes=[axis])
    return result if call.attr("keepdims") else call.emit("squeeze", result, axes=[axis])


@lowers("ArgMax", 1, 11, 12, 13)
def argmax(call: OnnxCall) -> Value:
    return _arg_reduce(call, "argmax_reduce")


@lowers("ArgMin", 1, 11, 12, 13)
def argmin(call: OnnxCall) -> Value:
    return _arg_reduce(call, "argmin_reduce")
