"""Passes must keep what a network computes, and leave only what hardware exists for."""

import re

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, UnsupportedError
from nnef_hw.ir import Stage, verify
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float
from nnef_hw.testing import GraphBuilder


def check(graph, rng, ops=None):
    """Simplify; the results must agree to the last bits, and the operators be as expected."""
    canonical = simplify(graph)
    assert canonical.stage == Stage.CANONICAL
    assert canonical.outputs == graph.outputs
    assert canonical.inputs == graph.inputs
    verify(canonical)
    x = {name: rng.standard_normal((5, *graph.tensor(name).shape[1:])) for name in graph.inputs}
    before, after = run_float(graph, x), run_float(canonical, x)
    for name in graph.outputs:
        assert graph.tensor(name).shape == canonical.tensor(name).shape
        np.testing.assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-10)
    if ops is not None:
        assert [node.op for node in canonical.nodes] == ops
    return canonical


@pytest.fixture
def image():
    builder = GraphBuilder()
    builder.input("x", (1, 3, 6, 6))
    return builder


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


def test_bias_gets_one_shape(image, rng):
    for bias in (0.5, np.array([0.5]), rng.standard_normal(4), rng.standard_normal((1, 4))):
        builder = GraphBuilder()
        builder.input("x", (1, 3, 6, 6))
        builder.conv("x", rng.standard_normal((4, 3, 1, 1)), bias)
        graph = check(builder.build(), rng, ["conv"])
        assert graph.constant(graph.nodes[0].inputs[2]).shape == (1, 4)


def test_automatic_padding_and_depthwise_become_explicit(image, rng):
    image.op(
        "conv", "x", rng.standard_normal((3, 1, 3, 3)), 0.0, border="constant", padding=[],
        stride=[2, 2], dilation=[], groups=0,
    )  # fmt: skip
    attrs = check(image.build(), rng, ["conv"]).nodes[0].attrs
    assert attrs["padding"] == [(0, 1), (0, 1)]
    assert (attrs["groups"], attrs["dilation"]) == (3, [1, 1])


def batch_norm(builder, x, channels, rng, **kwargs):
    mean, variance, offset, scale = rng.standard_normal((4, 1, channels))
    return builder.op(
        "batch_normalization", x, mean, variance**2, offset, scale, epsilon=1e-3, **kwargs
    )


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


def test_pad_with_minus_infinity_is_a_border_that_max_pool_ignores(image, rng):
    spatial = [(0, 0), (0, 0), (1, 2), (0, 1)]
    p = image.op("pad", "x", padding=spatial, border="constant", value=-np.inf)
    graph = check(image.build(image.pool("max_pool", p, 3)), rng, ["max_pool"])
    assert graph.nodes[0].attrs["border"] == "ignore"
    assert graph.nodes[0].attrs["padding"] == spatial


def test_pad_merges_into_conv_and_pools(image, rng):
    spatial = [(0, 0), (0, 0), (1, 2), (0, 1)]
    p = image.op("pad", "x", padding=spatial, border="constant", value=0.0)
    a = image.conv(p, rng.standard_normal((4, 3, 3, 3)), padding=1)
    b = image.pool("max_pool", p, 3)
    c = image.pool("avg_pool", p, 3)
    graph = check(image.build(a, b, c), rng, ["conv", "max_pool", "avg_pool"])
    assert graph.nodes[0].attrs["padding"] == [(2, 3), (1, 2)]
    assert graph.nodes[1].attrs["padding"] == spatial


def test_identities_vanish_and_outputs_keep_their_names(image, rng):
    y = image.op("copy", image.conv("x", rng.standard_normal((4, 3, 1, 1))))
    y = image.reshape(y, [1, 4, 6, 6])
    y = image.op("transpose", y, axes=[0, 1, 2, 3])
    image.op("copy", y, name="out")
    graph = check(image.build(), rng, ["conv"])
    assert graph.nodes[0].name == "out"


def test_an_identity_between_input_and_output_stays(image, rng):
    image.op("copy", "x", name="out")
    check(image.build(), rng, ["reshape"])


def test_a_twice_returned_tensor_stays_twice(image, rng):
    y = image.op("tanh", "x", name="y")
    z = image.op("copy", y, name="z")
    check(image.build(y, z), rng, ["tanh", "reshape"])


def test_constants_fold(image, rng):
    b = image.op("unsqueeze", rng.standard_normal(4), axes=[0], shape=(1, 4))
    w = image.op("mul", rng.standard_normal((4, 3, 1, 1)), 2.0)
    image.op(
        "conv", "x", w, b, border="constant", padding=[(0, 0)] * 2, stride=[1, 1],
        dilation=[1, 1], groups=1,
    )  # fmt: skip
    check(image.build(), rng, ["conv"])


def test_dead_nodes_vanish(image, rng):
    y = image.op("tanh", "x")
    image.op("sin", "x")
    check(image.build(y), rng, ["tanh"])


