"""Models of an operator or two with inputs; TensorFlow Lite's results are in ``tests/cases``.

``scripts/record/record_tflite.py`` writes these with its reference kernels.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from tflite_file import TfliteFile

__all__ = ["RESULTS", "operator_cases"]

RESULTS = Path(__file__).parents[2] / "cases" / "tflite" / "operators.npz"

IMAGE = [1, 4, 5, 3]
"""What a convolution gives, so that its channels come first inside."""


class Case:
    """A model under construction; noise depends on its name alone."""

    def __init__(self, name):
        self.name = name
        self.model = TfliteFile()
        self.inputs = []
        self._rng = np.random.default_rng(zlib.crc32(name.encode()))

    def noise(self, *shape):
        return (2 * self._rng.standard_normal(shape)).astype(np.float32)

    def input(self, *shape, positive=False):
        values = self.noise(*shape)
        self.inputs.append(np.abs(values) + np.float32(0.1) if positive else values)
        return self.model.input(f"x{len(self.inputs)}", shape)

    def weights(self, *shape):
        return self.model.constant(f"w{len(self.model.tensors)}", self.noise(*shape))

    def numbers(self, *values):
        data = np.array(values, np.int32)
        return self.model.constant(f"n{len(self.model.tensors)}", data)

    def op(self, op, inputs, shape, table=None, dtype="float32", **values):
        name = f"{op.lower()}_{len(self.model.tensors)}"
        return self.model.op(op, inputs, name, list(shape), dtype, (table, values))

    def image(self):
        """Return the result of a convolution."""
        w, b = self.weights(3, 3, 3, 3), self.weights(3)
        return self.op(
            "CONV_2D", [self.input(*IMAGE), w, b], IMAGE, "Conv2DOptions", StrideW=1, StrideH=1
        )

    def done(self, *results):
        self.model.output(*results)
        return self


def extent(n, kernel, stride, padding):
    return -(-n // stride) if padding == 0 else (n - kernel) // stride + 1


def _functions():
    plain = ["ABS", "COS", "EXP", "FLOOR", "LOGISTIC", "NEG", "SIN", "SQUARE", "TANH", "RELU",
             "RELU_N1_TO_1", "RELU6", "RELU_0_TO_1", "HARD_SWISH", "SIGN", "ZEROS_LIKE",
             "LOG_SOFTMAX"]  # fmt: skip
    for op in plain:
        case = Case(op)
        yield case.done(case.op(op, [case.input(1, 3, 4)], [1, 3, 4]))
    for op in ("LOG", "RSQRT", "SQRT"):
        case = Case(op)
        yield case.done(case.op(op, [case.input(1, 3, 4, positive=True)], [1, 3, 4]))
    options = [
        ("LEAKY_RELU", "LeakyReluOptions", {"Alpha": 0.2}),
        ("GELU", "GeluOptions", {"Approximate": False}),
        ("GELU", "GeluOptions", {"Approximate": True}),
        ("SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}),
        ("SOFTMAX", "SoftmaxOptions", {"Beta": 2.0}),
        ("L2_NORMALIZATION", "L2NormOptions", {}),
    ]
    for op, table, values in options:
        case = Case("-".join([op, *map(str, values.values())]))
        yield case.done(case.op(op, [case.image()], IMAGE, table, **values))


def _pairs():
    tables = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions",
              "MAXIMUM": None, "MINIMUM": None, "SQUARED_DIFFERENCE": None,
              "FLOOR_DIV": None}  # fmt: skip
    for op, table in tables.items():
        for kind, shape in (("same", IMAGE), ("pixels", [1, 4, 5, 1]), ("row", [5, 1])):
            case = Case(f"{op}-{kind}")
            x = case.image() if kind != "row" else case.input(*IMAGE)
            yield case.done(case.op(op, [x, case.input(*shape)], IMAGE, table))
        for kind, shape in (("channels", [3]), ("number", [])):
            case = Case(f"{op}-{kind}")
            values = {"FusedActivationFunction": 1} if table else {}
            operands = [case.image(), case.weights(*shape)]
            yield case.done(case.op(op, operands, IMAGE, table, **values))
    for op in ("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"):
        case = Case(op)
        a, b = case.input(2, 9), case.input(2, 9)
        case.inputs = [np.round(x) for x in case.inputs]
        yield case.done(case.op(op, [a, b], [2, 9], dtype="bool"))
    case = Case("PRELU")
    yield case.done(case.op("PRELU", [case.image(), case.weights(1, 1, 3)], IMAGE))
    case = Case("POW")
    a, b = case.input(2, 5, positive=True), case.input(2, 5)
    yield case.done(case.op("POW", [a, b], [2, 5]))
    case = Case("SELECT_V2")
    x = case.image()
    greater = case.op("GREATER", [x, case.weights()], IMAGE, dtype="bool")
    yield case.done(case.op("SELECT_V2", [greater, x, case.op("NEG", [x], IMAGE)], IMAGE))
    case = Case("ADD_N")
    yield case.done(case.op("ADD_N", [case.image(), case.input(*IMAGE)], IMAGE))


def _windows():
    for k, s, p, d, act in [(3, 1, 0, 1, 0), (3, 2, 0, 1, 1), (4, 2, 1, 1, 3), (3, 1, 0, 2, 2)]:
        case = Case(f"CONV_2D-{k}{s}{p}{d}{act}")
        shape = [1, extent(8, k, s, p), extent(9, k, s, p), 4]
        operands = [case.input(1, 8, 9, 3), case.weights(4, k, k, 3), case.weights(4)]
        yield case.done(case.op(
            "CONV_2D", operands, shape, "Conv2DOptions", StrideW=s, StrideH=s, Padding=p,
            DilationWFactor=d, DilationHFactor=d, FusedActivationFunction=act,
        ))  # fmt: skip
    case = Case("CONV_2D-groups")
    operands = [case.input(1, 4, 5, 4), case.weights(6, 3, 3, 2), case.weights(6)]
    yield case.done(
        case.op("CONV_2D", operands, [1, 4, 5, 6], "Conv2DOptions", StrideW=1, StrideH=1)
    )
    for multiplier, s, p in [(1, 1, 0), (2, 2, 0), (3, 2, 1)]:
        case = Case(f"DEPTHWISE_CONV_2D-{multiplier}{s}{p}")
        count = 3 * multiplier
        shape = [1, extent(7, 3, s, p), extent(8, 3, s, p), count]
        operands = [case.input(1, 7, 8, 3), case.weights(1, 3, 3, count), case.weights(count)]
        yield case.done(case.op(
            "DEPTHWISE_CONV_2D", operands, shape, "DepthwiseConv2DOptions", StrideW=s, StrideH=s,
            Padding=p, DepthMultiplier=multiplier,
        ))  # fmt: skip
    for op in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        for k, s, p in [(2, 2, 1), (3, 2, 0), (3, 1, 0)]:
            case = Case(f"{op}-{k}{s}{p}")
            shape = [1, extent(7, k, s, p), extent(8, k, s, p), 2]
            yield case.done(case.op(
                op, [case.input(1, 7, 8, 2)], shape, "Pool2DOptions", StrideW=s, StrideH=s,
                Padding=p, FilterWidth=k, FilterHeight=k,
            ))  # fmt: skip
    for k, s, p, rows, columns in [(3, 2, 0, 6, 8), (3, 2, 1, 7, 9), (4, 3, 1, 10, 13)]:
        for with_bias in (False, True):
            case = Case(f"TRANSPOSE_CONV-{k}{s}{p}{with_bias}")
            shape = [1, rows, columns, 2]
            operands = [case.numbers(*shape), case.weights(2, k, k, 3), case.input(1, 3, 4, 3)]
            operands += [case.weights(2)] if with_bias else []
            yield case.done(case.op(
                "TRANSPOSE_CONV", operands, shape, "TransposeConvOptions", StrideW=s, StrideH=s,
                Padding=p,
            ))  # fmt: skip
    for kind, values in (("a", {}), ("h", {"HalfPixelCenters": True}), ("c", {"AlignCorners": 1})):
        for size in ([8, 10], [6, 7], [2, 3]):
            for op, table in (
                ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
                ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
            ):
                case = Case(f"{op}-{kind}{size[0]}")
                operands = [case.image(), case.numbers(*size)]
                yield case.done(case.op(op, operands, [1, *size, 3], table, **values))
    for kind, extents, values in (
        ("c", [7, 9], {"AlignCorners": True}),
        ("h", [2, 5], {"HalfPixelCenters": True}),
    ):
        case = Case(f"RESIZE_BILINEAR-{kind}{extents[0]}-whole")
        operands = [case.image(), case.numbers(*extents)]
        shape = [1, *extents, 3]
        yield case.done(
            case.op("RESIZE_BILINEAR", operands, shape, "ResizeBilinearOptions", **values)
        )
    for size in ([8, 10], [6, 7], [2, 3]):
        case = Case(f"RESIZE_NEAREST_NEIGHBOR-b{size[0]}")
        operands = [case.image(), case.numbers(*size)]
        yield case.done(case.op(
            "RESIZE_NEAREST_NEIGHBOR", operands, [1, *size, 3], "ResizeNearestNeighborOptions",
            AlignCorners=True, HalfPixelCenters=True,
        ))  # fmt: skip


def _matrices():
    case = Case("FULLY_CONNECTED-rows")
    operands = [case.input(2, 3, 4), case.weights(5, 4), case.weights(5)]
    yield case.done(case.op(
        "FULLY_CONNECTED", operands, [2, 3, 5], "FullyConnectedOptions", KeepNumDims=True,
        FusedActivationFunction=1,
    ))  # fmt: skip
    case = Case("FULLY_CONNECTED-image")
    operands = [case.image(), case.weights(5, 60), -1]
    yield case.done(case.op("FULLY_CONNECTED", operands, [1, 5], "FullyConnectedOptions"))
    for x, y in [(False, False), (True, False), (False, True)]:
        case = Case(f"BATCH_MATMUL-{x}{y}")
        a = case.input(*([1, 2, 4, 3] if x else [1, 2, 3, 4]))
        b = case.input(*([2, 5, 4] if y else [2, 4, 5]))
        yield case.done(
            case.op("BATCH_MATMUL", [a, b], [1, 2, 3, 5], "BatchMatMulOptions", AdjX=x, AdjY=y)
        )
    case = Case("CUMSUM")
    operands = [case.image(), case.numbers(1)]
    yield case.done(case.op("CUMSUM", operands, IMAGE, "CumsumOptions"))


def _reductions():
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        for axes, keep in [((1, 2), 0), ((1, 2), 1), ((3,), 0), ((1,), 1), ((-1, 2), 0)]:
            case = Case(f"{op}-{axes}{keep}")
            gone = {axis % 4 for axis in axes}
            shape = [1 if k in gone else n for k, n in enumerate(IMAGE) if keep or k not in gone]
            operands = [case.image(), case.numbers(*axes)]
            yield case.done(case.op(op, operands, shape, "ReducerOptions", KeepDims=bool(keep)))
    for op, table in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        case = Case(op)
        operands = [case.image(), case.numbers(3)]
        yield case.done(case.op(op, operands, IMAGE[:3], table, "int64", OutputType=4))


def _moves():
    def moved(name, op, numbers, shape, table=None, **values):
        case = Case(name)
        operands = [case.image(), *(case.numbers(*n) for n in numbers)]
        return case.done(case.op(op, operands, shape, table, **values))

    yield moved("RESHAPE-pixels", "RESHAPE", [[1, 20, 3]], [1, 20, 3])
    yield moved("RESHAPE-head", "RESHAPE", [[1, -1, 6]], [1, 10, 6])
    yield moved("RESHAPE-option", "RESHAPE", [], [1, 60], "ReshapeOptions", NewShape=[1, 60])
    yield moved("TRANSPOSE", "TRANSPOSE", [[0, 3, 1, 2]], [1, 3, 4, 5])
    yield moved("TRANSPOSE-batch", "TRANSPOSE", [[2, 0, 3, 1]], [5, 1, 3, 4])
    yield moved("EXPAND_DIMS", "EXPAND_DIMS", [[1]], [1, 1, 4, 5, 3])
    yield moved("TILE", "TILE", [[1, 2, 1, 2]], [1, 8, 5, 6])
    yield moved("SLICE", "SLICE", [[0, 1, 2, 1], [1, 3, -1, 2]], [1, 3, 3, 2])
    name, options = "STRIDED_SLICE", "StridedSliceOptions"
    yield moved(name, name, [[0, 1, -1, 0], [1, 4, -6, 2], [1, 2, -2, 1]], [1, 2, 3, 2], options,
                BeginMask=1, EndMask=5)  # fmt: skip
    yield moved(f"{name}-shrink", name, [[0, 2, 0, 0], [0, 3, 0, 0], [1, 1, 1, 1]], [1, 5, 3],
                options, BeginMask=13, EndMask=13, ShrinkAxisMask=2)  # fmt: skip
    yield moved(f"{name}-ellipsis", name, [[0, 1], [0, 3], [1, 1]], [1, 4, 5, 2], options,
                EllipsisMask=1)  # fmt: skip
    yield moved("GATHER", "GATHER", [[2, 0]], [1, 4, 5, 2], "GatherOptions", Axis=3)
    yield moved("GATHER-odd", "GATHER", [[0, 1, 3]], [1, 3, 5, 3], "GatherOptions", Axis=1)
    for mode in (0, 1):
        case = Case(f"MIRROR_PAD-{mode}")
        operands = [case.image(), case.numbers([0, 0], [1, 2], [0, 3], [0, 0])]
        yield case.done(
            case.op("MIRROR_PAD", operands, [1, 7, 8, 3], "MirrorPadOptions", Mode=mode)
        )
    case = Case("PAD")
    operands = [case.image(), case.numbers([0, 0], [1, 2], [0, 3], [1, 0])]
    yield case.done(case.op("PAD", operands, [1, 7, 8, 4]))
    case = Case("PADV2")
    operands = [case.image(), case.numbers([0, 0], [1, 2], [0, 3], [0, 0]), case.weights(1)]
    yield case.done(case.op("PADV2", operands, [1, 7, 8, 3]))
    case = Case("SQUEEZE")
    mean = case.op(
        "MEAN", [case.image(), case.numbers(1)], [1, 1, 5, 3], "ReducerOptions", KeepDims=True
    )
    yield case.done(case.op("SQUEEZE", [mean], [1, 5, 3], "SqueezeOptions", SqueezeDims=[1]))
    for axis, extra in ((-1, [1, 4, 5, 2]), (1, [1, 2, 5, 3])):
        case = Case(f"CONCATENATION-{axis}")
        shape = [*IMAGE]
        shape[axis] += IMAGE[axis] + extra[axis]
        x = case.image()
        parts = [x, case.op("RELU", [x], IMAGE), case.weights(*extra)]
        yield case.done(case.op("CONCATENATION", parts, shape, "ConcatenationOptions", Axis=axis))


def _several():
    case = Case("SPLIT")
    results = [(name, [1, 2, 5, 3], "float32", {}) for name in ("y", "z")]
    operands = [case.numbers(1), case.image()]
    options = ("SplitOptions", {"NumSplits": 2})
    yield case.done(*case.model.ops("SPLIT", operands, results, options))
    case = Case("SPLIT_V")
    results = [("y", [1, 4, 5, 1], "float32", {}), ("z", [1, 4, 5, 2], "float32", {})]
    operands = [case.image(), case.numbers(1, -1), case.numbers(3)]
    options = ("SplitVOptions", {"NumSplits": 2})
    yield case.done(*case.model.ops("SPLIT_V", operands, results, options))
    case = Case("UNPACK-PACK")
    results = [(f"u{k}", [1, 4, 5], "float32", {}) for k in range(3)]
    parts = case.model.ops(
        "UNPACK", [case.image()], results, ("UnpackOptions", {"Num": 3, "Axis": 3})
    )
    yield case.done(
        case.op("PACK", [parts[2], parts[0]], [1, 2, 4, 5], "PackOptions", ValuesCount=2, Axis=1)
    )
    case = Case("DEPTH_TO_SPACE")
    x = case.input(1, 3, 4, 8)
    yield case.done(
        case.op("DEPTH_TO_SPACE", [x], [1, 6, 8, 2], "DepthToSpaceOptions", BlockSize=2)
    )
    case = Case("SPACE_TO_DEPTH")
    x = case.input(1, 4, 6, 3)
    yield case.done(
        case.op("SPACE_TO_DEPTH", [x], [1, 2, 3, 12], "SpaceToDepthOptions", BlockSize=2)
    )
    case = Case("two-outputs")
    x = case.image()
    yield case.done(x, case.op("RELU", [x], IMAGE))
    case = Case("DEQUANTIZE-float16")
    half = case.model.constant("half", case.noise(3).astype(np.float16))
    whole = case.op("DEQUANTIZE", [half], [3])
    yield case.done(case.op("MUL", [case.image(), whole], IMAGE, "MulOptions"))
    case = Case("SHAPE-PACK-RESHAPE")
    x = case.image()
    shape = case.op("SHAPE", [x], [4], "ShapeOptions", "int32", OutType=2)
    ends = [case.numbers(0), case.numbers(1), case.numbers(1)]
    batch = case.op(
        "STRIDED_SLICE", [shape, *ends], [], "StridedSliceOptions", "int32", ShrinkAxisMask=1
    )
    packed = case.op(
        "PACK", [batch, case.model.constant("rest", np.array(-1, np.int32))], [2], "PackOptions",
        "int32", ValuesCount=2,
    )  # fmt: skip
    yield case.done(case.op("RESHAPE", [x, packed], [1, 60]))


def _rarely():
    case = Case("REVERSE_V2")
    axes = case.model.constant("axes", np.array([1, 2], np.int32))
    yield case.done(case.op("REVERSE_V2", [case.image(), axes], IMAGE))
    case = Case("SELECT")
    x, y = case.image(), case.image()
    larger = case.op("GREATER", [x, y], IMAGE, dtype="bool")
    yield case.done(case.op("SELECT", [larger, y, x], IMAGE))
    case = Case("GATHER_ND")
    places = case.model.constant("places", np.array([[0, 1], [0, 3]], np.int32))
    yield case.done(case.op("GATHER_ND", [case.image(), places], [2, *IMAGE[2:]]))
    case = Case("L2_POOL_2D")
    yield case.done(case.op(
        "L2_POOL_2D", [case.image()], [1, 2, 2, 3], "Pool2DOptions", StrideW=2, StrideH=2,
        FilterWidth=3, FilterHeight=2, Padding=1,
    ))  # fmt: skip


def _recurrent():
    case = Case("SVDF")
    inputs = [case.input(1, 5), case.weights(6, 5), case.weights(6, 4), case.weights(3)]
    inputs.append(case.model.tensor("kept", [1, 24], is_variable=True))
    yield case.done(case.op("SVDF", inputs, [1, 3], "SVDFOptions", Rank=2,
                            FusedActivationFunction=1))  # fmt: skip
    for time_major, clip in ((False, 0.0), (True, 0.7)):
        case = Case(f"UNIDIRECTIONAL_SEQUENCE_LSTM-{time_major}")
        steps, size = 3, 5
        shape = [steps, 1, 4] if time_major else [1, steps, 4]
        inputs = [case.input(*shape)]
        inputs += [case.weights(size, 4) for _ in range(4)]
        inputs += [case.weights(size, size) for _ in range(4)]
        inputs += [-1] * 3 + [case.weights(size) for _ in range(4)] + [-1] * 2
        inputs += [
            case.model.tensor(name, [1, size], is_variable=True) for name in ("hidden", "cell")
        ]
        inputs += [-1] * 4
        yield case.done(case.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [*shape[:2], size],
            "UnidirectionalSequenceLSTMOptions", FusedActivationFunction=4, CellClip=clip,
            TimeMajor=time_major,
        ))  # fmt: skip


def _spectra():
    """Transforms of rows, cut or filled up, and moves of their numbers, as tf.signal has them."""
    for count, points in ((32, 32), (20, 32), (40, 32)):
        case, bins = Case(f"RFFT2D-{count}"), points // 2 + 1
        rows = case.op("EXPAND_DIMS", [case.input(2, 3, count), case.numbers(2)],
                       [2, 3, 1, count], "ExpandDimsOptions")  # fmt: skip
        z = case.op("RFFT2D", [rows, case.numbers(1, points)], [2, 3, 1, bins], "Rfft2dOptions",
                    dtype="complex64")  # fmt: skip
        z = case.op("SQUEEZE", [z], [2, 3, bins], "SqueezeOptions", dtype="complex64",
                    SqueezeDims=[2])  # fmt: skip
        size = case.op("COMPLEX_ABS", [z], [2, 3, bins])
        turned = case.op("TRANSPOSE", [z, case.numbers(0, 2, 1)], [2, bins, 3], "TransposeOptions",
                         dtype="complex64")  # fmt: skip
        real = case.op("REAL", [turned], [2, bins, 3])
        yield case.done(size, real, case.op("IMAG", [turned], [2, bins, 3]))


def operator_cases():
    """Return the cases by name: each has ``model`` and ``inputs``."""
    kinds = (
        _functions, _pairs, _windows, _matrices, _reductions, _moves, _several, _rarely, _recurrent,
        _spectra,
    )  # fmt: skip
    return {case.name: case for kind in kinds for case in kind()}
