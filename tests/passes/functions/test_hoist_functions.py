"""Functions move in front of what moves elements."""

import numpy as np
from quantized_graphs import COARSE, FINE, assert_same_values, quants_of, with_quants
from simplified import check

from nnef_hw.ir.quantization import same_quantization
from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder


def test_functions_move_before_the_flatten_and_fuse(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)))
    y = image.op("relu", image.reshape(y, [1, 64]))
    image.op("linear", y, rng.standard_normal((2, 64)), 0.0)
    check(image.build(), rng, ["conv", "conv", "reshape"])


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
