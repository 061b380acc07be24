"""Older forms of operators, which the wheel's cases lack, against onnx's own evaluator."""

from functools import cache

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from nnef_hw.frontend.onnx.lowering.registry import known_lowerings
from nnef_hw.reference import run_float

OLDEST = 6
NOT_LOWERED = {
    ("Scatter", 11): "removed",
    ("Upsample", 10): "removed",
    ("Upsample", 1): "an experiment before opset 7",
    ("Scan", 8): "its own batch and lengths of sequences",
    ("RNN", 1): "before opset 7", ("GRU", 3): "before opset 7", ("LSTM", 1): "before opset 7",
}  # fmt: skip


@cache
def history():
    """Return all versions of ONNX's operators."""
    found = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, []).append(schema.since_version)
    return found


def versions(op):
    """Return the versions of an operator that models of opset 6 and newer can import."""
    found = sorted(history()[op])
    return [v for v, following in zip(found, [*found[1:], 999], strict=True) if following > OLDEST]


def test_every_version_of_a_lowered_operator_is_lowered_too():
    table = {(op, since) for domain, op, since in known_lowerings() if not domain}
    missing = {
        (op, since)
        for op in {op for op, _ in table}
        for since in versions(op)
        if (op, since) not in table
    }
    assert missing == NOT_LOWERED.keys()


def test_no_lowering_is_for_a_version_that_does_not_exist():
    table = {(op, since) for domain, op, since in known_lowerings() if not domain}
    assert {(op, since) for op, since in table if since not in versions(op)} == set()


def array(*shape, dtype=np.float32, start=-3.0):
    """Return numbers that differ, of both signs."""
    values = start + np.arange(np.prod(shape, dtype=int)) * 0.37
    return (values % 5 - 2).reshape(shape).astype(dtype)


X2, X3, IMAGE = array(3, 4), array(2, 3, 4), array(1, 2, 4, 5)
ONE, TWO = np.array([1.0], np.float32), np.array([2.0], np.float32)
INDEX = np.array([[0, -1], [2, 1]])


