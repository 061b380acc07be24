"""Attention, rotation and normalizations as onnxruntime joins them, and ONNX's own."""

import re

import numpy as np
import pytest
from onnx_runtime import run_onnxruntime

from nnef_hw.errors import UnsupportedError
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

helper = onnx.helper
MICROSOFT = "com.microsoft"


def build(node, inputs, constants, opset=17, outputs=("y",)):
    """Return a model of one node; inputs are of real numbers."""
    given = [helper.make_tensor_value_info(name, 1, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, 1, None) for name in outputs]
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph([node], "net", given, results, tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=min(10, onnx.IR_VERSION))


def single(values):
    return np.asarray(values, np.float32)


def check(proto, inputs, read, rng, *, batch=1):
    """Compare with onnxruntime; return the canonical operators that there are."""
    pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    arrays = {name: single(rng.normal(size=shape)) for name, shape in inputs.items()}
    expected = run_onnxruntime(proto, list(arrays.values()))
    graph = read(proto)
    found = run_float(graph, arrays)
    for name, value in zip(graph.outputs, expected.values(), strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
    canonical = simplify(graph)
    np.testing.assert_allclose(
        run_float(canonical, arrays)[canonical.outputs[0]], found[graph.outputs[0]], atol=1e-6
    )
    return [node.op for node in canonical.nodes]


FORMS = {
    "plain": ({}, {}),
    "scaled": ({"scale": 0.3}, {}),
    "causal": ({"unidirectional": 1}, {}),
    "lengths": ({}, {"m": np.array([4], np.int32)}),
    "places": ({"mask_filter_value": -1e4}, {"m": np.array([[1, 0, 1, 1, 0]], np.int32)}),
    "pairs": ({"unidirectional": 1}, {"m": np.tril(np.ones((1, 5, 5), np.int32), -1)
                                      + np.eye(5, dtype=np.int32)}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_attention_of_one_matrix(form, read, rng):
    attrs, more = FORMS[form]
    constants = {"w": single(rng.normal(size=(6, 24))), "b": single(rng.normal(size=24)), **more}
    names = ["x", "w", "b", *(["m"] if more else [])]
    node = helper.make_node("Attention", names, ["y"], domain=MICROSOFT, num_heads=2, **attrs)
    inputs = {"x": [1, 5, 6]}
    assert "softmax" in check(build(node, inputs, constants), inputs, read, rng)


def test_attention_with_values_of_another_size_and_a_bias_of_scores(read, rng):
    constants = {
        "w": single(rng.normal(size=(6, 20))), "b": single(rng.normal(size=20)),
        "s": single(rng.normal(size=(1, 2, 5, 5))),
    }  # fmt: skip
    node = helper.make_node("Attention", ["x", "w", "b", "", "", "s"], ["y"], domain=MICROSOFT,
                            num_heads=2, qkv_hidden_sizes=[8, 8, 4])  # fmt: skip
    inputs = {"x": [1, 5, 6]}
    check(build(node, inputs, constants), inputs, read, rng)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("attrs", [{}, {"scale": 0.7}, {"unidirectional": 1}], ids=str)
def test_attention_of_several_sequences(attrs, has_bias, read, rng):
    """Keys and values are those of another sequence, but for a mask of what comes later."""
    length = 3 if attrs.get("unidirectional") else 4
    inputs = {"q": [1, 3, 8], "k": [1, length, 8], "v": [1, length, 8]}
    constants = {"b": single(rng.normal(size=24))} if has_bias else {}
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v", *constants], ["y"],
                            domain=MICROSOFT, num_heads=4, **attrs)  # fmt: skip
    check(build(node, inputs, constants), inputs, read, rng)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    ("shape", "attrs"),
    [
        ([1, 3, 12], {}),
        ([1, 2, 3, 6], {}),
        ([1, 3, 20], {"num_heads": 2, "rotary_embedding_dim": 6}),
    ],
    ids=str,
)
def test_rotation(shape, attrs, interleaved, read, rng):
    angles = rng.uniform(0, 6, (8, 3))
    positions = np.array([[4, 0, 7]]) if interleaved else np.array([2])
    constants = {"p": positions, "c": single(np.cos(angles)), "s": single(np.sin(angles))}
    node = helper.make_node("RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain=MICROSOFT,
                            interleaved=interleaved, **attrs)  # fmt: skip
    inputs = {"x": shape}
    check(build(node, inputs, constants), inputs, read, rng)


NORMALIZATIONS = {
    "simplified": ("SimplifiedLayerNormalization", "", ["x", "g"], {"axis": -1}),
    "skip": ("SkipLayerNormalization", MICROSOFT, ["x", "z", "g", "h", "b"], {}),
    "skip simplified": ("SkipSimplifiedLayerNormalization", MICROSOFT, ["x", "z", "g", "b"], {}),
}


@pytest.mark.parametrize("which", NORMALIZATIONS)
def test_normalizations_are_one_operator(which, read, rng):
    op, domain, names, attrs = NORMALIZATIONS[which]
    inputs = {name: [1, 4, 8] for name in names if name in "xz"}
    constants = {name: single(rng.normal(size=8)) for name in names if name in "ghb"}
    node = helper.make_node(op, names, ["y"], domain=domain, epsilon=1e-3, **attrs)
    ops = check(build(node, inputs, constants), inputs, read, rng)
    assert ops.count("normalize") == 1
    assert not {"rsqrt", "sqr", "mul"} & {*ops}


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_the_sum_is_a_result_too(op, read, rng):
    inputs = {"x": [1, 4, 8], "z": [1, 4, 8]}
    node = helper.make_node(op, ["x", "z", "g"], ["y", "", "", "s"], domain=MICROSOFT)
    proto = build(node, inputs, {"g": single(rng.normal(size=8))}, outputs=("y", "s"))
    ops = check(proto, inputs, read, rng)
    assert {"add", "normalize"} <= {*ops}


CAUSAL = np.tril(np.ones((4, 4), bool))


@pytest.mark.parametrize(
    ("attrs", "heads", "mask"),
    [
        ({"is_causal": 1}, (2, 2), None),
        ({"scale": 0.2}, (4, 2), None),
        ({}, (2, 2), CAUSAL),
        ({}, (2, 1), np.where(CAUSAL, 0, -np.inf).astype(np.float32)),
    ],
    ids=["causal", "groups of heads", "logical mask", "infinite mask"],
)
def test_attention_of_onnx(attrs, heads, mask, read, rng):
    """With the mask as a constant nothing remains of it but a sum."""
    queries, keys = heads
    inputs = {"q": [1, 4, 3 * queries], "k": [1, 4, 3 * keys], "v": [1, 4, 3 * keys]}
    constants = {} if mask is None else {"m": mask}
    node = helper.make_node("Attention", ["q", "k", "v", *constants], ["y"],
                            q_num_heads=queries, kv_num_heads=keys, **attrs)  # fmt: skip
    proto = build(node, inputs, constants, opset=23)
    arrays = {name: single(rng.normal(size=shape)) for name, shape in inputs.items()}
    reference = pytest.importorskip("onnx.reference")
    [expected] = reference.ReferenceEvaluator(proto).run(None, arrays)
    graph = read(proto)
    np.testing.assert_allclose(run_float(graph, arrays)["y"], expected, rtol=1e-4, atol=1e-5)
    canonical = simplify(graph)
    np.testing.assert_allclose(
        *run_float(canonical, arrays).values(), expected, rtol=1e-4, atol=1e-5
    )
    ops = [node.op for node in canonical.nodes]
    assert ops.count("softmax") == 1
    assert "stepwise" not in ops  # no row is hidden, so none is made 0


REFUSED = {
    "keys and values of former calls are not supported": ("Attention", ["x", "w", "", "", "x"], {}),
    "do_rotary is not supported": ("Attention", ["x", "w"], {"do_rotary": 1}),
    "queries, keys and values that are packed are not supported": (
        "MultiHeadAttention", ["x"], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message, read, rng):
    op, names, attrs = REFUSED[message]
    node = helper.make_node(op, names, ["y"], domain=MICROSOFT, num_heads=2, **attrs)
    proto = build(node, {"x": [1, 3, 4]}, {"w": single(rng.normal(size=(4, 12)))})
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        read(proto)
