"""What onnxruntime's static quantization can be asked for, on a network of many operators."""

import logging

import numpy as np
import pytest
from onnx_runtime import compare_layers, quantize
from quantized_graphs import ties_up
from quantized_text import message

from nnef_hw.frontend import load, save
from nnef_hw.reference import run_float

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")
pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")

_log = logging.getLogger(__name__)

NETWORK = """net (float[1,3,12,12] x) => (float[1,10] y) <
    float lo = {0}, float hi = {6}, int64[2] parts = {4, 12}, int64[2] flat = {1, -1},
    int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, float[4] scales = {1, 1, 2, 2}> {
    c1 = Conv <pads = [1,1,1,1]> (x, w1, b1) r1 = Relu (c1)
    c2 = Conv <pads = [1,1,1,1], group = 8> (r1, w2, b2) r2 = Clip (c2, lo, hi)
    c3 = Conv (r2, w3)
    a3 = Add (c3, r1) l3 = LeakyRelu <alpha = 0.1> (a3) s3 = Sigmoid (l3) m3 = Mul (l3, s3)
    cat = Concat <axis = 1> (m3, c3)
    mp = MaxPool <kernel_shape = [2,2], strides = [2,2]> (cat)
    p1, p2 = Split <axis = 1> (mp, parts)
    swap = Concat <axis = 1> (p2, p1)
    ap = AveragePool <kernel_shape = [2,2], pads = [1,1,0,0]> (swap)
    pad = Pad (ap, pads)
    big = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric",
        nearest_mode = "floor"> (pad, , scales)
    last = Transpose <perm = [0,2,3,1]> (big)
    mm = MatMul (last, w4) add = Add (mm, b4)
    first = Transpose <perm = [0,3,1,2]> (add)
    mean = GlobalAveragePool (first) row = Reshape (mean, flat)
    f1 = Gemm (row, w5, b5) t1 = Tanh (f1)
    f2 = Gemm <transB = 1> (t1, w6, b6) y = Softmax <axis = 1> (f2)
}"""
WEIGHTS = {
    "w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "b2": (8,), "w3": (8, 8, 1, 1),
    "w4": (16, 6), "b4": (6,), "w5": (6, 5), "b5": (5,), "w6": (10, 5), "b6": (10,),
}  # fmt: skip
OPTIONS = {
    "qdq": {},
    "qdq-channels": {"per_channel": True},
    "qdq-symmetric": {"activations": "QInt8", "extra_options": {"ActivationSymmetric": True}},
    "qdq-real-weights": {"extra_options": {"AddQDQPairToWeight": True}},
    "qdq-real-biases": {"extra_options": {"QuantizeBias": False}},
    "qdq-each-reader": {"extra_options": {"DedicatedQDQPair": True}},
    "qdq-uint8-weights": {"weights": "QUInt8", "extra_options": {"WeightSymmetric": False}},
    "qdq-16-bits": {"activations": "QUInt16"},
    "qdq-4-bit-weights": {"activations": "QInt16", "weights": "QInt4", "per_channel": True},
    "qoperator": {"style": "QOperator"},
    "qoperator-channels": {"style": "QOperator", "activations": "QInt8", "per_channel": True},
    "qoperator-uint8-weights": {
        "style": "QOperator",
        "weights": "QUInt8",
        "extra_options": {"WeightSymmetric": False},
    },
}
TABLES = {"leaky_relu", "sigmoid", "softmax", "tanh"}


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The path of the float model."""
    rng = np.random.default_rng(5)
    model = message(NETWORK)
    for name, shape in WEIGHTS.items():
        array = rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))
        model.graph.initializer.append(onnx.numpy_helper.from_array(array.astype("f4"), name))
    path = tmp_path_factory.mktemp("options") / "network.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_layers_compute_the_codes_of_onnxruntime(network, options, tmp_path):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(24, 3, 12, 12)).astype(np.float32)
    path = quantize(network, tmp_path / "quantized.onnx", x[:16], **options)
    graph = load(path)
    count = unequal = 0
    for node, exact, codes in compare_layers(graph, path, x[16:]):
        rounded = np.clip(np.floor(exact + 0.5), codes.min(), codes.max())
        differs = rounded != codes
        count, unequal = count + codes.size, unequal + differs.sum()
        assert np.abs(rounded - codes).max() <= 1, node
        if node is None or node.op not in TABLES:
            assert np.abs(exact[differs] % 1 - 0.5).max(initial=0) < 1e-2, node
    _log.info("%.4f%% of %d codes are equal", 100 - 100 * unequal / count, count)
    assert unequal / count < 0.02
    assert not {"cast", "round_even"} & {node.op for node in graph.nodes}

    save(graph, tmp_path / "quantized.nnef.tgz")
    again = run_float(load(tmp_path / "quantized.nnef.tgz"), {"x": x[:3]})
    np.testing.assert_array_equal(again["y"], run_float(ties_up(graph), {"x": x[:3]})["y"])
