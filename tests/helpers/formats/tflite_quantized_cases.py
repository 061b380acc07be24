"""Quantized models with codes for inputs; TensorFlow Lite's codes are in ``tests/cases``."""

from __future__ import annotations

import zlib

import numpy as np
from tflite_file import TfliteFile

__all__ = ["quantized_cases"]

LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
ONE_BY_ONE = {"StrideW": 1, "StrideH": 1}


class QuantizedCase:
    """A model of codes under construction; noise depends on its name alone."""

    def __init__(self, name, dtype="int8"):
        self.name, self.dtype = name, dtype
        self.model = TfliteFile()
        self.inputs = []
        self._rng = np.random.default_rng(zlib.crc32(name.encode()))
        self._formats = {}

    def input(self, shape, scale=0.05, zero=3):
        lo, hi = LIMITS[self.dtype]
        codes = self._rng.integers(lo, hi + 1, (4, *shape[1:]))
        self.inputs.append(codes.astype(self.dtype))
        found = self.model.input(f"x{len(self.inputs)}", shape, self.dtype, scale=scale, zero=zero)
        self._formats[found] = scale, zero
        return found

    def constant(self, shape, scale, zero=0, axis=0):
        lo, hi = (0, 255) if self.dtype == "uint8" else (-127, 127)
        data = self._rng.integers(lo, hi + 1, shape)
        data = data.astype("uint8" if self.dtype == "uint8" else "int8")
        name = f"w{len(self.model.tensors)}"
        return self.model.constant(name, data, scale=scale, zero=zero, axis=axis)

    def bias(self, x, weights, count):
        """Return a bias in steps of the input's scale times the filter's."""
        data = self._rng.integers(-2000, 2000, count)
        data = data.astype(np.int64 if self.dtype == "int16" else np.int32)
        scale = np.float32(self._formats[x][0]) * np.float32(self.model.tensors[weights]["scale"])
        return self.model.constant(f"b{len(self.model.tensors)}", data, scale=scale)

    def op(self, op, inputs, shape, scale=None, zero=None, table=None, **values):
        old = self._formats.get(inputs[0], (0.05, 3))
        form = old[0] if scale is None else scale, old[1] if zero is None else zero
        name = f"{op.lower()}_{len(self.model.tensors)}"
        options = (table, values) if table else ()
        found = self.model.op(
            op, inputs, name, list(shape), self.dtype, options, scale=form[0], zero=form[1]
        )
        self._formats[found] = form
        return found

    def conv(self, x, shape, kernel, scale, zero, activation=0):
        """Convolve with SAME padding, per channel where the type allows it."""
        count, channels = shape[-1], self.model.tensors[x]["shape"][-1]
        one = self.dtype == "uint8"
        scales = 0.01 if one else np.linspace(0.004, 0.02, count).tolist()
        w = self.constant([count, kernel, kernel, channels], scales, 120 if one else 0)
        operands = [x, w, self.bias(x, w, count)]
        return self.op("CONV_2D", operands, shape, scale, zero, "Conv2DOptions",
                       **ONE_BY_ONE, FusedActivationFunction=activation)  # fmt: skip

    def resized(self, x, shape, factor, half):
        """Interpolate rows and columns by a whole factor."""
        n, rows, columns, channels = shape
        extents = [rows * factor, columns * factor]
        size = self.model.constant("size", np.array(extents, np.int32))
        return self.op("RESIZE_BILINEAR", [x, size], [n, *extents, channels],
                       table="ResizeBilinearOptions", HalfPixelCenters=half)  # fmt: skip

    def done(self, *results):
        self.model.output(*results)
        return self


