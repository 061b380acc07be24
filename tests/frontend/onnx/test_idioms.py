"""Forms that exporters write what hardware has in: onnxruntime's results, and nothing refused."""

import numpy as np
import pytest
from onnx_runtime import run_onnxruntime

from nnef_hw.passes import simplify
from nnef_hw.reference import run_float
from nnef_hw.streaming.foldings.support import check_streamable

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

PIXELS = """net (uint8[1,4,4,3] x) => (float[1,4,4,3] y) {
  moved = Transpose <perm = [0, 3, 1, 2]> (x)
  real = Cast <to = 1> (moved)
  scale = Constant <value_float = 0.0078125> ()
  scaled = Mul(real, scale)
  squashed = Tanh(scaled)
  y = Transpose <perm = [0, 2, 3, 1]> (squashed)
}"""
BEST = """net (float[1,6] x) => (float[1,1] best, int64[1,1] place) {
  one = Constant <value_ints = [1]> ()
  best, place = TopK(x, one)
}"""
GROUPS = """net (float[1,4,3,2] x, float[2] scale, float[2] bias) => (float[1,4,3,2] y)
  <float[2] scale = {0.5, 2.0}, float[2] bias = {0.25, -1.0}> {
  y = GroupNormalization <num_groups = 2> (x, scale, bias)
}"""
COLUMN = """net (float[1,3] x) => (float[2,1] y) <float[2,3] a = {1, 2, 3, 4, 5, 6}> {
  y = Gemm <transB = 1> (a, x)
}"""
BIASED = """net (float[1,3] x) => (float[2,1] y)
  <float[2,3] a = {1, 2, 3, 4, 5, 6}, float[2,1] c = {0.5, -0.5}> {
  y = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (a, x, c)
}"""

GELUS = """net (float[1,4] x) => (float[1,4] y) <float[4] b = {0.5, -0.5, 1, 2}> {
  p = com.microsoft.Gelu(x)
  q = com.microsoft.BiasGelu(p, b)
  r = com.microsoft.FastGelu(q, b)
  s = com.microsoft.FastGelu(r)
  y = com.microsoft.QuickGelu <alpha = 1.5> (s)
}"""
SKIP = """net (float[1,3,4] x) => (float[1,3,4] y)
  <float[4] g = {0.5, -0.5, 1, 2}, float[4] b = {0.25, 0.5, 0, 1}> {
  p = Tanh(x)
  y = com.microsoft.SkipLayerNormalization <epsilon = 0.01> (x, p, g, b, b)
}"""
NORMALIZED = """net (float[1,3,4] x) => (float[1,3,4] y)
  <float[4] g = {0.5, -0.5, 1, 2}, float[4] b = {0.25, 0.5, 0, 1}> {
  y = LayerNormalization <axis = -1, epsilon = 0.01> (x, g, b)
}"""
ASSIGNED = """net (float[1,3,2] x) => (float[1,6,2] y)
  <int64[1,3,2] even = {0, 0, 0, 2, 0, 4}, int64[1,3,2] odd = {0, 1, 0, 3, 0, -1}> {
  shape = Constant <value_ints = [1, 6, 2]> ()
  zeros = ConstantOfShape(shape)
  p = Tanh(x)
  q = Sigmoid(x)
  half = ScatterND(zeros, even, p)
  y = ScatterND(half, odd, q)
}"""
SHIFTED = """net (float[1,4,2] x) => (float[1,4,2] y)
  <int64[1,2,2] places = {3, 3, -4, -4}> {
  zero = Constant <value_ints = [0]> ()
  two = Constant <value_ints = [2]> ()
  one = Constant <value_ints = [1]> ()
  part = Slice(x, zero, two, one)
  new = Tanh(part)
  old = Sigmoid(x)
  y = ScatterElements <axis = 1, reduction = "add"> (old, places, new)
}"""
CHANNELS_LAST = """net (float[1,3,2,4] x) => (float[1,6,6,4] y) {
  sizes = Constant <value_ints = [1, 6, 6, 4]> ()
  p = Tanh(x)
  y = Resize <mode = "MODE", coordinate_transformation_mode = "half_pixel"> (p, , , sizes)
}"""
DISTANCES = """net (float[1,3] x) => (float[1,2] y) <float[2,3] a = {1, 2, 3, 4, 5, 6}> {
  c = ReduceSumSquare <axes = [1], keepdims = 1> (x)
  y = Gemm <transB = 1, alpha = -2.0> (x, a, c)
}"""
CAUSAL = """net (float[1,4,6] x) => (float[1,4,6] y) {
  y = Attention <is_causal = 1, q_num_heads = 2, kv_num_heads = 2> (x, x, x)
}"""
MASKED = """net (float[1,2,3] x) => (float[1,2,3] y)
  <float[2,3] m = {0, 1, 1, 0, 0, 1}> {
  one = Constant <value_float = 1.0> ()
  seen = Sub(one, m)
  mask = Log(seen)
  s = Add(x, mask)
  y = Softmax(s)
}"""
CASES = {
    "assigned": (ASSIGNED, 13), "shifted": (SHIFTED, 16), "distances": (DISTANCES, 13),
    "nearest": (CHANNELS_LAST.replace("MODE", "nearest"), 13),
    "linear": (CHANNELS_LAST.replace("MODE", "linear"), 13),
    "causal": (CAUSAL, 23), "masked": (MASKED, 17),
    "pixels": (PIXELS, 13), "best": (BEST, 13), "groups": (GROUPS, 18), "column": (COLUMN, 13),
    "biased": (BIASED, 13), "gelus": (GELUS, 13), "skip": (SKIP, 13),
    "normalized": (NORMALIZED, 12),
}  # fmt: skip