CASES = {
    "hardmax": (13, "Hardmax", [X3], {"axis": 1}),
    "squeeze_attribute": (11, "Squeeze", [array(1, 3, 1)], {"axes": [0]}),
    "unsqueeze_attribute": (11, "Unsqueeze", [X2], {"axes": [0, -1]}),
    "reduce_attribute": (11, "ReduceSum", [X3], {"axes": [1], "keepdims": 0}),
    "reduce_input": (18, "ReduceMax", [X3, np.array([0, 2])], {"keepdims": 0}),
    "reduce_log_sum_exp": (13, "ReduceLogSumExp", [X3], {"axes": [-1]}),
    "reduce_nothing": (18, "ReduceMean", [X3], {"noop_with_empty_axes": 1}),
    "slice_attribute": (9, "Slice", [X2], {"starts": [1, -3], "ends": [9, -1], "axes": [0, 1]}),
    "slice_backwards": (13, "Slice", [X2, *map(np.array, ([3], [-9], [1], [-2]))], {}),
    "split_attribute": (11, "Split", [X2], {"axis": 1, "split": [1, 3]}),
    "split_unevenly": (18, "Split", [array(7)], {"num_outputs": 3}),
    "pad_attribute": (10, "Pad", [X2], {"pads": [1, 0, 1, 2], "value": 1.5}),
    "pad_axes": (18, "Pad", [X2, np.array([1, 2]), ONE[0], np.array([-1])], {}),
    "clip_attribute": (6, "Clip", [X2], {"min": -1.0}),
    "clip_crossed": (13, "Clip", [X2, np.float32(1), np.float32(-1)], {}),
    "dropout_ratio": (10, "Dropout", [X2], {"ratio": 0.5}),
    "gather_scalar": (13, "Gather", [X3, np.array(-2)], {"axis": 1}),
    "gather_constant": (13, "Gather", [X2, INDEX], {"axis": 1}),
    "gather_elements": (13, "GatherElements", [X2, array(3, 2, dtype=np.int64)], {"axis": 1}),
    "scatter_elements": (18, "ScatterElements", [X2, INDEX, array(2, 2)], {"reduction": "add"}),
    "one_hot": (11, "OneHot", [INDEX, np.array(3), np.array([2, 5])], {"axis": 0}),
    "topk": (11, "TopK", [X2, np.array([2])], {"axis": 1, "largest": 0}),
    "trilu": (14, "Trilu", [X2, np.array(1)], {"upper": 0}),
    "cumsum": (14, "CumSum", [X2, np.array(1)], {"reverse": 1, "exclusive": 1}),
    "compress": (11, "Compress", [X2, np.array([True, False, True])], {"axis": 0}),
    "einsum_implicit": (12, "Einsum", [X2, array(4, 2)], {"equation": "ij, jk"}),
    "einsum_ellipsis": (12, "Einsum", [X3, array(4, 2)], {"equation": "...ij,jk->...ik"}),
    "matmul_ranks": (13, "MatMul", [array(2, 1, 3, 4), X3.transpose(0, 2, 1)], {}),
    "matmul_of_a_vector": (13, "MatMul", [array(4), array(2, 4, 3)], {}),
    "gemm": (13, "Gemm", [X2, X2, array(3, 1)], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "gemm_of_columns": (13, "Gemm", [X2, array(3, 2)], {"transA": 1}),
    "mod_of_floats": (13, "Mod", [X2, TWO], {"fmod": 1}),
    "mod_of_integers": (13, "Mod", [np.array([-5, 5]), np.array([3, -3])], {}),
    "integer_quotient": (14, "Div", [np.array([-7, 7, 8]), np.array([2, -2, 4])], {}),
    "power_of_integers": (15, "Pow", [np.array([2, 3]), np.array([3.0, 2.0])], {}),
    "square": (15, "Pow", [X2, TWO], {}),
    "shift_wraps": (11, "BitShift", [np.array([200, 3], np.uint8), np.array([1, 2], np.uint8)],
                    {"direction": "LEFT"}),
    "depth_to_space": (13, "DepthToSpace", [array(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}),
    "space_to_depth": (13, "SpaceToDepth", [IMAGE[..., :4]], {"blocksize": 2}),
    "flatten_backwards": (13, "Flatten", [X3], {"axis": -1}),
    "cast_truncates": (13, "Cast", [X2], {"to": 7}),
    "cast_wraps": (13, "Cast", [np.array([300, -129])], {"to": 3}),
    "celu": (12, "Celu", [X2], {"alpha": 2.0}),
    "shrink": (9, "Shrink", [X2], {"lambd": 1.0, "bias": 0.5}),
    "group_normalization": (21, "GroupNormalization", [array(2, 4, 3), array(4), array(4)],
                            {"num_groups": 2}),
    "reverse_sequence": (10, "ReverseSequence", [array(4, 3), np.array([2, 4, 0])], {}),
    "eye_like": (9, "EyeLike", [X2], {"k": 1, "dtype": 1}),
    "average_with_ceil": (11, "AveragePool", [IMAGE], {
        "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 0], "ceil_mode": 1}),
    "lp_pool": (18, "LpPool", [IMAGE], {"kernel_shape": [2, 2], "p": 3}),
    "conv_same_lower": (11, "Conv", [IMAGE, array(2, 1, 2, 2), array(2)], {
        "auto_pad": "SAME_LOWER", "group": 2}),
    "conv_transpose_padded": (11, "ConvTranspose", [IMAGE, array(2, 3, 3, 3), array(3)], {
        "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "conv_transpose_added": (11, "ConvTranspose", [IMAGE, array(2, 3, 2, 2)], {
        "strides": [3, 3], "output_padding": [2, 1]}),
    "local_response": (13, "LRN", [array(5, 5, 2, 2)], {"size": 4, "alpha": 0.5}),
    "rms_normalization": (23, "RMSNormalization", [X3, array(4)], {}),
}  # fmt: skip
"""Opset, operator, arguments (the first one is an activation, the others constants), attributes."""


@pytest.mark.parametrize("name", CASES)
def test_operator_computes_what_onnx_does(name, make_node, read):
    opset, op, inputs, attrs = CASES[name]
    inputs = [np.asarray(x) for x in inputs]
    schema = onnx.defs.get_schema(op, opset)
    count = attrs.get("num_outputs", len(attrs.get("split", [0] * schema.min_output)))
    constant = range(1, len(inputs))
    model = make_node(op, *inputs, outputs=count, constant=constant, opset=opset, **attrs)
    graph = read(model)
    expected = ReferenceEvaluator(model).run(None, {"x0": inputs[0]})
    found = run_float(graph, dict.fromkeys(graph.inputs, inputs[0]))
    for output, value in zip(graph.outputs, expected, strict=True):
        assert graph.tensor(output).shape == value.shape
        np.testing.assert_allclose(found[output].reshape(value.shape), value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_flattens_before_opset_13(op, make_node, read):
    exponentials = np.exp(X3.reshape(2, 12))
    shares = (exponentials / exponentials.sum(axis=1, keepdims=True)).reshape(X3.shape)
    y = run_float(read(make_node(op, X3, opset=11, axis=1)), {"x0": X3})["y0"]
    np.testing.assert_allclose(np.exp(y) if op == "LogSoftmax" else y, shares, rtol=1e-5)


def test_negative_padding_crops(make_node, read):
    x = array(3, 4)
    graph = read(make_node("Pad", x, opset=10, pads=[-1, 1, 0, -2], value=5.0))
    expected = np.pad(x[1:, :2], ((0, 0), (1, 0)), constant_values=5)
    np.testing.assert_array_equal(run_float(graph, {"x0": x})["y0"], expected)


def test_upsampling_repeats(make_node, read):
    graph = read(make_node("Upsample", IMAGE, opset=7, scales=[1.0, 1.0, 2.0, 3.0]))
    expected = IMAGE.repeat(2, axis=2).repeat(3, axis=3)
    np.testing.assert_array_equal(run_float(graph, {"x0": IMAGE})["y0"], expected)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("shape", [(4,), (3, 1), (1,), (), (2, 1, 1)])
def test_shapes_broadcast_from_the_last_dimension(shape, constant, make_node, read):
    x, y = array(2, 3, 4), array(*shape)
    graph = read(make_node("Sub", x, y, constant=[1] if constant else []))
    samples = dict(zip(graph.inputs, (x, y), strict=False))
    found = run_float(graph, samples)["y0"]
    np.testing.assert_allclose(found, x - y)


@pytest.mark.parametrize(
    ("shape", "attrs", "aligned"),
    [
        ((3,), {"broadcast": 1, "axis": 1}, (3, 1)),
        ((2, 3), {"broadcast": 1, "axis": 0}, (2, 3, 1)),
        ((3, 4), {"broadcast": 1}, (3, 4)),
    ],
)
def test_opset_6_broadcasts_at_an_axis(shape, attrs, aligned, make_node, read):
    x, y = array(2, 3, 4), array(*shape)
    graph = read(make_node("Add", x, y, constant=[1], opset=6, **attrs))
    np.testing.assert_allclose(run_float(graph, {"x0": x})["y0"], x + y.reshape(aligned))


@pytest.mark.parametrize(
    ("mode", "coordinates", "nearest", "factor", "op"),
    [
        ("nearest", "asymmetric", "floor", 2, "nearest_upsample"),
        ("nearest", "half_pixel", "round_prefer_floor", 3, "nearest_upsample"),
        ("nearest", "half_pixel", "round_prefer_ceil", 2, "nearest_upsample"),
        ("nearest", "asymmetric", "ceil", 2, "resize"),
        ("nearest", "asymmetric", "floor", 0.5, "nearest_downsample"),
        ("linear", "half_pixel", "floor", 2, "multilinear_upsample"),
        ("linear", "asymmetric", "floor", 3, "multilinear_upsample"),
        ("linear", "align_corners", "floor", 2, "multilinear_upsample"),
        ("linear", "pytorch_half_pixel", "floor", 2, "resize"),
        ("linear", "half_pixel", "floor", 0.5, "resize"),
        ("cubic", "half_pixel", "floor", 2, "resize"),
    ],
)
def test_resizing_by_whole_factors_is_standard(
    mode, coordinates, nearest, factor, op, make_node, read
):
    x = array(1, 2, 4, 6)
    scales = np.array([1, 1, factor, factor], np.float32)
    attrs = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest, "mode": mode}
    model = make_node("Resize", x, None, scales, constant=[2], **attrs)
    graph = read(model)
    assert [node.op for node in graph.nodes] == [op]
    expected = ReferenceEvaluator(model).run(None, {"x0": x})[0]
    np.testing.assert_allclose(run_float(graph, {"x0": x})["y0"], expected, rtol=1e-5, atol=1e-5)


def test_extents_are_scaled_in_32_bits(make_node, read):
    scales = np.array([1, 1, 0.7, 0.7], np.float32)
    model = make_node("Resize", array(1, 1, 10, 10), None, scales, constant=[2], mode="linear")
    assert read(model).tensor("y0").shape == (1, 1, 7, 7)


def test_negative_indices_of_the_run_count_from_the_end(make_node, read):
    x, indices = array(4, 3), np.array([0, -1, 2])
    graph = read(make_node("Gather", x, indices, constant=[0], axis=0))
    assert [node.op for node in graph.nodes] == ["add", "lt", "select", "gather"]
    np.testing.assert_array_equal(run_float(graph, {"x1": indices})["y0"], x[indices])


def test_indices_outside_are_refused(make_node, read):
    from nnef_hw.errors import ModelError

    with pytest.raises(ModelError, match=r"Gather 'node': the indices 'x1' are not in -4\.\.3"):
        read(make_node("Gather", array(4, 3), np.array([4]), constant=[1]))


def test_the_index_of_a_maximum_counts_in_the_whole_tensor(make_node, read):
    x = array(2, 2, 4, 4)
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    graph = read(make_node("MaxPool", x, outputs=2, **attrs))
    found = run_float(graph, {"x0": x})
    np.testing.assert_array_equal(x.reshape(-1)[found["y1"]], found["y0"])


def test_unpooling_puts_maxima_back(make_node, read):
    x, where = array(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]])
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    y = run_float(read(make_node("MaxUnpool", x, where, constant=[1], **attrs)), {"x0": x})["y0"]
    expected = np.zeros(16)
    expected[where.reshape(-1)] = x.reshape(-1)
    np.testing.assert_allclose(y.reshape(-1), expected)
