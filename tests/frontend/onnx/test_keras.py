"""Graphs as Keras exports them: channels last, a transpose around every convolution and pool."""

import numpy as np
import pytest

from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.streaming.foldings.lower import lower

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

INWARD, OUTWARD = "Transpose <perm = [0, 3, 1, 2]>", "Transpose <perm = [0, 2, 3, 1]>"

CLASSIFIER = f"""net (float[N,8,8,3] image) => (float[N,5] scores)
  <int64[2] rows_and_columns = {{1, 2}}> {{
  image_t = {INWARD} (image)
  conv_t = Conv <pads = [1, 1, 1, 1]> (image_t, w1)
  conv = {OUTWARD} (conv_t)
  biased = Add(conv, b1)
  scaled = Mul(biased, gamma)
  moved = Add(scaled, beta)
  relu = Relu(moved)
  relu_t = {INWARD} (relu)
  pool_t = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (relu_t)
  pool = {OUTWARD} (pool_t)
  branch_t = {INWARD} (pool)
  branch_conv = Conv <pads = [1, 1, 1, 1], group = 6> (branch_t, w2)
  branch = {OUTWARD} (branch_conv)
  joined = Add(branch, pool)
  swish = HardSwish(joined)
  mean = ReduceMean <keepdims = 0> (swish, rows_and_columns)
  product = MatMul(mean, w3)
  sums = Add(product, b3)
  scores = Softmax(sums)
}}"""

SEGMENTER = f"""net (float[N,6,8,3] image) => (float[N,12,16,2] mask) {{
  image_t = {INWARD} (image)
  conv_t = Conv <pads = [1, 1, 1, 1]> (image_t, w1)
  conv = {OUTWARD} (conv_t)
  relu = Relu(conv)
  relu_t = {INWARD} (relu)
  large_t = ConvTranspose <strides = [2, 2]> (relu_t, w2)
  large = {OUTWARD} (large_t)
  mask = Sigmoid(large)
}}"""


def with_weights(text, rng, **shapes):
    header = '<ir_version: 9, opset_import: ["" : 21]>\n'
    model = onnx.parser.parse_model(header + text)
    for name, shape in shapes.items():
        array = (rng.normal(size=shape) / 2).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def kinds_and_error(graph, rng, shape):
    """Return the kinds of the layers, and how far the fixed network is from the float one."""
    x = rng.normal(size=(40, *shape))
    fixed = quantize(simplify(graph), {"image": x})
    codes = run_fixed(fixed, quantize_inputs(fixed, {"image": x}))
    (name,) = graph.outputs
    real = run_float(graph, {"image": x})[name]
    found = dequantize_outputs(fixed, codes)[name]
    assert found.shape == real.shape
    return [layer.label for layer in lower(fixed).layers], np.abs(found - real).mean()


def test_a_classifier_needs_no_transpose(read, rng):
    graph = read(with_weights(
        CLASSIFIER, rng, w1=(6, 3, 3, 3), b1=(6,), gamma=(6,), beta=(6,), w2=(6, 1, 3, 3),
        w3=(6, 5), b3=(5,),
    ))  # fmt: skip
    kinds, error = kinds_and_error(graph, rng, (8, 8, 3))
    assert "transpose" not in kinds
    assert kinds.count("conv") + kinds.count("depthwise") >= 2
    assert error < 0.02


def test_a_mask_leaves_with_its_channels_last(read, rng):
    graph = read(with_weights(SEGMENTER, rng, w1=(4, 3, 3, 3), w2=(4, 2, 2, 2)))
    assert graph.tensor("mask").shape == (1, 12, 16, 2)
    kinds, error = kinds_and_error(graph, rng, (6, 8, 3))
    assert "transpose" not in kinds
    assert error < 0.02
