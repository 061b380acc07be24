"""Single operators on codes in various formats, for what TensorFlow Lite's kernels make of them."""

from __future__ import annotations

from itertools import product

import numpy as np
from tflite_quantized_cases import QuantizedCase

__all__ = ["FORMATS", "convolution", "kernel_cases"]

PAIRS = (((0.05, 3), (0.03, -20), (0.04, 5)), ((0.02, 0), (0.1, -128), (0.1, -128)))
"""Scale and zero point of both operands and of the result."""
FORMATS = (((0.04, 5), (0.037, -3)), ((0.04, -20), (0.1, 9)))
"""Those of an operand and of the result."""
MEANS = ((0.03, -20), (0.05, 3), (0.02, -128))
AXES = ([1, 2], [3], [1, 3], [1, 2, 3])
FUNCTIONS = {"LEAKY_RELU": ("LeakyReluOptions", {"Alpha": 0.3}), "RELU": (None, {}),
             "QUANTIZE": (None, {})}  # fmt: skip
ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}


def convolution(dtype="int8", *, depthwise=False, activation="NONE", target=0.2):
    """Three by three pixels with SAME padding and stride 2: one row is added on either side."""
    op = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    case = QuantizedCase(f"{op}-{dtype}-{activation}", dtype)
    is_old = dtype == "uint8"
    x = case.input([1, 5, 6, 3], 0.05, 100 if is_old else 3)
    scale = 0.02 if is_old else np.linspace(0.01, 0.05, 6).tolist()
    shape, axis = ([1, 3, 3, 6], 3) if depthwise else ([6, 3, 3, 3], 0)
    w = case.constant(shape, scale, 120 if is_old else 0, axis)
    more = {"DepthMultiplier": 2} if depthwise else {}
    return case.done(case.op(
        op, [x, w, case.bias(x, w, 6)], [1, 3, 3, 6], target, 40,
        "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", StrideW=2, StrideH=2,
        FusedActivationFunction=ACTIVATIONS[activation], **more,
    ))  # fmt: skip


def _pairs():
    for op, (n, (first, second, target)) in product(("ADD", "SUB", "MUL"), enumerate(PAIRS)):
        case = QuantizedCase(f"{op}-int8-{n}")
        operands = [case.input([1, 300], *form) for form in (first, second)]
        yield case.done(case.op(op, operands, [1, 300], *target, f"{op.title()}Options"))


def _means():
    for n, (axes, target) in enumerate(product(AXES, MEANS)):
        shape = [1, 4, 4, 16] if n % 2 else [1, 7, 5, 16]
        case = QuantizedCase(f"MEAN-{shape[1]}-{axes}-{target[0]}")
        numbers = case.model.constant("axes", np.array(axes, np.int32))
        left = [extent for axis, extent in enumerate(shape) if axis not in axes]
        yield case.done(case.op("MEAN", [case.input(shape), numbers], left, *target,
                                "ReducerOptions", KeepDims=False))  # fmt: skip


def _functions():
    for (op, (table, options)), (source, target) in product(FUNCTIONS.items(), FORMATS):
        case = QuantizedCase(f"{op}-int8-{target[0]}")
        x = case.input([1, 256], *source)
        case.inputs = [np.arange(-128, 128)[None].astype(np.int8)]
        yield case.done(case.op(op, [x], [1, 256], *target, table, **options))


def kernel_cases():
    """Return the cases by name."""
    cases = [*_pairs(), *_means(), *_functions()]
    for depthwise in (False, True):
        cases += [convolution(depthwise=depthwise, activation=name) for name in ACTIVATIONS]
        cases.append(convolution("uint8", depthwise=depthwise))
    return {case.name: case for case in cases}
