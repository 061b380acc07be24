"""What the passes do with quantized tensors: values stay, codes stay."""

import dataclasses

import numpy as np
import pytest

from nnef_hw.ir import Quantization, State
from nnef_hw.ir.quantization import same_quantization
from nnef_hw.passes import AbsorbQuantize, FoldConstants, simplify
from nnef_hw.reference import run_float
from nnef_hw.reference.float_quantize import encode, fake_quantize
from nnef_hw.testing import GraphBuilder

ARGS = {"bits": 8, "signed": True, "symmetric": False}
COARSE = Quantization("zero_point_linear_quantize", {**ARGS, "zero_point": 0, "scale": 0.25})
FINE = Quantization("zero_point_linear_quantize", {**ARGS, "zero_point": 3, "scale": 0.01})


def with_quants(graph, **quants):
    tensors = {
        name: dataclasses.replace(tensor, quant=quants.get(name, tensor.quant))
        for name, tensor in graph.tensors.items()
    }
    return graph.replaced(tensors=tensors)


def quants_of(graph):
    return {
        name: tensor.quant
        for name, tensor in graph.tensors.items()
        if tensor.quant is not None and tensor.data is None
    }


def assert_same_values(before, after, rng):
    x = {name: rng.normal(size=(20, *before.tensor(name).shape[1:])) for name in before.inputs}
    expected, found = run_float(before, x), run_float(after, x)
    for name in before.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def quantize_node(builder, source, quant, name):
    """Add a quantization operator with constant arguments."""
    attrs = {key: quant.args[key] for key in ("bits", "signed", "symmetric")}
    tensors = [np.array(quant.args[key]) for key in ("zero_point", "scale")]
    return builder.op(quant.op, source, *tensors, name=name, **attrs)


@pytest.fixture
def layer(rng):
    """Build x -> linear l, ready for more."""
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.constant("w", rng.normal(size=(3, 4)), label="w")
    builder.op("linear", "x", "w", rng.normal(size=(1, 3)), name="l")
    return builder