def network(name="network", dtype="int8"):
    """Convolutions, a residual, a mean, a linear layer and a softmax."""
    case = QuantizedCase(name, dtype)
    middle = 128 if dtype == "uint8" else 0
    x = case.input([1, 5, 6, 2], 0.05, middle + 3)
    a = case.conv(x, [1, 5, 6, 4], 3, 0.1, middle - 100, activation=3)
    scales = 0.02 if dtype == "uint8" else [0.01, 0.02, 0.015, 0.03]
    w = case.constant([1, 3, 3, 4], scales, middle, 3)
    b = case.op("DEPTHWISE_CONV_2D", [a, w, case.bias(a, w, 4)], [1, 5, 6, 4], 0.2, middle - 4,
                "DepthwiseConv2DOptions", **ONE_BY_ONE, DepthMultiplier=1)  # fmt: skip
    y = case.op("ADD", [a, b], [1, 5, 6, 4], 0.21, middle - 20, "AddOptions",
                FusedActivationFunction=1)  # fmt: skip
    axes = case.model.constant("axes", np.array([1, 2], np.int32))
    y = case.op("MEAN", [y, axes], [1, 4], 0.1, middle - 60, "ReducerOptions", KeepDims=False)
    w = case.constant([3, 4], 0.02, middle)
    y = case.op("FULLY_CONNECTED", [y, w, case.bias(y, w, 3)], [1, 3], 0.3, middle + 11,
                "FullyConnectedOptions")  # fmt: skip
    low = LIMITS[dtype][0]
    return case.done(case.op("SOFTMAX", [y], [1, 3], 1 / 256, low, "SoftmaxOptions", Beta=1.0))


def _pools(dtype):
    zero = 130 if dtype == "uint8" else -30
    for op in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        for padding, shape in ((0, [1, 3, 4, 3]), (1, [1, 2, 3, 3])):
            case = QuantizedCase(f"{op}-{padding}-{dtype}", dtype)
            x = case.input([1, 5, 7, 3], 0.05, zero if dtype != "int16" else 0)
            yield case.done(case.op(
                op, [x], shape, table="Pool2DOptions", StrideW=2, StrideH=2, FilterWidth=3,
                FilterHeight=3, Padding=padding,
            ))  # fmt: skip


def _moves():
    case = QuantizedCase("CONCATENATION-PAD")
    x = case.input([1, 3, 4, 2])
    y = case.op("CONCATENATION", [x, case.input([1, 3, 4, 2])], [1, 3, 4, 4],
                table="ConcatenationOptions", Axis=3)  # fmt: skip
    pads = case.model.constant("pads", np.array([[0, 0], [1, 0], [2, 1], [0, 0]], np.int32))
    yield case.done(case.op("PAD", [y, pads], [1, 4, 7, 4]))
    case = QuantizedCase("MAXIMUM-MINIMUM")
    x, y = case.input([1, 3, 4, 2]), case.input([1, 3, 4, 2])
    highest = case.op("MAXIMUM", [x, y], [1, 3, 4, 2])
    yield case.done(case.op("MINIMUM", [highest, case.input([1, 3, 4, 2])], [1, 3, 4, 2]))
    case = QuantizedCase("gate")
    x = case.conv(case.input([1, 3, 4, 2]), [1, 3, 4, 3], 3, 0.2, -5)
    axes = case.model.constant("axes", np.array([1, 2], np.int32))
    mean = case.op("MEAN", [x, axes], [1, 1, 1, 3], 0.1, 4, "ReducerOptions", KeepDims=True)
    gate = case.op("LOGISTIC", [mean], [1, 1, 1, 3], 1 / 256, -128)
    yield case.done(case.op("MUL", [x, gate], [1, 3, 4, 3], 0.1, -7, "MulOptions"))
    case = QuantizedCase("HARD_SWISH")
    x = case.input([1, 16, 16, 1])
    yield case.done(case.op("HARD_SWISH", [x], [1, 16, 16, 1], 0.04, -110))
    case = QuantizedCase("RESHAPE-SOFTMAX")
    x = case.conv(case.input([1, 3, 4, 2]), [1, 3, 4, 6], 1, 0.05, -5)
    shape = case.model.constant("shape", np.array([1, -1, 2], np.int32))
    y = case.op("RESHAPE", [x, shape], [1, 36, 2])
    yield case.done(case.op("SOFTMAX", [y], [1, 36, 2], 1 / 256, -128, "SoftmaxOptions", Beta=1.0))


def _transposed():
    for name, padding, scale in (("rows", 0, [0.01, 0.02, 0.015]), ("valid", 1, 0.02)):
        case = QuantizedCase(f"TRANSPOSE_CONV-{name}")
        shape = [1, 8, 10, 3] if padding == 0 else [1, 9, 11, 3]
        x, w = case.input([1, 4, 5, 4]), case.constant([3, 3, 3, 4], scale, 0, 0)
        wanted = case.model.constant("shape", np.array(shape, np.int32))
        yield case.done(case.op(
            "TRANSPOSE_CONV", [wanted, w, x, case.bias(x, w, 3)], shape, 0.2, 5,
            "TransposeConvOptions", StrideW=2, StrideH=2, Padding=padding,
        ))  # fmt: skip


