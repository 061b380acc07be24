"""Graphs that compute what NNEF has no operator for, written with what it has."""

import numpy as np
import pytest

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.writing.conform import conform
from nnef_hw.ir import Graph, Tensor, verify
from nnef_hw.reference import run_float


def operators(graph):
    return [node.op for node in graph.nodes]


def build(op, *inputs, result="integer", **attrs):
    """Build a graph of one operator; inputs are data-types or constants."""
    builder = Builder("net")
    tensors = [
        builder.input(Tensor(f"x{index}", (2, 3), item))
        if isinstance(item, str)
        else builder.constant(f"y_{'xyz'[index]}", np.asarray(item))
        for index, item in enumerate(inputs)
    ]
    builder.node(op, tensors, attrs, ["y"], [result])
    return builder.build(["y"])


def samples(graph, rng):
    """Return three samples of numbers that any data-type has."""
    shapes = {name: (3, *graph.tensor(name).shape) for name in graph.inputs}
    integers = {name: rng.integers(-9, 10, shape) for name, shape in shapes.items()}
    kinds = {"logical": bool, "integer": np.int64, "scalar": np.float64}
    return {name: x.astype(kinds[graph.tensor(name).dtype]) for name, x in integers.items()}


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (build("add", "integer", "integer"), ["cast", "cast", "add", "cast"]),
        (build("mul", "integer", 3), ["cast", "mul", "cast"]),
        (build("div", "integer", 4), ["cast", "div", "cast"]),
        (build("lt", "integer", "scalar", result="logical"), ["cast", "lt"]),
        (build("eq", "logical", "logical", result="logical"), ["cast", "cast", "eq"]),
        (build("max_reduce", "integer", axes=[1]), ["cast", "max_reduce", "cast"]),
        (build("argmax_reduce", "integer", axes=[1]), ["cast", "argmax_reduce"]),
        (build("select", "logical", 1, 0), ["select"]),
        (build("transpose", "integer", axes=[1, 0]), ["transpose"]),
        (build("sqr", "scalar", result="scalar"), ["sqr"]),
    ],
    ids=lambda value: " ".join(operators(value) if isinstance(value, Graph) else value),
)
def test_casts_stand_where_types_differ(graph, expected, rng):
    written = conform(graph)
    verify(written)
    assert operators(written) == expected
    inputs = samples(graph, rng)
    before, after = run_float(graph, inputs)["y"], run_float(written, inputs)["y"]
    assert before.dtype == after.dtype
    np.testing.assert_array_equal(after, before)


def test_integer_is_cast_once():
    builder = Builder("net")
    x = builder.input(Tensor("x", (2,), "integer"))
    (y,) = builder.node("add", [x, x], {}, ["y"], ["integer"])
    builder.node("mul", [x, y], {}, ["z"], ["integer"])
    written = conform(builder.build(["z"]))
    assert operators(written) == ["cast", "add", "cast", "cast", "mul", "cast"]


def test_constant_of_another_type_is_converted():
    graph = build("add", "integer", 3)
    (name,) = (name for name, tensor in conform(graph).tensors.items() if tensor.data is not None)
    tensor = conform(graph).tensor(name)
    assert (tensor.name, tensor.dtype, tensor.data.dtype) == ("y_y", "scalar", np.float64)


def test_constant_that_others_read_keeps_its_type():
    builder = Builder("net")
    x = builder.input(Tensor("x", (2,), "integer"))
    three = builder.constant("three", np.asarray(3))
    builder.node("add", [x, three], {}, ["y"], ["integer"])
    builder.node("bit_and", [x, three], {}, ["z"], ["integer"])
    written = conform(builder.build(["y", "z"]))
    verify(written)
    assert written.tensor("three").dtype == "integer"
    assert written.tensor("three_scalar").dtype == "scalar"


def test_outputs_are_results_of_their_own():
    builder = Builder("net")
    x = builder.input(Tensor("x", (2,)))
    builder.node("relu", [x], {}, ["y"])
    written = conform(builder.build(["x", "y", "y", "x"]))
    verify(written)
    assert written.outputs == ("x_copy", "y", "y_copy", "x_copy_1")
    assert operators(written) == ["relu", "copy", "copy", "copy"]


def test_graph_within_the_language_stays_the_same():
    graph = build("sqr", "scalar", result="scalar")
    written = conform(graph)
    assert [vars_of(node) for node in written.nodes] == [vars_of(node) for node in graph.nodes]
    assert written.tensors == graph.tensors


def vars_of(node):
    return node.op, node.inputs, node.outputs, dict(node.attrs)
