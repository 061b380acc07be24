"""Scales and offsets of channels go into layers."""

import numpy as np
import pytest
from quantized_graphs import FINE, assert_same_values, with_quants
from simplified import batch_norm, check

from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder


def test_batch_norm_folds_into_conv_and_relu_fuses_behind_it(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)), rng.standard_normal((1, 4)))
    image.op("relu", batch_norm(image, y, 4, rng))
    check(image.build(), rng, ["conv"])


def test_batch_norm_folds_into_linear(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 5))
    y = builder.op("linear", "x", rng.standard_normal((4, 5)), 0.0)
    batch_norm(builder, y, 4, rng)
    check(builder.build(), rng, ["linear"])


def test_lone_batch_norm_becomes_depthwise(image, rng):
    batch_norm(image, "x", 3, rng)
    graph = check(image.build(), rng, ["conv"])
    assert graph.nodes[0].attrs["groups"] == 3


def test_batch_norm_behind_a_shared_conv_stays_apart(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)), name="y")
    n = batch_norm(image, y, 4, rng)
    check(image.build(y, n), rng, ["conv", "conv"])


def test_scales_and_offsets_fold(image, rng):
    y = image.op("div", image.op("sub", "x", 0.5), np.array([[0.2, 0.3, 0.4]]))
    y = image.conv(y, rng.standard_normal((4, 3, 3, 3)))
    y = image.op("mul", image.op("add", y, rng.standard_normal((1, 4))), 3.0)
    y = image.op("sub", 1.0, y)
    check(image.build(), rng, ["conv", "conv"])


def test_scales_and_offsets_of_vectors_fold_into_one_layer(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    y = builder.op("add", builder.op("mul", "x", 2.0), rng.standard_normal((1, 4)))
    builder.op("softmax", builder.op("relu", y), axes=[1])
    check(builder.build(), rng, ["reshape", "conv", "reshape", "softmax"])


def test_depthwise_folds_only_where_it_is_a_scale(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)))
    y = image.conv(y, rng.standard_normal((4, 1, 1, 1)), rng.standard_normal(4), groups=4)
    y = image.op("relu", y)
    y = image.conv(y, rng.standard_normal((4, 1, 1, 1)), groups=4, padding=1)
    check(image.build(), rng, ["conv", "conv"])


@pytest.mark.parametrize("quantized", ["w", "l", "s"])
def test_nothing_is_folded_into_codes(layer, rng, quantized):
    layer.constant("s", rng.uniform(1, 2, (1, 3)))
    layer.op("mul", "l", "s", name="y")
    graph = with_quants(layer.build(), **{quantized: FINE})
    result = simplify(graph)

    assert len(simplify(layer.build()).nodes) == 1
    assert [node.op for node in result.nodes] == ["linear", "reshape", "conv", "reshape"]
    assert_same_values(graph, result, rng)