def test_matmul_becomes_linear_and_added_bias_folds(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 5))
    y = builder.op("matmul", "x", rng.standard_normal((5, 4)), transposeA=False, transposeB=False)
    y = builder.op("add", y, rng.standard_normal((1, 4)))
    y = builder.op("relu", y)
    builder.op("matmul", y, rng.standard_normal((2, 4)), transposeA=False, transposeB=True)
    check(builder.build(), rng, ["linear", "linear"])


def test_linear_of_rank_three(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 1, 5))
    builder.op("linear", "x", rng.standard_normal((1, 4, 5)), 0.0)
    check(builder.build(), rng, ["reshape", "linear", "reshape"])


def test_linear_behind_flatten_reads_the_image(image, rng):
    y = image.pool("max_pool", "x", 2)
    y = image.reshape(y, [1, 27])
    y = image.op("linear", y, rng.standard_normal((8, 27)), rng.standard_normal((1, 8)))
    y = image.op("relu", y)
    image.op("linear", y, rng.standard_normal((2, 8)), 0.0)
    graph = check(image.build(), rng, ["max_pool", "conv", "reshape", "linear"])
    assert graph.tensor(graph.nodes[1].inputs[1]).shape == (8, 3, 3, 3)
    assert graph.nodes[1].attrs["activation"] == "relu"


def test_linear_behind_a_global_pool_stays(image, rng):
    y = image.op("mean_reduce", "x", axes=[2, 3])
    y = image.op("squeeze", y, axes=[2, 3], shape=(1, 3))
    image.op("linear", y, rng.standard_normal((2, 3)), 0.0)
    check(image.build(), rng, ["avg_pool", "reshape", "linear"])


def test_functions_move_before_the_flatten_and_fuse(image, rng):
    y = image.conv("x", rng.standard_normal((4, 3, 3, 3)))
    y = image.op("relu", image.reshape(y, [1, 64]))
    image.op("linear", y, rng.standard_normal((2, 64)), 0.0)
    check(image.build(), rng, ["conv", "conv", "reshape"])


def test_reductions_and_boxes_become_pools(image, rng):
    a = image.op("max_reduce", "x", axes=[2, 3])
    b = image.op("sum_reduce", "x", axes=[3], normalize=True)
    c = image.pool("box", "x", 2)
    image._nodes[-1] = image._nodes[-1].with_attrs(normalize=True)
    check(image.build(a, b, c), rng, ["max_pool", "avg_pool", "avg_pool"])


def test_one_dimensional_networks_gain_an_axis(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3, 12))
    y = builder.conv("x", rng.standard_normal((4, 3, 3)), padding=1)
    y = batch_norm(builder, y, 4, rng)
    y = builder.op("relu", y)
    y = builder.pool("max_pool", y, 2)
    y = builder.conv(y, rng.standard_normal((4, 1, 3)), groups=4)
    y = builder.op("tanh", y)
    y = builder.op("mean_reduce", y, axes=[2])
    y = builder.op("squeeze", y, axes=[2], shape=(1, 4))
    builder.op("linear", y, rng.standard_normal((2, 4)), 0.0)
    check(
        builder.build(),
        rng,
        ["reshape", "conv", "max_pool", "conv", "tanh", "avg_pool", "reshape", "linear"],
    )


def test_bounds_become_attributes(image, rng):
    y = image.op("clamp", "x", 0.0, 6.0)
    y = image.op("min", 0.9, y)
    y = image.op("max", y, -0.5)
    y = image.op("prelu", y, 0.1)
    image.op("max", y, 0.0)
    graph = check(image.build(), rng, ["clamp", "clamp", "clamp", "leaky_relu", "relu"])
    assert all(len(node.inputs) == 1 for node in graph.nodes)


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_keep_their_results(seed, rng):
    builder = GraphBuilder()
    channels, extent = int(rng.integers(1, 4)), 12
    y = builder.input("x", (1, channels, extent, extent))
    for _ in range(int(rng.integers(2, 7))):
        match int(rng.integers(7)):
            case 0 | 1:
                outputs = int(rng.integers(1, 5))
                w = rng.standard_normal((outputs, channels, 3, 3))
                y, channels = builder.conv(y, w, rng.standard_normal(outputs), padding=1), outputs
            case 2:
                y = batch_norm(builder, y, channels, rng)
            case 3:
                y = builder.op(str(rng.choice(["relu", "tanh", "sigmoid"])), y)
            case 4 if extent % 2 == 0:
                y = builder.pool(str(rng.choice(["max_pool", "avg_pool"])), y, 2)
                extent //= 2
            case 5:
                y = builder.op("add", y, rng.standard_normal((1, channels)))
            case _:
                y = builder.op("copy", y)
    y = builder.reshape(y, [1, channels * extent**2])
    w = rng.standard_normal((3, channels * extent**2))
    y = builder.op("linear", y, w, rng.standard_normal((1, 3)))
    builder.op("softmax", y, axes=[1])
    check(builder.build(), rng)


