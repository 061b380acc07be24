"""Declarations of the operators that onnxruntime adds: the ``onnx`` package has none of them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx.defs import OpSchema

__all__ = ["MICROSOFT", "microsoft_schema"]

MICROSOFT = "com.microsoft"
"""Domain of onnxruntime's own operators."""

_UNARY = "X X_scale X_zero_point? Y_scale Y_zero_point?"
_BINARY = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?"
_OPTIONAL, _REQUIRED = ("INTS", False), ("INTS", True)
_NUMBER = ("INT", True)
_WINDOW = {"auto_pad": "NOTSET", "channels_last": 0, "pads": _OPTIONAL, "strides": _OPTIONAL}

_DECLARATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "DequantizeLinear": ("x x_scale x_zero_point?", {"axis": 1}),
    "QGemm": (
        "A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point?",
        {"alpha": 1.0, "transA": 0, "transB": 0},
    ),
    "QLinearAdd": (_BINARY, {}),
    "QLinearAveragePool": (
        _UNARY,
        {**_WINDOW, "ceil_mode": 0, "count_include_pad": 0, "kernel_shape": _REQUIRED},
    ),
    "QLinearConcat": ("Y_scale Y_zero_point inputs*", {"axis": _NUMBER}),
    "QLinearConv": (
        "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
        {**_WINDOW, "dilations": _OPTIONAL, "group": 1, "kernel_shape": _OPTIONAL},
    ),
    "QLinearGlobalAveragePool": (_UNARY, {"channels_last": 0}),
    "QLinearLeakyRelu": (_UNARY, {"alpha": 0.01}),
    "QLinearMul": (_BINARY, {}),
    "QLinearReduceMean": (_UNARY, {"axes": _REQUIRED, "keepdims": _NUMBER}),
    "QLinearSigmoid": (_UNARY, {}),
    "QLinearSoftmax": (_UNARY, {"axis": -1, "opset": _NUMBER}),
    "QLinearWhere": (
        "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point",
        {},
    ),
    "QuantizeLinear": ("x y_scale y_zero_point?", {"axis": 1}),
}
"""Arguments (``?`` optional, ``*`` any number); attributes: defaults, or type and if required."""


@cache
def microsoft_schema(op: str) -> OpSchema | None:
    """Return the declaration of an operator of onnxruntime's domain; None if it is not known."""
    from onnx import helper
    from onnx.defs import OpSchema

    if op not in _DECLARATIONS:
        return None
    options, parameter = OpSchema.FormalParameterOption, OpSchema.FormalParameter
    kinds = {"?": options.Optional, "*": options.Variadic}
    arguments, attrs = _DECLARATIONS[op]
    inputs = [
        parameter(
            name.rstrip("?*"),
            "T",
            param_option=kinds.get(name[-1], options.Single),
            is_homogeneous=False,
        )
        for name in arguments.split()
    ]
    attributes = [
        OpSchema.Attribute(name, OpSchema.AttrType[value[0]], required=value[1])
        if isinstance(value, tuple)
        else OpSchema.Attribute(name, helper.make_attribute(name, value))
        for name, value in attrs.items()
    ]
    return OpSchema(
        op,
        MICROSOFT,
        1,
        inputs=inputs,
        outputs=[parameter("Y", "T")],
        type_constraints=[("T", ["tensor(float)"], "any")],
        attributes=attributes,
    )
