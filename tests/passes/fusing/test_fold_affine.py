"""Scales and offsets of channels go into layers."""

import numpy as np
import pytest
from quantized_graphs import FINE, assert_same_values, with_quants
from simplified import batch_norm, check

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize.calibration.source_quantization import source_weights
from nnef_hw.reference.real.quantize import decode, encode
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


def test_batch_norm_folds_through_reshapes_that_keep_the_channels(rng):
    # as PyTorch's batch norm of vectors is exported
    builder = GraphBuilder()
    builder.input("x", (1, 5))
    y = builder.op("linear", "x", rng.standard_normal((4, 5)), 0.0)
    y = batch_norm(builder, builder.reshape(y, [1, 4, 1]), 4, rng)
    builder.op("relu", builder.reshape(y, [1, 4]))
    check(builder.build(), rng, ["linear"])


def test_batch_norm_folds_into_the_conv_of_a_flattened_image(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)))
    y = image.reshape(y, [1, 4, 16])
    graph = check(image.build(batch_norm(image, y, 4, rng)), rng, ["conv", "reshape"])
    assert graph.nodes[0].attrs["groups"] == 1


def test_batch_norm_of_other_channels_than_the_layer_has_stays(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 1, 1)))
    y = image.reshape(y, [1, 8, 3, 6])
    batch_norm(image, y, 8, rng)
    check(image.build(), rng, ["conv", "reshape", "conv"])


def test_batch_norm_behind_a_reshape_of_two_readers_stays(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 5))
    y = builder.op("linear", "x", rng.standard_normal((4, 5)), 0.0)
    y = builder.reshape(y, [1, 4, 1])
    n = batch_norm(builder, y, 4, rng)
    graph = simplify(builder.build(y, n))
    assert [node.op for node in graph.nodes if node.op != "reshape"] == ["linear", "conv"]


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
    check(image.build(), rng, ["conv"])


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


STEPS = {"zero_point": 0, "scale": 0.5, "bits": 3, "signed": True, "symmetric": True}
CODES = np.array([[-3, 1], [2, 0], [0, 0], [3, -1]])


def fold(rng, quant, scale, codes=CODES):
    """Return the layer that a quantized filter [4, 2] and ``scale * y + offset`` become."""
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.constant("w", decode(codes, quant))
    y = builder.op("mul", builder.op("linear", "x", "w", 0.0), np.array([scale]))
    builder.op("add", y, 1.0, name="y")
    graph = with_quants(builder.build(), w=quant)
    simplified = simplify(graph)
    assert_same_values(graph, simplified, rng)
    return simplified


def test_codes_stay_in_other_steps(rng):
    quant = Quantization("zero_point_linear_quantize", STEPS)
    graph = fold(rng, quant, [2.0, -0.5, 3.0, 1e-13])
    (layer,) = (node for node in graph.nodes if node.op in {"conv", "linear"})
    weights = graph.tensor(layer.inputs[1])
    found = encode(weights.data, weights.quant).reshape(4, 2)
    # without weight, or with steps that a bias cannot count
    np.testing.assert_array_equal(found, [[-3, 1], [-2, 0], [0, 0], [0, 0]])
    assert np.ravel(weights.quant.args["scale"]).tolist() == [1.0, 0.25, 1.0, 1.0]


def test_signs_stay_of_one_bit(rng):
    quant = Quantization("linear_quantize", {"min": -0.5, "max": 0.5, "bits": 1})
    graph = fold(rng, quant, [1.0, -2.0, 1.0, 3.0], (CODES > 0).astype(int))
    (layer,) = (node for node in graph.nodes if node.op in {"conv", "linear"})
    codes, qtype = source_weights(graph.tensor(layer.inputs[1]))
    expected = np.where(CODES > 0, 1, -1) * np.array([[1], [-1], [1], [1]])
    np.testing.assert_array_equal(codes.reshape(4, 2), expected)
    assert qtype == QType(1, True, (0.5, 1.0, 0.5, 1.5), narrow=True)


@pytest.mark.parametrize("zero_point", [0, 1])
def test_codes_that_would_not_fit_stay_apart(zero_point, rng):
    args = {**STEPS, "bits": 8, "symmetric": False, "zero_point": zero_point}
    codes = np.where(CODES == -3, -128, CODES)
    graph = fold(
        rng, Quantization("zero_point_linear_quantize", args), [-1.0, -1.0, 1.0, 1.0], codes
    )
    assert sum(node.op in {"conv", "linear"} for node in graph.nodes) == 2


def test_the_opposite_of_the_lowest_code_takes_a_bit(rng):
    quant = Quantization("zero_point_linear_quantize", {**STEPS, "symmetric": False})
    graph = fold(rng, quant, [-1.0, 1.0, 1.0, 1.0], np.where(CODES == -3, -4, CODES))
    (layer,) = (node for node in graph.nodes if node.op in {"conv", "linear"})
    codes, qtype = source_weights(graph.tensor(layer.inputs[1]))
    assert codes.reshape(4, 2)[0].tolist() == [4, -1]
    assert qtype.bits == 4