def test_static_operators_become_properties_of_tensors(layer, rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    quantize_node(builder, "x", COARSE, "q")
    builder.op("linear", "q", rng.normal(size=(3, 4)), np.zeros((1, 3)), name="l")
    quantize_node(builder, "l", FINE, "y")
    graph = builder.build()
    result = AbsorbQuantize()(graph)

    assert [node.op for node in result.nodes] == ["copy", "linear", "copy"]
    found = quants_of(result)
    assert found.keys() == {"x", "l"}
    assert same_quantization(found["x"], COARSE)
    assert same_quantization(found["l"], FINE)
    assert_same_values(graph, result, rng)
    assert AbsorbQuantize()(result) is result
    assert [node.op for node in simplify(graph).nodes] == ["linear"]
    assert_same_values(graph, simplify(graph), rng)


def test_computed_ranges_are_left_alone(layer):
    layer.op("max_reduce", "l", name="m", axes=[1])
    layer.op("linear_quantize", "l", np.array(-1.0), "m", name="y", bits=8)
    graph = layer.build()

    assert AbsorbQuantize()(graph) is graph


def test_quantizations_move_up_to_where_values_are_computed(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.conv("x", rng.normal(size=(3, 2, 1, 1)), np.zeros((1, 3)), name="c")
    builder.pool("max_pool", "c", name="p")
    builder.reshape("p", [1, 12], name="r")
    builder.op("copy", "r", name="y")
    graph = with_quants(builder.build(), y=FINE)
    result = AbsorbQuantize()(graph)

    assert quants_of(result) == {"c": FINE}
    assert_same_values(graph, result, rng)


def test_the_same_quantization_again_says_nothing(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.pool("max_pool", "x", name="p")
    builder.reshape("p", [1, 8], name="y")
    graph = with_quants(builder.build(), x=FINE, p=FINE, y=FINE)

    assert quants_of(AbsorbQuantize()(graph)) == {"x": FINE}


def test_a_second_quantization_is_an_operator(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.pool("max_pool", "x", name="p")
    builder.op("copy", "p", name="y")
    graph = with_quants(builder.build(), x=FINE, p=COARSE, y=FINE)
    result = AbsorbQuantize()(graph)

    assert [node.op for node in result.nodes] == ["max_pool", "requantize", "requantize"]
    assert_same_values(graph, result, rng)
    assert AbsorbQuantize()(result) is result


def test_values_that_others_read_unquantized_are_requantized(layer, rng):
    layer.op("copy", "l", name="y")
    graph = with_quants(layer.build("l", "y"), y=COARSE)
    result = AbsorbQuantize()(graph)

    assert [node.op for node in result.nodes] == ["linear", "requantize"]
    assert_same_values(graph, result, rng)


def test_softmax_has_the_format_of_the_hardware():
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.op("softmax", "x", name="y", axes=[1])
    format_of_softmax = {**ARGS, "signed": False, "zero_point": 0, "scale": 1 / 256}
    graph = with_quants(builder.build(), y=Quantization(COARSE.op, format_of_softmax))

    assert quants_of(AbsorbQuantize()(graph)) == {}
    assert [node.op for node in AbsorbQuantize()(graph).nodes] == ["softmax"]


@pytest.mark.parametrize(
    ("before", "value", "ops"),
    [
        (None, 0.0, ["pad", "requantize", "max_pool"]),
        (COARSE, 0.3, ["pad", "requantize", "max_pool"]),
        (COARSE, 0.5, ["pad", "max_pool"]),
    ],
)
def test_padding_is_quantized_behind_it(rng, before, value, ops):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    padding = [(0, 0), (0, 0), (1, 1), (1, 1)]
    builder.op("pad", "x", name="p", padding=padding, border="constant", value=value)
    builder.pool("max_pool", "p", name="y")
    graph = with_quants(builder.build(), x=before, p=COARSE)
    result = AbsorbQuantize()(graph)

    assert [node.op for node in result.nodes] == ops
    assert_same_values(graph, result, rng)


def test_what_the_next_inference_reads_is_left_as_it_is(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.op("tanh", "x", name="t")
    builder.op("copy", "t", name="y")
    graph = with_quants(builder.build(), y=COARSE)
    tensors = {**graph.tensors, "s": dataclasses.replace(graph.tensor("t"), name="s")}
    graph = dataclasses.replace(graph, tensors=tensors, states={"s": State(np.zeros((1, 4)), "t")})

    assert quants_of(AbsorbQuantize()(graph)) == {"y": COARSE}


def test_quantized_constants_have_rounded_values(layer, rng):
    quantize_node(layer, "w", COARSE, "q")
    layer.op("linear", "x", "q", np.zeros((1, 3)), name="y")
    graph = layer.build()
    tensor = AbsorbQuantize()(graph).tensor("q")

    np.testing.assert_array_equal(tensor.data, fake_quantize(graph.constant("w"), COARSE))
    assert same_quantization(tensor.quant, COARSE)
    assert_same_values(graph, AbsorbQuantize()(graph), rng)


SCALES = np.array([0.25, 0.5, 0.125])


@pytest.mark.parametrize(
    ("op", "attrs", "shape"),
    [
        ("unsqueeze", {"axes": [0]}, (1, 3, 4)),
        ("transpose", {"axes": [1, 0]}, (4, 3)),
        ("reshape", {}, (3, 2, 2)),
        ("copy", {}, (3, 4)),
    ],
)
def test_rearranged_constants_keep_their_codes(op, attrs, shape):
    codes = np.arange(12).reshape(3, 4)
    builder = GraphBuilder()
    builder.input("x", shape)
    builder.constant("w", codes * SCALES[:, None])
    if op == "reshape":
        builder.reshape("w", shape, name="r")
    else:
        builder.op(op, "w", name="r", shape=shape, **attrs)
    builder.op("add", "x", "r", name="y")
    quant = Quantization(COARSE.op, {**COARSE.args, "scale": SCALES})
    tensor = FoldConstants()(with_quants(builder.build(), w=quant)).tensor("r")

    assert tensor.data.shape == shape
    np.testing.assert_array_equal(
        encode(tensor.data, tensor.quant), (codes.T if op == "transpose" else codes).reshape(shape)
    )


@pytest.mark.parametrize(
    ("quants", "ops"),
    [
        ({}, ["linear"]),
        ({"y": FINE}, ["linear"]),
        ({"l": FINE}, ["linear"]),
        ({"l": FINE, "y": FINE}, ["linear"]),
        ({"l": FINE, "y": COARSE}, ["linear", "relu"]),
    ],
    ids=["none", "result", "sum", "the same", "different"],
)
def test_relu_is_fused_where_that_changes_nothing(layer, rng, quants, ops):
    layer.op("relu", "l", name="y")
    graph = with_quants(layer.build(), **quants)
    result = simplify(graph)

    assert [node.op for node in result.nodes] == ops
    assert ("y" in quants_of(result)) == bool(quants)
    assert_same_values(graph, result, rng)


@pytest.mark.parametrize("quantized", ["w", "l", "s"])
def test_nothing_is_folded_into_codes(layer, rng, quantized):
    layer.constant("s", rng.uniform(1, 2, (1, 3)))
    layer.op("mul", "l", "s", name="y")
    graph = with_quants(layer.build(), **{quantized: FINE})
    result = simplify(graph)

    assert len(simplify(layer.build()).nodes) == 1
    assert [node.op for node in result.nodes] == ["linear", "reshape", "conv", "reshape"]
    assert_same_values(graph, result, rng)


def test_one_dimensional_and_transposed_filters_keep_their_codes(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 5))
    builder.constant("f", rng.integers(-9, 9, (3, 2, 3)) * SCALES[:, None, None], label="f")
    builder.conv("x", "f", np.zeros((1, 3)), name="c", padding=1)
    builder.reshape("c", [1, 15], name="r")
    builder.constant("m", rng.integers(-9, 9, (15, 4)) * 0.25, label="m")
    builder.op("matmul", "r", "m", name="y", transposeA=False, transposeB=False)
    per_channel = Quantization(COARSE.op, {**COARSE.args, "scale": SCALES})
    graph = with_quants(builder.build(), f=per_channel, m=COARSE, c=FINE, y=FINE)
    result = simplify(graph)

    filters = [result.tensor(node.inputs[1]) for node in result.nodes if node.op == "conv"]
    assert len(filters) == 2
    for tensor in filters:
        np.testing.assert_array_equal(fake_quantize(tensor.data, tensor.quant), tensor.data)
    assert_same_values(graph, result, rng)


def test_functions_keep_their_quantization_in_front_of_a_reshape(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.conv("x", rng.normal(size=(3, 2, 1, 1)), np.zeros((1, 3)), name="c")
    builder.reshape("c", [1, 48], name="r")
    builder.op("tanh", "r", name="t")
    builder.op("linear", "t", rng.normal(size=(2, 48)), np.zeros((1, 2)), name="y")
    graph = with_quants(builder.build(), c=COARSE, t=FINE)
    result = simplify(graph)

    assert [node.op for node in result.nodes] == ["conv", "tanh", "conv", "reshape"]
    assert same_quantization(quants_of(result)[result.nodes[1].name], FINE)
    assert_same_values(graph, result, rng)


def test_rows_of_biases_keep_their_codes(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.constant("b", np.array([3, -4, 5]) * SCALES)
    builder.conv("x", rng.normal(size=(3, 2, 1, 1)), "b", name="y")
    quant = Quantization(COARSE.op, {**COARSE.args, "scale": SCALES})
    graph = simplify(with_quants(builder.build(), b=quant))
    tensor = graph.tensor(graph.nodes[0].inputs[2])

    assert encode(tensor.data, tensor.quant).tolist() == [[3, -4, 5]]
