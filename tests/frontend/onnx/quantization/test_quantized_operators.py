"""Operators on codes, against onnxruntime; and what is wrong with quantized models."""

import logging
import random
import re
from contextlib import suppress

import numpy as np
import pytest
from onnx_runtime import run_onnxruntime
from quantized_text import message, net

from nnef_hw.errors import ModelError, NnefHwError, UnsupportedError
from nnef_hw.reference import run_float

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

_log = logging.getLogger(__name__)

INPUTS = "uint8[1,4,6,6] a, uint8[1,4,6,6] b"
CONSTANTS = """float s = {0.05137}, uint8 z = {120}, float t = {0.03119}, uint8 u = {90},
    float r = {0.04391}, uint8 v = {99}, float c = {0.00713}, int8 n = {0}, float k = {0.00741},
    float[3] ws = {0.01113, 0.00517, 0.01741}, int8[3] wz = {0, 0, 0},
    int32[3] bias = {500, -800, 9}, float[5] gs = {0.01113, 0.00517, 0.01741, 0.01097, 0.01211},
    int8[5] gz = {0, 0, 0, 0, 0}, int32[5] gbias = {500, -800, 9, 7, -100},
    float e = {1.0937}, uint8 h = {140}, uint8 nil = {0}, float p = {0.0039}"""
"""No quotient of these is simple, so that results are hardly ever in the middle of two codes."""
ARRAYS = {
    "w": (np.int8, (3, 4, 3, 3)),
    "g": (np.int8, (6, 5)),
    "m": (np.int8, (5, 144)),
    "l": (np.int8, (144, 5)),
    "d": (np.uint8, (1, 4, 1, 1)),
    "yes": (np.bool_, (1, 4, 1, 6)),
}
DIVISORS = {"g": 2}
"""Halved weights: onnxruntime saturates sums of pairs of a QLinearMatMul with a scale per column
where a processor has AVX2 but no VNNI, ``session.x64quantprecision`` or not."""
MS = "com.microsoft"

OPERATORS = {
    "conv": ("QLinearConv <pads = [1,1,1,1]> (a, s, z, w, c, n, e, h)", "1,3,6,6"),
    "conv-channels": (
        "QLinearConv <strides = [2,1]> (a, s, z, w, ws, wz, e, h, bias)", "1,3,2,4"
    ),
    "matmul": ("QLinearMatMul (a, s, z, b, t, u, e, h)", "1,4,6,6"),
    "matmul-channels": ("QLinearMatMul (a, s, z, g, gs, gz, e, h)", "1,4,6,5"),
    "add": (f"{MS}.QLinearAdd (a, s, z, b, t, u, r, v)", "1,4,6,6"),
    "add-broadcast": (f"{MS}.QLinearAdd (a, s, z, d, t, u, r, v)", "1,4,6,6"),
    "mul": (f"{MS}.QLinearMul (a, s, z, b, t, u, r, v)", "1,4,6,6"),
    "global-average": (f"{MS}.QLinearGlobalAveragePool (a, s, z, k, v)", "1,4,1,1"),
    "average": (
        f"{MS}.QLinearAveragePool <kernel_shape = [3,3], pads = [1,1,1,1]> (a, s, z, k, v)",
        "1,4,6,6",
    ),
    "average-with-padding": (
        f"""{MS}.QLinearAveragePool <kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1>
        (a, s, z, k, v)""",
        "1,4,6,6",
    ),
    "concat": (f"{MS}.QLinearConcat <axis = 1> (r, v, a, s, z, b, t, u)", "1,8,6,6"),
    "leaky-relu": (f"{MS}.QLinearLeakyRelu <alpha = 0.2> (a, s, z, r, v)", "1,4,6,6"),
    "sigmoid": (f"{MS}.QLinearSigmoid (a, s, z, k, nil)", "1,4,6,6"),
    "softmax": (f"{MS}.QLinearSoftmax <opset = 13, axis = 3> (a, s, z, p, nil)", "1,4,6,6"),
    "where": (f"{MS}.QLinearWhere (yes, a, s, z, b, t, u, r, v)", "1,4,6,6"),
    "gemm": (f"{MS}.QGemm <transB = 1> (f, s, z, m, gs, gz, gbias, e, v)", "1,5"),
    "gemm-scaled": (f"{MS}.QGemm <alpha = 0.5> (f, s, z, l, c, n, gbias, e, v)", "1,5"),
}  # fmt: skip
SUMS = {
    "conv": ("ConvInteger <pads = [1,0,0,1]> (a, w, u)", "1,3,5,5"),
    "conv-zero-points": ("ConvInteger (a, w, u, n)", "1,3,4,4"),
    "matmul": ("MatMulInteger (a, b, z, u)", "1,4,6,6"),
    "matmul-without": ("MatMulInteger (a, b)", "1,4,6,6"),
}
APPROXIMATED = {"QLinearSoftmax"}
"""Operators that onnxruntime computes with a table of rounded exponentials."""


