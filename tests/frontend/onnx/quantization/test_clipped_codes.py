"""QuantizeLinear, Clip, DequantizeLinear: 2 to 8 bits, zero points, tensors and channels."""

import numpy as np
import onnx
import pytest

from nnef_hw.reference import run_float
from nnef_hw.reference.real.quantize import code_range, encode

helper = onnx.helper


def clipped(bits, zero, signed, scales, constant):
    """Return a model that quantizes its input, or constant weights [3, 4] that it multiplies by."""
    lo = -(1 << (bits - 1)) if signed else 0
    dtype = np.int8 if signed else np.uint8
    arrays = {
        "s": np.float32(scales), "z": np.full(np.shape(scales), zero, dtype),
        "lo": dtype(lo), "hi": dtype(lo + (1 << bits) - 1),
    }  # fmt: skip
    weights = np.random.default_rng(bits).normal(size=(3, 4)).astype(np.float32) * 3
    if constant:
        arrays["w"] = weights
    axis = {"axis": 0} if constant else {}
    nodes = [
        helper.make_node("QuantizeLinear", ["w" if constant else "x", "s", "z"], ["q"], **axis),
        helper.make_node("Clip", ["q", "lo", "hi"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["d"], **axis),
        helper.make_node("Mul", ["x", "d"], ["y"]) if constant
        else helper.make_node("Neg", ["d"], ["y"]),
    ]  # fmt: skip
    info = [helper.make_tensor_value_info(n, 1, [3, 4]) for n in ("x", "y")]
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in arrays.items()]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    ), weights


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize(("zero", "signed"), [(0, True), (-1, True), (0, False), (2, False)])
@pytest.mark.parametrize(
    ("scales", "constant"),
    [(0.25, False), (0.25, True), ([0.25, 0.5, 1.0], True)],
    ids=["activation", "weights", "channels"],
)
def test_the_format_is_kept(read, bits, zero, signed, scales, constant):
    model, weights = clipped(bits, zero, signed, scales, constant)
    graph = read(model)
    x = weights if not constant else np.ones((3, 4))
    found = run_float(graph, {"x": x[None]})["y"][0]
    steps = np.reshape(scales, (-1, 1))
    lo = -(1 << (bits - 1)) if signed else 0
    codes = np.clip(np.rint(weights / steps) + zero, lo, lo + (1 << bits) - 1)
    wanted = (codes - zero) * steps
    np.testing.assert_array_equal(found if constant else -found, wanted)
    (tensor,) = [tensor for tensor in graph.tensors.values() if tensor.quant]
    assert tensor.quant.args["bits"] == bits
    assert tensor.quant.args["zero_point"] == zero
    assert code_range(tensor.quant) == (lo, lo + (1 << bits) - 1)
    if constant:
        np.testing.assert_array_equal(encode(tensor.data, tensor.quant), codes)