def _constants():
    for op, shape in (("ADD", [3]), ("ADD", []), ("MUL", [3]), ("SUB", [3])):
        case = QuantizedCase(f"{op}-constant-{len(shape)}")
        x = case.conv(case.input([1, 8, 9, 2]), [1, 8, 9, 3], 1, 0.2, -5)
        operands = [x, case.constant(shape, 0.07, -11)]
        options = f"{op.title()}Options"
        yield case.done(case.op(op, operands, [1, 8, 9, 3], 0.3, 1, options))
    case = QuantizedCase("constant-SUB")
    x = case.input([1, 8, 9, 3])
    first = case.constant([1, 1, 1, 3], 0.07, -11)
    yield case.done(case.op("SUB", [first, x], [1, 8, 9, 3], 0.1, 1, "SubOptions"))


def _resized():
    for name, factor, half in (("half", 2, True), ("corner", 2, False), ("eighths", 8, True)):
        case = QuantizedCase(f"RESIZE_BILINEAR-{name}")
        x = case.input([1, 2, 3, 2], 0.05, 7)
        yield case.done(case.resized(x, [1, 2, 3, 2], factor, half))
    for first, second in (((0.1, -5), (0.04, 2)), ((0.04, 2), (0.1, -5))):
        case = QuantizedCase(f"SQUARED_DIFFERENCE-{first[0]}")
        x, y = case.input([1, 4, 5, 3], *first), case.input([1, 4, 5, 3], *second)
        yield case.done(case.op("SQUARED_DIFFERENCE", [x, y], [1, 4, 5, 3], 0.3, -100))
    case = QuantizedCase("resized-variance")
    x = case.input([1, 2, 3, 4], 0.05, 7)
    axes = case.model.constant("axes", np.array([3], np.int32))
    mean = case.op("MEAN", [x, axes], [1, 2, 3, 1], 0.03, -9, "ReducerOptions", KeepDims=True)
    y = case.op("SQUARED_DIFFERENCE", [x, mean], [1, 2, 3, 4], 0.2, -128)
    yield case.done(case.resized(y, [1, 2, 3, 4], 2, True))


