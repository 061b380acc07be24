"""Operators whose result is known from attributes, shapes and constants alone."""

from __future__ import annotations

import math

import numpy as np

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.frontend.onnx.file.model import (
    ELEMENT_TYPES,
    FLOAT32,
    INT64,
    Constant,
    ElementType,
    as_data,
)
from nnef_hw.frontend.onnx.file.tensors import MAX_GENERATED, is_possible
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__: list[str] = []


_MAX_UNIFORM = 1 << 27
"""Elements of a constant that are all the same, which takes no memory."""


def _checked(call: OnnxCall, shape: list[int], most: int = MAX_GENERATED) -> list[int]:
    if not is_possible(shape, most):
        raise call.error(
            f"the shape {shape} is not possible", f"at most {most} elements are supported"
        )
    return shape


@lowers("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
def constant(call: OnnxCall) -> Value:
    forms = [value for value in call.node.attrs.values() if value is not None]
    if len(forms) != 1:
        raise call.error(f"it has {len(forms)} values, not one")
    ((name, value),) = call.node.attrs.items()
    if isinstance(value, Constant):
        return call.variable(value)
    types: dict[str, ElementType] = {
        "value_float": FLOAT32, "value_floats": FLOAT32, "value_int": INT64, "value_ints": INT64,
    }  # fmt: skip
    if name not in types:
        raise call.unsupported("strings are not supported")
    return call.constant(value, types[name])


@lowers("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def constant_of_shape(call: OnnxCall) -> Value:
    shape = _checked(call, call.integers(0, "the shape") or [], _MAX_UNIFORM)
    value: Constant = call.attr("value", Constant(np.zeros(1, np.float32), FLOAT32))
    if value.data.size != 1:
        raise call.error(f"the value has {value.data.size} elements, not 1")
    number = as_data(value.data.reshape(-1)[0], value.type)
    return call.constant(np.broadcast_to(number, shape), value.type)


@lowers("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def shape_of(call: OnnxCall) -> Value:
    shape = call.required(0).shape
    return call.constant(shape[slice(call.attr("start", 0), call.attr("end"))], INT64)


@lowers("Size", 1, 13, 19, 21, 23, 24, 25)
def size(call: OnnxCall) -> Value:
    return call.constant(call.required(0).volume, INT64)


@lowers("Range", 11, 27)
def range_of(call: OnnxCall) -> Value:
    start, limit, delta = (
        call.number(index, what)
        for index, what in enumerate(("the start", "the limit", "the step"))
    )
    if not delta or not all(map(math.isfinite, (start, limit, delta))):
        raise call.error(f"there is no range from {start} to {limit} in steps of {delta}")
    count = max(math.ceil((limit - start) / delta), 0)
    (count,) = _checked(call, [count])
    return call.constant(start + np.arange(count) * delta, call.required(0).type)


@lowers("EyeLike", 9, 22)
def eye_like(call: OnnxCall) -> Value:
    x = call.required(0)
    if x.rank != 2:
        raise call.error(f"the input has rank {x.rank}, not 2")
    element = x.type if "dtype" not in call.node.attrs else ELEMENT_TYPES.get(call.attr("dtype"))
    if element is None:
        raise call.unsupported("its element type is not supported")
    return call.constant(np.eye(x.shape[0], x.shape[1], k=call.attr("k")), element)


@lowers("NonZero", 9, 13)
def non_zero(call: OnnxCall) -> Value:
    data: AttributeValue = call.constant_value(0, "the input")
    return call.constant(np.array(np.nonzero(np.atleast_1d(data))), INT64)