def run_both(read, rng, body, shape, kind):
    """Return what we and what onnxruntime compute of random codes."""
    model = message(
        f"""net ({INPUTS}) => ({kind}[{shape}] y) <{CONSTANTS}> {{
        f = Flatten (a) y = {body} }}"""
    )
    for name, (dtype, extents) in ARRAYS.items():
        info = np.iinfo(dtype) if dtype is not np.bool_ else np.iinfo(np.int8)
        values = rng.integers(info.min, info.max, extents, endpoint=True) // DIVISORS.get(name, 1)
        array = values > 0 if dtype is np.bool_ else values.astype(dtype)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    inputs = [rng.integers(0, 256, (20, 4, 6, 6)).astype(np.uint8) for _ in "ab"]
    expected = run_onnxruntime(model, inputs)["y"].astype(np.int64)
    found = run_float(read(model), dict(zip("ab", inputs, strict=True)))["y"]
    return found.reshape(expected.shape), expected


@pytest.mark.parametrize(("body", "shape"), OPERATORS.values(), ids=OPERATORS)
def test_codes_are_those_of_onnxruntime(read, rng, body, shape):
    pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    found, expected = run_both(read, rng, body, shape, "uint8")
    error = np.abs(found - expected)
    _log.info("%.3f%% of %d codes are equal", 100 * (error == 0).mean(), error.size)
    assert len(np.unique(expected)) > 10
    assert error.max() <= any(name in body for name in APPROXIMATED)
    assert (error == 0).mean() > 0.9


@pytest.mark.parametrize(("body", "shape"), SUMS.values(), ids=SUMS)
def test_sums_of_products_of_codes_are_exact(read, rng, body, shape):
    pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    found, expected = run_both(read, rng, body, shape, "int32")
    np.testing.assert_array_equal(found, expected)


