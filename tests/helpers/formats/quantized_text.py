"""Quantized ONNX models in ONNX's text form."""

import re


def net(body, extra="", shape="1,4", results="float[1,4] y"):
    """Return a model of an input ``x`` with a scale s and a zero point z, and others t and u.

    ``Q(v)`` and ``D(v)`` in the body quantize and dequantize by s and z, ``P(v)`` and ``E(v)`` by
    t and u.
    """
    for short, op, steps in (
        ("Q", "QuantizeLinear", "s, z"),
        ("D", "DequantizeLinear", "s, z"),
        ("P", "QuantizeLinear", "t, u"),
        ("E", "DequantizeLinear", "t, u"),
    ):
        body = re.sub(rf"\b{short}\((\w+)\)", rf"{op}(\1, {steps})", body)
    constants = "float s = {0.5}, uint8 z = {3}, float t = {0.25}, uint8 u = {7}"
    return message(f"net (float[{shape}] x) => ({results}) <{constants}{extra}> {{ {body} }}")


def message(text):
    """Return the model of a text that may use operators of onnxruntime."""
    import onnx

    imports = '"" : 21, "com.microsoft" : 1'
    return onnx.parser.parse_model(f"<ir_version: 9, opset_import: [{imports}]> {text}")
