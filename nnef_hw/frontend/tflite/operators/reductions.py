"""Reductions."""

from __future__ import annotations

from functools import partial

from nnef_hw.arithmetic.records import Fields
from nnef_hw.frontend.tflite.file.model import INT64
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import add_lowering
from nnef_hw.frontend.tflite.lowering.values import Value

__all__: list[str] = []


def _kept(call: TfliteCall, value: Value, axes: list[int], *, keep: bool) -> Value:
    """Drop reduced dimensions, which NNEF keeps, unless they are to be kept."""
    if keep or not axes:
        return value
    shape = [extent for axis, extent in enumerate(value.shape) if axis not in axes]
    return call.reshaped(value, shape)


def _reduced(op: str, call: TfliteCall) -> Value:
    x = call.required(0)
    axes = sorted({call.axis(axis, x.rank) for axis in call.integers(1, "the axes")})
    attrs: Fields = {"normalize": False} if op == "sum_reduce" else {}
    if not axes:
        return x
    if x.rank > 2 and x.rank - 1 not in axes:
        x = call.image(x)
    y = call.emit(op, x, axes=sorted(x.stored_axis(axis) for axis in axes), **attrs)
    return _kept(call, y, axes, keep=bool(call.option("KeepDims")))


for _name, (_op, _newest) in {
    "MEAN": ("mean_reduce", 3),
    "REDUCE_ALL": ("all_reduce", 1),
    "REDUCE_ANY": ("any_reduce", 1),
    "REDUCE_MAX": ("max_reduce", 3),
    "REDUCE_MIN": ("min_reduce", 3),
    "REDUCE_PROD": ("product_reduce", 2),
    "SUM": ("sum_reduce", 2),
}.items():
    add_lowering(_name, partial(_reduced, _op), _newest)


def _index(op: str, call: TfliteCall) -> Value:
    x = call.required(0)
    [axis] = call.integers(1, "the axis")
    axis = call.axis(axis, x.rank)
    y = call.emit(op, x, element=INT64, axes=[x.stored_axis(axis)])
    return _kept(call, y, [axis], keep=False)


for _name, _op in (("ARG_MAX", "argmax_reduce"), ("ARG_MIN", "argmin_reduce")):
    add_lowering(_name, partial(_index, _op), newest=3)