def _functions():
    """Functions in a format of their own, for every code of the input."""
    options = {
        "ABS": (None, {}),
        "GELU": ("GeluOptions", {"Approximate": False}),
        "RELU_N1_TO_1": (None, {}),
        "SOFTMAX": ("SoftmaxOptions", {"Beta": 0.7}),
        "SQRT": (None, {}),
    }
    for op, (table, values) in options.items():
        case = QuantizedCase(f"{op}-function")
        x = case.input([1, 8, 32], 0.05, -128 if op == "SQRT" else 3)
        case.inputs = [np.arange(-128, 128).reshape(1, 8, 32).astype(np.int8)]
        target = (1 / 256, -128) if op == "SOFTMAX" else (0.03, -40)
        yield case.done(case.op(op, [x], [1, 8, 32], *target, table, **values))
    for name, count in (("one", 1), ("channels", 3)):
        case = QuantizedCase(f"PRELU-{name}")
        x = case.conv(case.input([1, 4, 5, 2]), [1, 4, 5, 3], 1, 0.2, -5)
        slopes = case.constant([1, 1, count], 0.01, 5)
        y = case.op("PRELU", [x, slopes], [1, 4, 5, 3], 0.17, 9)
        w = case.constant([5, 3], [0.01, 0.02, 0.015, 0.03, 0.025])
        y = case.op("FULLY_CONNECTED", [y, w, case.bias(y, w, 5)], [1, 4, 5, 5], 0.1, 4,
                    "FullyConnectedOptions", KeepNumDims=True)  # fmt: skip
        yield case.done(case.op("GELU", [y], [1, 4, 5, 5], 0.06, -100, "GeluOptions"))
    case = QuantizedCase("REDUCE_MIN")
    axes = case.model.constant("axes", np.array([1, 2], np.int32))
    yield case.done(case.op("REDUCE_MIN", [case.input([1, 4, 5, 3]), axes], [1, 3],
                            table="ReducerOptions"))  # fmt: skip
    case = QuantizedCase("CONCATENATION-scales", "uint8")
    parts = [case.input([1, 8, 9, 2], 0.05, 131), case.input([1, 8, 9, 1], 0.033, 98)]
    yield case.done(case.op("CONCATENATION", parts, [1, 8, 9, 3], 0.061, 120,
                            "ConcatenationOptions", Axis=3))  # fmt: skip
    case = QuantizedCase("BATCH_MATMUL")
    x, y = case.input([1, 2, 8, 16], 0.05, 3), case.input([1, 2, 6, 16], 0.03, -20)
    yield case.done(case.op("BATCH_MATMUL", [x, y], [1, 2, 8, 6], 0.05, 4, "BatchMatMulOptions",
                            AdjY=True))  # fmt: skip
    case = QuantizedCase("attention")
    x = case.input([1, 3, 4])
    y = case.op("BATCH_MATMUL", [x, x], [1, 3, 3], 0.3, 0, "BatchMatMulOptions", AdjY=True)
    y = case.op("SOFTMAX", [y], [1, 3, 3], 1 / 256, -128, "SoftmaxOptions", Beta=1.0)
    yield case.done(case.op("BATCH_MATMUL", [y, x], [1, 3, 4], 0.05, 7, "BatchMatMulOptions"))
    case = QuantizedCase("RESHAPE-FULLY_CONNECTED")
    x = case.input([1, 4, 4, 4])
    shape = case.model.constant("shape", np.array([1, 64], np.int32))
    y = case.op("RESHAPE", [x, shape], [1, 64])
    w = case.constant([600, 64], np.linspace(0.005, 0.02, 600).tolist())
    yield case.done(case.op("FULLY_CONNECTED", [y, w, case.bias(x, w, 600)], [1, 600], 0.113, 4,
                            "FullyConnectedOptions"))  # fmt: skip
    case = QuantizedCase("BATCH_MATMUL-row")
    x, w = case.input([1, 1, 64]), case.constant([1, 64, 600], 0.01)
    yield case.done(case.op("BATCH_MATMUL", [x, w], [1, 1, 600], 0.0113, 4, "BatchMatMulOptions"))
    case = QuantizedCase("FULLY_CONNECTED-rows")
    x = case.input([1, 4, 64])
    w = case.constant([300, 64], np.linspace(0.005, 0.02, 300).tolist())
    yield case.done(case.op("FULLY_CONNECTED", [x, w, case.bias(x, w, 300)], [1, 4, 300], 0.113, 4,
                            "FullyConnectedOptions", KeepNumDims=True))  # fmt: skip


def _resized_otherwise():
    sizes = {
        "aligned": ([9, 17], {"AlignCorners": True}),
        "fewer": ([1, 5], {}),
        "thirds": ([9, 15], {}),
        "fractions": ([7, 11], {"HalfPixelCenters": False}),
        "aligned-otherwise": ([5, 6], {"AlignCorners": True}),
        "sixteenths": ([48, 5], {}),
    }
    for name, (extents, values) in sizes.items():
        case = QuantizedCase(f"RESIZE_BILINEAR-{name}")
        shape = [1, 4, 10, 2] if name == "fewer" else [1, 3, 5, 2]
        size = case.model.constant("size", np.array(extents, np.int32))
        options = values or {"HalfPixelCenters": True}
        yield case.done(case.op("RESIZE_BILINEAR", [case.input(shape), size], [1, *extents, 2],
                                table="ResizeBilinearOptions", **options))  # fmt: skip