MISTAKES = {
    "scale-computed": (
        "m = ReduceMax(x) q = QuantizeLinear(x, m, z) y = D(q)",
        UnsupportedError,
        "'q' of opset 21: the scale 'm' is computed when the network runs; quantize the network",
    ),
    "zero-point-computed": (
        "m = Cast <to = 2> (x) q = QuantizeLinear(x, s4, m) y = D(q)",
        UnsupportedError,
        "the zero point 'm' is computed when the network runs",
    ),
    "range-computed": (
        "q, qs, qz = DynamicQuantizeLinear(x) y = DequantizeLinear(q, qs, qz)",
        UnsupportedError,
        "the range of 'x' is found when the network runs; quantize the network statically",
    ),
    "zero": (
        "q = Q(x) y = DequantizeLinear(q, s0, z)",
        ModelError,
        "DequantizeLinear 'y': a scale is 0; scales must be positive and finite",
    ),
    "negative": (
        "q = QuantizeLinear(x, below, z) y = D(q)", ModelError, "QuantizeLinear 'q': a scale is -2"
    ),
    "other-channels": (
        "q = QuantizeLinear(x, s2, z2) y = D(q)",
        ModelError,
        "scales of shape [2] do not fit axis 1 of the shape [1, 4]; give one scale, or 4",
    ),
    "axis": (
        "q = QuantizeLinear <axis = 2> (x, s2, z2) y = D(q)", ModelError, "axis 2 is not in -2..1"
    ),
    "one-zero-point": (
        "q = QuantizeLinear(x, s4, z) y = D(q)", ModelError, "there are 4 scales, but 1 zero points"
    ),
    "blocks": (
        "q = QuantizeLinear <block_size = 2> (x, s13, z13) y = D(q)",
        ModelError,
        "do not fit blocks of 2 along axis 1 of the shape [1, 4]; the scales must have shape",
    ),
    "negative-blocks": (
        "q = QuantizeLinear <block_size = -2> (x, s13, z13) y = D(q)",
        ModelError,
        "block_size is -2",
    ),
    "types": (
        "q = Q(x) y = DequantizeLinear(q, s, n)",
        ModelError,
        "the zero point is int8, but the codes are uint8",
    ),
    "output-type": (
        "q = QuantizeLinear <output_dtype = 3> (x, s, z) y = D(q)",
        ModelError,
        "output_dtype is int8, but the zero point is uint8",
    ),
    "float8": (
        "q = QuantizeLinear <output_dtype = 17> (x, s) y = D(q)",
        UnsupportedError,
        "its result has element type float8e4m3fn, which is not supported",
    ),
    "real-zero-point": (
        "q = QuantizeLinear(x, s, s0) y = D(q)",
        ModelError,
        "the codes are float, not integers",
    ),
    "no-scale": ("q = QuantizeLinear(x, nothing) y = D(q)", ModelError, "there is no scale"),
    "real-bias": (
        f"q = Q(x) p = {MS}.QGemm(q, s, z, w, s, z, below, s, z) y = D(p)",
        ModelError,
        "the codes are float, not integers",
    ),
    "bias-shape": (
        f"q = Q(x) p = {MS}.QGemm(q, s, z, w44, s4, z4, b2, s, z) y = D(p)",
        ModelError,
        "a bias of shape [2] does not fit 4 scales",
    ),
    "real-codes": ("y = D(x)", ModelError, "the codes are float, not integers"),
    "several-scales": (
        f"q = Q(x) p = {MS}.QLinearAdd(q, s, z, q, s4, z4, s, z) y = D(p)",
        ModelError,
        "there are scales of shape [4], not one",
    ),
    "channels-last": (
        f"q = Q(x) p = {MS}.QLinearGlobalAveragePool <channels_last = 1> (q, s, z, s, z) y = D(p)",
        UnsupportedError,
        "channels_last is set; quantize it in the order N, C, H, W",
    ),
    "arguments": (
        f"q = Q(x) p = {MS}.QLinearAdd(q, s, z) y = D(p)",
        ModelError,
        "it has 3 inputs, but takes 7 to 8",
    ),
    "concat-arguments": (
        f"q = Q(x) p = {MS}.QLinearConcat <axis = 0> (s, z, q, s) y = D(p)",
        ModelError,
        "its inputs are not triples of codes, scale and zero point",
    ),
    "attribute": (
        f"q = Q(x) p = {MS}.QLinearConcat(s, z, q, s, z) y = D(p)",
        ModelError,
        "the attribute 'axis' is missing",
    ),
    "operator": (
        f"y = {MS}.QAttention(x)",
        UnsupportedError,
        "there is no such operator in opset 1 of the domain 'com.microsoft'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "error", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_what_is_wrong_is_said(read, body, error, reason):
    extra = """, float s0 = {0}, float below = {-2}, float[2] s2 = {1, 2}, uint8[2] z2 = {1, 2},
        float[4] s4 = {1, 2, 3, 4}, uint8[4] z4 = {0, 0, 0, 0}, float[1,3] s13 = {1, 2, 3},
        uint8[1,3] z13 = {0, 0, 0}, int8 n = {0}, uint8[4,1] w = {1, 2, 3, 4},
        float[0] nothing = {}, int32[2] b2 = {1, 2},
        uint8[4,4] w44 = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}"""
    with pytest.raises(error, match=re.escape(reason)):
        read(net(body, extra))


MIXED = f"""q = Q(x) r = QLinearMatMul(q, s, z, w44, s4, z4, t, u) c = Clip(r, z, h)
    a = {MS}.QLinearAdd(q, s, z, c, t, u, s, z) m = MaxPool <kernel_shape = [1]> (a3)
    k = {MS}.QLinearConcat <axis = 1> (s, z, a, s, z, q, s, z) p = Pad(k, pads, z)
    g = {MS}.QGemm <transB = 1> (a, s, z, w44, s, z, b4, t, u) e = E(g)
    f = QuantizeLinear(e, s4, z4) d = DequantizeLinear(f, s4, z4)
    i = MatMulInteger(q, w44, z) j = Cast <to = 1> (i) y = Add(d, j)"""


@pytest.mark.parametrize("seed", range(4))
def test_changed_models_give_a_graph_or_an_error_of_ours(read, seed):
    rng = random.Random(seed)
    extra = """, float[4] s4 = {1, 2, 3, 4}, uint8[4] z4 = {0, 1, 2, 3}, uint8 h = {15},
        uint8[4,4] w44 = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        uint8[1,1,4] a3 = {1, 2, 3, 4}, int64[4] pads = {0, 1, 0, 1}, int32[4] b4 = {1, -2, 3, 4}"""
    whole = net(MIXED, extra)
    read(whole)
    loaded = 0
    for _ in range(60):
        model = onnx.ModelProto()
        model.CopyFrom(whole)
        node, other = rng.choice(model.graph.node), rng.choice(model.graph.node)
        tensor = rng.choice(model.graph.initializer)
        change = rng.randrange(5)
        if change == 0:
            node.input[rng.randrange(len(node.input))] = rng.choice([
                "",
                "s",
                "z",
                "s4",
                "w44",
                "b4",
            ])
        elif change == 1:
            del node.input[rng.randrange(len(node.input))]
        elif change == 2:
            name, value = rng.choice(["axis", "block_size", "alpha"]), rng.choice([-3, 2**40, 0.5])
            node.attribute.append(onnx.helper.make_attribute(name, value))
        elif change == 3:
            node.op_type, node.domain = other.op_type, other.domain
        else:
            array = onnx.numpy_helper.to_array(tensor).reshape(-1)
            array = rng.choice([-array, array[:0], array * 0, np.repeat(array, 2), array[:1]])
            tensor.CopyFrom(onnx.numpy_helper.from_array(array.copy(), tensor.name))
        with suppress(NnefHwError):
            read(model)
            loaded += 1
    assert 0 < loaded < 60
