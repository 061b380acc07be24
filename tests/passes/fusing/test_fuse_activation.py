"""A ReLU or a clamp becomes part of the sum that it alone reads."""

import pytest
from quantized_graphs import COARSE, FINE, assert_same_values, quants_of, with_quants
from simplified import check

from nnef_hw.ir.activation import activation_limits
from nnef_hw.passes import simplify


def test_relu_fuses_and_gives_its_name(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)), padding=1)
    image.op("relu", y, name="r")
    graph = check(image.build(), rng, ["conv"])
    assert graph.nodes[0].name == "r"
    assert graph.nodes[0].attrs["activation"] == "relu"
    assert graph.nodes[0].location.line == 1


def test_relu_does_not_fuse_into_a_sum_that_others_read(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)), name="y")
    r = image.op("relu", y, name="r")
    graph = check(image.build(r, y), rng, ["conv", "relu"])
    assert graph.nodes[0].attrs["activation"] is None


@pytest.mark.parametrize("op", ["add", "sub"])
def test_relu_fuses_into_a_sum_of_branches(op, image, rng):
    y = image.conv("x", rng.standard_normal((3, 3, 3, 3)), padding=1)
    image.op("relu", image.op(op, "x", y), name="r")
    graph = check(image.build(), rng, ["conv", op])
    assert graph.nodes[1].name == "r"
    assert graph.nodes[1].attrs["activation"] == "relu"
    assert graph.nodes[1].location.line == 2


def test_relu_does_not_fuse_into_a_product(image, rng):
    image.op("relu", image.op("mul", "x", image.input("z", (1, 3, 6, 6))))
    check(image.build(), rng, ["mul", "relu"])


def test_limits_in_a_row_are_one(image, rng):
    y = image.op("relu", image.op("add", "x", image.input("z", (1, 3, 6, 6))))
    y = image.op("clamp", image.op("relu", y), -1.0, 2.0)
    (node,) = check(image.build(image.op("max", y, 0.25)), rng, ["add"]).nodes
    assert activation_limits(node) == (0.25, 2.0)


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