def lstm(name, steps=3, inputs=4, size=5, cell=2.0**-11, clip=0.0, weight=0.01, **options):
    """Return an LSTM of codes, behind which a linear layer reads the last step."""
    case = QuantizedCase(name)
    shape = [steps, 1, inputs] if options.get("TimeMajor") else [1, steps, inputs]
    x = case.input(shape, 0.02, 7)
    case.inputs = [codes.reshape(len(codes), *shape[1:]) for codes in case.inputs]
    model, result = case.model, (0.0078, -5)
    scales = np.linspace(weight, 2 * weight, 4).tolist()
    operands = [x, *(case.constant([size, inputs], scale) for scale in scales)]
    operands += [case.constant([size, size], scale) for scale in reversed(scales)] + [-1] * 3
    for scale in scales:
        data = case._rng.integers(-4000, 4000, size).astype(np.int32)
        operands.append(model.constant(f"b{len(model.tensors)}", data, scale=0.02 * scale))
    operands += [-1] * 2
    formats = (("hidden", "int8", *result), ("cell", "int16", cell, 0))
    for what, dtype, scale, zero in formats:
        operands.append(model.tensor(f"{what}_{name}", [1, size], dtype, scale=scale, zero=zero,
                                     is_variable=True))  # fmt: skip
    between = [model.tensor(f"gate{n}", [0], "int16", scale=2.0**-12) for n in range(4)]
    between.append(model.tensor("hidden", [0], "int8", scale=result[0], zero=result[1]))
    values = {"FusedActivationFunction": 4, "CellClip": clip, **options}
    y = model.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", [*operands, -1, -1, -1, -1], "states",
        [*shape[:2], size], "int8", ("UnidirectionalSequenceLSTMOptions", values), between,
        scale=result[0], zero=result[1],
    )  # fmt: skip
    return case.done(y)


def _recurrent():
    yield lstm("LSTM")
    yield lstm("LSTM-one-step", steps=1, clip=1.5, cell=2.0**-12)
    yield lstm("LSTM-saturated", steps=4, weight=0.05, cell=2.0**-15)


def _wide():
    case = QuantizedCase("CONV_2D-int16", "int16")
    x = case.input([1, 4, 5, 2], 0.001, 0)
    yield case.done(case.conv(x, [1, 4, 5, 3], 3, 0.002, 0, activation=1))
    case = QuantizedCase("FULLY_CONNECTED-int16", "int16")
    x, w = case.input([1, 9], 0.001, 0), case.constant([60, 9], 0.01)
    options = "FullyConnectedOptions"
    y = case.op("FULLY_CONNECTED", [x, w, case.bias(x, w, 60)], [1, 60], 0.002, 0, options)
    yield case.done(y)
    for op, table in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        case = QuantizedCase(f"{op}-int16", "int16")
        more = {} if op == "MUL" else {"PotScaleInt16": False}
        x, y = case.input([1, 50], 0.001, 0), case.input([1, 50], 0.0007, 0)
        yield case.done(case.op(op, [x, y], [1, 50], 0.0012, 0, table, **more))

    for op in ("LOGISTIC", "TANH"):
        for name, scale in (("power", 2.0**-12), ("near", 2.0**-11 * 1.0003), ("any", 0.0007)):
            case = QuantizedCase(f"{op}-int16-{name}", "int16")
            x = case.input([1, 1024], scale, 0)
            codes = np.arange(-32768, 32768, 16) + case._rng.integers(0, 16, 4096)
            case.inputs = [codes.reshape(4, 1024).astype(np.int16)]
            yield case.done(case.op(op, [x], [1, 1024], 2.0**-15, 0))


def _quotients():
    """Every pair of codes in two formats, and operands that are constant or broadcast.

    No divisor is 0, of which the kernel stops.
    """
    pairs = np.array(np.meshgrid(np.arange(256), np.arange(256)), np.int64)
    for dtype, low, formats in (
        ("int8", -128, ((0.3, -12), (0.1, -128), (0.25, 0))),
        ("uint8", 0, ((0.05, 131), (0.04, 108), (0.05, 128))),
    ):
        case = QuantizedCase(f"DIV-{dtype}", dtype)
        first, second, target = formats
        operands = [case.input([1, 1 << 14], *form) for form in (first, second)]
        a, b = pairs.reshape(2, 4, -1) + low
        case.inputs = [x.astype(dtype) for x in (a, np.where(b == second[1], b + 1, b))]
        yield case.done(case.op("DIV", operands, [1, 1 << 14], *target, "DivOptions"))
    case = QuantizedCase("DIV-network")
    shape = [1, 4, 5, 3]
    a, b = case.input(shape), case.input([1, 1, 1, 3], 0.1, -128)
    case.inputs[1] = np.maximum(case.inputs[1], -120)
    ratio = case.op("DIV", [a, b], shape, 0.01, -9, "DivOptions", FusedActivationFunction=1)
    channels = case.constant([1, 1, 1, 3], 0.3, 2)
    growing = case.op("EXP", [ratio], shape, 0.02, -128)
    inverse = case.op("DIV", [channels, growing], shape, 0.3, 4, "DivOptions")
    number = case.constant([1], 0.1, -1)
    scaled = case.op("DIV", [inverse, number], shape, 0.03, 7, "DivOptions")
    growing = case.op("EXP", [scaled], shape, 0.1, -128)
    turned = case.op("DIV", [number, growing], shape, 0.3, -4, "DivOptions")
    yield case.done(case.op("DIV", [turned, channels], shape, 0.05, 0, "DivOptions"))


