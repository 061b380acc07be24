"""What becomes of quantized tensors: values stay, codes stay."""

import dataclasses

import numpy as np
import pytest
from quantized_graphs import (
    ARGS,
    COARSE,
    FINE,
    assert_same_values,
    quantize_node,
    quants_of,
    with_quants,
)

from nnef_hw.ir import Quantization, State
from nnef_hw.ir.quantization import same_quantization
from nnef_hw.passes import simplify
from nnef_hw.passes.fusing.absorb_quantize import AbsorbQuantize
from nnef_hw.reference.real.quantize import fake_quantize
from nnef_hw.testing import GraphBuilder


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
