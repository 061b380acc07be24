"""Operators that change the element type, or nothing."""

from __future__ import annotations

import numpy as np

from nnef_hw.frontend.onnx.file.model import BOOL, ELEMENT_TYPES
from nnef_hw.frontend.onnx.file.tensors import type_name
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__: list[str] = []


@lowers("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def cast(call: OnnxCall) -> Value:
    element = ELEMENT_TYPES.get(call.attr("to"))
    if element is None:
        raise call.unsupported(f"it converts to the {type_name(call.attr('to'))}")
    return call.convert(call.required(0), element)


@lowers("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(call: OnnxCall) -> Value:
    return call.convert(call.required(0), call.required(1).type)


@lowers("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(call: OnnxCall) -> Value:
    return call.required(0)


@lowers("Dropout", 6, 7, 10, 12, 13, 22)
def dropout(call: OnnxCall) -> list[Value | None]:
    """Dropout of a trained network: nothing is dropped."""
    x = call.required(0)
    training = call.since == 6 and not call.attr("is_test")
    ratio = call.attr("ratio")
    if call.since >= 12:
        training = bool(call.optional_number(2, "the training mode"))
        ratio = call.optional_number(1, "the ratio") if training else None
        ratio = 0.5 if ratio is None else ratio
    if training and ratio:
        raise call.unsupported("it is in training mode", "export the model for inference")
    mask = None
    if call.wants(1):
        element = x.type if call.since < 10 else BOOL
        mask = call.constant(np.ones(x.shape), element)
    return [x, mask]