@pytest.mark.parametrize(("text", "opset"), CASES.values(), ids=CASES)
def test_results_and_hardware(text, opset, parse, read, rng):
    pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    proto = parse(text, opset=opset, ir=8, imports=', "com.microsoft" : 1')
    graph = read(proto)
    item = proto.graph.input[0]
    shape = [extent.dim_value for extent in item.type.tensor_type.shape.dim]
    x = rng.normal(size=(4, *shape[1:]))
    x = np.round(np.abs(40 * x)) if "uint8" in text else x
    dtype = onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
    expected = run_onnxruntime(proto, [x.astype(dtype)])
    for found in (run_float(graph, {"x": x}), run_float(simplify(graph), {"x": x})):
        for name, values in expected.items():
            np.testing.assert_allclose(found[name].reshape(values.shape), values, rtol=1e-5,
                                       atol=1e-6)  # fmt: skip
    assert not check_streamable(simplify(graph))


def test_pixels_are_codes_of_their_own(read, parse):
    args = read(parse(PIXELS, opset=13, ir=8)).tensor("x").quant.args
    assert (args["scale"], args["zero_point"], args["bits"], args["signed"]) == (1.0, 0, 8, False)


def test_integers_that_something_else_reads_remain_integers(read, parse):
    text = """net (int64[1,2] x) => (float[1,2] y, int64[1,2] z) {
      y = Cast <to = 1> (x)
      z = Add(x, x)
    }"""
    assert read(parse(text, opset=13, ir=8)).tensor("x").dtype == "integer"


@pytest.mark.parametrize("turned", [0, 1])
def test_several_matrices_as_deeploy_writes_them(turned, parse, read, rng):
    shape, other = ("2,4,3", "2,5,4") if turned else ("2,3,4", "2,4,5")
    text = f"""net (float[{shape}] x) => (float[2,3,5] y)
      <float[5] c = {{1, 2, 3, 4, 5}}> {{
      y = Gemm <transA = {turned}, transB = {turned}, alpha = 0.5, beta = 2.0> (x, w, c)
    }}"""
    proto = parse(text, opset=13, ir=8)
    w = rng.normal(size=[int(n) for n in other.split(",")]).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    x = rng.normal(size=[int(n) for n in shape.split(",")])
    a, b = (np.swapaxes(v, -1, -2) if turned else v for v in (x, w.astype(np.float64)))
    found = run_float(read(proto), {"x": x[np.newaxis]})["y"]
    np.testing.assert_allclose(found.reshape(2, 3, 5), a @ b / 2 + 2 * np.arange(1, 6), rtol=1e-5)