@pytest.mark.parametrize("op", ["add", "sub"])
def test_relu_fuses_into_a_sum_of_branches(op, image, rng):
    y = image.conv("x", rng.standard_normal((3, 3, 3, 3)), padding=1)
    image.op("relu", image.op(op, "x", y), name="r")
    graph = check(image.build(), rng, ["conv", op])
    assert graph.nodes[1].name == "r"
    assert graph.nodes[1].attrs["activation"] == "relu"
    assert graph.nodes[1].location.line == 2


def test_relu_does_not_fuse_into_a_product(image, rng):
    image.op("relu", image.op("mul", "x", "x"))
    check(image.build(), rng, ["mul", "relu"])


def test_second_relu_stays_a_no_op_of_the_first(image, rng):
    y = image.op("relu", image.op("add", "x", "x"))
    check(image.build(image.op("relu", y)), rng, ["add", "relu"])


def test_one_dimensional_branches_gain_an_axis(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3, 8))
    y = builder.conv("x", rng.standard_normal((3, 3, 3)), padding=1)
    y = builder.op("relu", builder.op("add", y, "x"))
    builder.op("max", y, rng.standard_normal((1, 3, 1)))
    graph = check(builder.build(), rng)
    assert [node.op for node in graph.nodes if node.op != "reshape"] == ["conv", "add", "max"]
    assert graph.tensor(graph.nodes[-1].inputs[0]).shape == (1, 3, 8, 1)


def test_limits_of_channels_stay_constants(image, rng):
    image.op("min", "x", np.array([[0.1, 0.2, 0.3]]))
    check(image.build(), rng, ["min"])


def test_dilation_and_groups_stay(image, rng):
    y = image.conv("x", rng.standard_normal((3, 1, 2, 2)), dilation=2, groups=0)
    graph = check(image.build(y), rng, ["conv"])
    assert graph.nodes[0].attrs["groups"] == 3
    assert list(graph.nodes[0].attrs["dilation"]) == [2, 2]


def unsupported_average(b, rng):
    b.pool("avg_pool", "x", 2, padding=2, stride=1, border="ignore")


def unsupported_reshape(b, rng):
    y = b.op("transpose", b.reshape("x", [1, 3, 2, 3, 2, 3]), axes=[0, 3, 2, 5, 4, 1])
    b.op("tanh", b.reshape(y, [1, 3, 6, 6]))


def unsupported_filter(b, rng):
    b.input("w", (4, 3, 1, 1))
    b.conv("x", np.zeros((4, 3, 1, 1)))
    b._nodes[-1] = b._nodes[-1].__class__(
        "conv", ("x", "w", b._nodes[-1].inputs[2]), b._nodes[-1].outputs, b._nodes[-1].attrs
    )


def unsupported_batch_norm(b, rng):
    zeros = np.zeros((1, 3))
    b.op("batch_normalization", "x", zeros, zeros, zeros, zeros + 1, epsilon=0.0)


UNSUPPORTED = {
    unsupported_batch_norm: "batch_normalization 'batch_normalization1': this operator is not",
    unsupported_average: "avg_pool 'avg_pool1': some of its windows lie outside of the image",
    unsupported_reshape: (
        "reshape 'reshape3': from 'x' [1, 3, 6, 6] to [1, 3, 6, 6] is more than an exchange of "
        "three axes"
    ),
    unsupported_filter: "conv 'conv1': its filter is computed, not constant",
}


@pytest.mark.parametrize("make", UNSUPPORTED, ids=lambda make: make.__name__)
def test_what_no_hardware_exists_for_is_refused(make, image, rng):
    make(image, rng)
    with pytest.raises((UnsupportedError, ErrorGroup), match=re.escape(UNSUPPORTED[make])):
        simplify(image.build())


def test_every_problem_is_listed_with_its_location(image, rng):
    y = image.op("lrn", "x", shape=(1, 3, 6, 6))
    y = image.op("relu", y)
    image.op("fancy", y, shape=(1, 3, 6, 6))
    with pytest.raises(ErrorGroup) as info:
        simplify(image.build())
    assert [error.location.line for error in info.value.errors] == [1, 3]
    assert all(isinstance(error, UnsupportedError) for error in info.value.errors)


def test_variables_keep_distinct_labels(image, rng):
    w = image.constant("w", rng.standard_normal((2, 108)), "shared")
    a = image.op("linear", image.reshape("x", [1, 108]), w, 0.0)
    image.input("z", (1, 108))
    b = image.op("linear", "z", w, 0.0)
    graph = check(image.build(a, b), rng)
    labels = [t.label for t in graph.tensors.values() if t.label]
    assert len(labels) == 2
    assert len(set(labels)) == 2