def _dilated():
    """Dilated windows of images and of sequences, as TensorFlow writes them."""
    case = QuantizedCase("SPACE_TO_BATCH_ND-image")
    model = case.model
    block = model.constant("block", np.array([2, 3], np.int32))
    pads = model.constant("pads", np.array([[2, 3], [3, 4]], np.int32))
    x = case.op("SPACE_TO_BATCH_ND", [case.input([1, 5, 5, 2]), block, pads], [6, 5, 4, 2])
    w = case.constant([3, 3, 3, 2], [0.01, 0.02, 0.015])
    y = case.op("CONV_2D", [x, w, case.bias(x, w, 3)], [6, 3, 2, 3], 0.2, 4, "Conv2DOptions",
                **ONE_BY_ONE, Padding=1, FusedActivationFunction=1)  # fmt: skip
    ends = model.constant("ends", np.array([[0, 1], [1, 0]], np.int32))
    yield case.done(case.op("BATCH_TO_SPACE_ND", [y, block, ends], [1, 5, 5, 3]))
    case = QuantizedCase("SPACE_TO_BATCH_ND-sequence")
    model = case.model
    block = model.constant("block", np.array([4], np.int32))
    pads = model.constant("pads", np.array([[8, 2]], np.int32))
    x = case.op("SPACE_TO_BATCH_ND", [case.input([1, 10, 3]), block, pads], [4, 5, 3])
    axis = model.constant("axis", np.array(1, np.int32))
    x = case.op("EXPAND_DIMS", [x, axis], [4, 1, 5, 3])
    w = case.constant([1, 1, 3, 3], [0.01, 0.02, 0.015], axis=3)
    y = case.op("DEPTHWISE_CONV_2D", [x, w, case.bias(x, w, 3)], [4, 1, 3, 3], 0.1, 4,
                "DepthwiseConv2DOptions", **ONE_BY_ONE, Padding=1, DepthMultiplier=1)  # fmt: skip
    shape = model.constant("shape", np.array([4, 3, 3], np.int32))
    y = case.op("RESHAPE", [y, shape], [4, 3, 3])
    ends = model.constant("ends", np.array([[0, 2]], np.int32))
    yield case.done(case.op("BATCH_TO_SPACE_ND", [y, block, ends], [1, 10, 3]))


def _wide_functions():
    """Of 16 bits, for many codes of the input."""
    for op, table, values in (
        ("QUANTIZE", None, {}),
        ("LEAKY_RELU", "LeakyReluOptions", {"Alpha": 0.3}),
        ("ABS", None, {}),
        ("RELU", None, {}),
    ):
        case = QuantizedCase(f"{op}-int16", "int16")
        x = case.input([1, 400], 0.001, 0)
        case.inputs[0][0, :4] = -32768, 32767, 0, -1
        yield case.done(case.op(op, [x], [1, 400], 0.0013, 0, table, **values))


def _widened():
    """Codes of 32 bits, which leave the network."""
    for scale in (2.0**-19, 0.00013, 3):
        case = QuantizedCase(f"QUANTIZE-int32-{scale:g}", "int16")
        x = case.input([1, 300], 0.0625, 0)
        case.inputs[0][0, :4] = -32768, 32767, 0, -1
        yield case.done(case.model.op("QUANTIZE", [x], "y", [1, 300], "int32", scale=scale))


def quantized_cases():
    """Return the cases by name: each has ``model`` and ``inputs``, one sample after the other."""
    cases = [network(), network("network-uint8", "uint8")]
    cases += [
        *_pools("int8"),
        *_pools("uint8"),
        *_pools("int16"),
        *_moves(),
        *_constants(),
        *_transposed(),
        *_resized(),
        *_resized_otherwise(),
        *_functions(),
        *_wide(),
        *_recurrent(),
        *_wide_functions(),
        *_dilated(),
        *_quotients(),
        *_widened(),
    ]
    return {case.name: case for case in cases}
