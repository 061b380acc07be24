"""Operators that move elements, and transposed convolutions, in their canonical forms."""

import itertools

import numpy as np
import pytest

from nnef_hw.passes import simplify
from nnef_hw.reference import run_float
from nnef_hw.testing import GraphBuilder


def canonical_ops(graph, rng):
    """Simplify; check that the results are the same; return the operators."""
    canonical = simplify(graph)
    (name,) = graph.inputs
    x = {name: rng.normal(size=(2, *graph.tensor(name).shape[1:]))}
    wanted, given = (run_float(g, x)[g.outputs[0]] for g in (graph, canonical))
    np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)
    return [node.op for node in canonical.nodes]


def deconv(rng, kernel, stride, dilation, padding, *, groups=1, beyond=0, rank=2):
    """A transposed convolution whose result has ``beyond`` more rows than the padding leaves."""
    g = GraphBuilder()
    extents = (3, 5)[:rank]
    x = g.input("x", [1, 2 * groups, *extents])
    result = [
        (n - 1) * stride + (kernel - 1) * dilation + 1 - sum(padding) + beyond for n in extents
    ]
    if min(result) < 1:
        return None
    g.op(
        "deconv", x, rng.normal(size=[2 * groups, 3, *[kernel] * rank]),
        rng.normal(size=[1, 3 * groups]), border="constant", padding=[padding] * rank,
        stride=[stride] * rank, dilation=[dilation] * rank, output_shape=[], groups=groups,
        shape=[1, 3 * groups, *result],
    )  # fmt: skip
    return g


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_a_deconv_becomes_one_convolution(stride, rng):
    windows = itertools.product((1, 2, 3, 5), (1, 2), ((0, 0), (1, 0), (1, 2)), (0, 1))
    for kernel, dilation, padding, beyond in windows:
        g = deconv(rng, kernel, stride, dilation, padding, beyond=beyond)
        if g is not None:
            ops = canonical_ops(g.build(), rng)
            assert ops[0] == "conv"
            assert set(ops[1:]) <= {"depth_to_space", "slice"}
            assert stride > 1 or "depth_to_space" not in ops


def test_a_deconv_of_a_signal_is_lowered_too(rng):
    ops = canonical_ops(deconv(rng, 4, 2, 1, (1, 1), rank=1).build(), rng)
    assert ops == ["reshape", "conv", "depth_to_space", "slice", "reshape"]


def test_groups_of_a_deconv_stay_apart(rng):
    ops = canonical_ops(deconv(rng, 2, 2, 1, (0, 0), groups=2).build(), rng)
    assert ops == ["conv"] * 4 + ["concat", "depth_to_space"]


@pytest.mark.parametrize("padding", [(0, 0), (1, 1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_what_follows_a_deconv_is_folded_into_it(groups, padding, rng):
    g = deconv(rng, 4, 2, 1, padding, groups=groups)
    y = g.op("mul", "deconv1", rng.normal(size=[1, 3 * groups]))
    ops = canonical_ops(g.build(g.op("relu", y)), rng)
    assert "mul" not in ops
    assert ("relu" in ops) == (groups > 1)


def test_a_deconv_with_another_border_is_refused(rng):
    g = deconv(rng, 4, 2, 1, (1, 1))
    graph = g.build()
    node = graph.nodes[0].with_attrs(border="replicate")
    with pytest.raises(Exception, match="use a constant filter that is not quantized, and border"):
        simplify(graph.replaced(nodes=(node,)))


def shuffled(rng, axes, shape, function=None):
    """Depth to space as exporters write it, behind a convolution."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 4]), rng.normal(size=[12, 2, 1, 1]), rng.normal(size=[1, 12]))
    x = g.op(function, x) if function else x
    x = g.op("transpose", g.reshape(x, shape), axes=axes)
    return g.build(g.op("tanh", g.reshape(x, [1, 3, 6, 8])))


PHASES_FIRST = ([0, 3, 4, 1, 5, 2], [1, 2, 2, 3, 3, 4])
CHANNELS_FIRST = ([0, 1, 4, 2, 5, 3], [1, 3, 2, 2, 3, 4])


@pytest.mark.parametrize("form", [PHASES_FIRST, CHANNELS_FIRST], ids=["phases", "channels"])
def test_depth_to_space_is_found_in_transposes(form, rng):
    ops = canonical_ops(shuffled(rng, *form), rng)
    assert sorted(ops) == ["conv", "depth_to_space", "tanh"]


def test_a_convolution_that_others_read_keeps_its_channels(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 4]), rng.normal(size=[12, 2, 1, 1]))
    y = g.op("transpose", g.reshape(x, CHANNELS_FIRST[1]), axes=CHANNELS_FIRST[0])
    with pytest.raises(Exception, match="more than an exchange of three axes"):
        simplify(g.build(x, g.reshape(y, [1, 3, 6, 8])))


def test_transposes_that_follow_each_other_are_one_or_none(rng):
    g = GraphBuilder()
    x = g.op("transpose", g.op("tanh", g.input("x", [1, 2, 3, 4])), axes=[0, 2, 3, 1])
    there = g.op("transpose", x, axes=[0, 2, 1, 3])
    back = g.op("transpose", x, axes=[0, 3, 1, 2])
    ops = canonical_ops(g.build(g.op("exp", there), g.op("exp", back)), rng)
    assert ops == ["tanh", "exp", "transpose", "exp"]


def test_a_split_becomes_slices(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 5, 3, 4])
    name = g.op("slice", x, axes=[1], begin=[0], end=[2], stride=[1])
    graph = g.build(name)
    other = graph.tensors[name]
    parts = graph.nodes[0].with_attrs(axis=1, ratios=[2, 3])
    rest = type(other)("rest", (1, 3, 3, 4))
    node = type(parts)("split", ("x",), (name, "rest"), {"axis": 1, "ratios": [2, 3]})
    both = type(parts)("concat", ("rest", name), ("y",), {"axis": 1})
    tensors = {**graph.tensors, "rest": rest, "y": type(other)("y", (1, 5, 3, 4))}
    graph = graph.replaced(nodes=(node, both), tensors=tensors, outputs=("y",))
    assert canonical_ops(graph, rng) == ["slice", "slice", "concat"]


def test_strides_of_a_slice_become_a_pool_of_one_pixel(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 7, 6])
    g.op("slice", x, axes=[1, 3], begin=[1, 0], end=[2, 6], stride=[1, 4])
    assert canonical_ops(g.build(), rng) == ["slice", "max_pool"]


def test_a_slice_of_everything_is_nothing(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 4, 4]))
    x = g.op("slice", x, axes=[1, 2], begin=[0, 0], end=[2, 4], stride=[1, 1])
    assert canonical_ops(g.build(g.op("nearest_upsample", x, factor=[1, 1])), rng) == ["tanh"]


BORDERS = ("replicate", "reflect", "reflect-even")


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("op", ["avg_pool", "max_pool", "box"])
def test_borders_of_pools_become_parts_of_the_image(op, border, rng):
    g = GraphBuilder()
    g.pool(op, g.input("x", [1, 2, 5, 4]), 3, stride=2, padding=1, border=border)
    assert set(canonical_ops(g.build(), rng)) == {"slice", "concat", op}


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("padding", [[(1, 1), (2, 0)], [(0, 3), (0, 0)]])
def test_borders_of_convolutions_and_pads(padding, border, rng):
    g = GraphBuilder()
    x = g.op("pad", g.input("x", [1, 2, 4, 5]), padding=[(0, 0), (0, 0), *padding], border=border)
    g.conv(x, rng.normal(size=[3, 2, 2, 2]), padding=padding, border=border)
    assert set(canonical_ops(g.build(), rng)) == {"slice", "concat", "conv"}


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect-even"])
@pytest.mark.parametrize("method", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("factor", [[2, 2], [3, 2], [4, 1]])
def test_interpolation_becomes_convolution(factor, method, border, rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 3, 4])
    g.op("multilinear_upsample", x, factor=factor, method=method, border=border)
    ops = canonical_ops(g.build(), rng)
    assert set(ops) - {"slice", "concat"} == {"conv", "depth_to_space"}


@pytest.mark.parametrize(
    ("shape", "factor", "ops"),
    [
        ([1, 2, 3, 4], [2, 2], ["transpose", "conv", "transpose", "conv", "transpose"]),
        ([1, 2, 3, 4], [1, 3], ["transpose", "conv", "transpose"]),
        ([1, 2, 5], [2], ["transpose", "conv", "transpose"]),
        ([1, 2, 1, 3], [3, 2], ["conv", "transpose", "conv", "transpose"]),
    ],
)
def test_aligned_interpolation_is_a_convolution_along_each_axis(shape, factor, ops, rng):
    g = GraphBuilder()
    g.op("multilinear_upsample", g.input("x", shape), factor=factor, method="aligned",
         border="constant")  # fmt: skip
    found = canonical_ops(g.build(), rng)
    assert [op for op in found if op != "reshape"] == ops


@pytest.mark.parametrize(
    ("slopes", "ops"),
    [
        ([0.2, -0.5, 1.0], ["conv", "max"]),
        ([1.5, 2.0, 1.0], ["conv", "min"]),
        ([0.2, 3.0, 1.0], ["conv", "max", "conv", "min"]),
        ([0.3, 0.3, 0.3], ["conv", "max"]),
    ],
)
def test_slopes_of_a_prelu(slopes, ops, rng):
    g = GraphBuilder()
    g.op("prelu", g.input("x", [1, 3, 2, 4]), np.array([slopes]))
    assert canonical_ops(g.build(), rng) == ops


@pytest.mark.parametrize(
    ("op", "axes", "ops"),
    [
        ("sum_reduce", [2, 3], ["box"]),
        ("sum_reduce", [3], ["box"]),
        ("min_reduce", [2, 3], ["neg", "max_pool", "neg"]),
        ("mean_reduce", [1], ["conv"]),
        ("sum_reduce", [1], ["conv"]),
        ("mean_reduce", [1, 2, 3], ["avg_pool", "conv"]),
        ("sum_reduce", [1, 3], ["box", "conv"]),
    ],
)
def test_reductions(op, axes, ops, rng):
    g = GraphBuilder()
    g.op(op, g.input("x", [1, 3, 2, 4]), axes=axes)
    assert canonical_ops(g.build(), rng) == ops


def resized(size, coordinates, interpolation, rounding="round_prefer_floor"):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 4, 6])
    scale = [after / before for before, after in zip((1, 2, 4, 6), size, strict=True)]
    g.op(
        "resize", x, size=size, scale=scale, coordinates=coordinates, interpolation=interpolation,
        rounding=rounding, cubic_coefficient=-0.75, exclude_outside=False, antialias=False,
        shape=size,
    )  # fmt: skip
    return g.build()


@pytest.mark.parametrize(
    ("how", "op"),
    [
        (("asymmetric", "nearest", "floor"), "nearest_upsample"),
        (("half_pixel", "nearest"), "nearest_upsample"),
        (("half_pixel", "linear"), "depth_to_space"),
        (("asymmetric", "linear"), "depth_to_space"),
        (("align_corners", "linear"), "transpose"),
    ],
)
def test_resizing_by_whole_factors(how, op, rng):
    assert op in canonical_ops(resized([1, 2, 8, 18], *how), rng)


def test_resizing_to_less(rng):
    ops = canonical_ops(resized([1, 2, 2, 2], "asymmetric", "nearest", "floor"), rng)
    assert ops == ["max_pool"]


@pytest.mark.parametrize(
    ("size", "how"),
    [
        ([1, 2, 8, 18], ("half_pixel", "cubic")),
        ([1, 2, 6, 12], ("asymmetric", "nearest")),
    ],
)
def test_other_resizing_is_refused(size, how):
    with pytest.raises(Exception, match="resize 'resize1': this operator is not supported"):
        simplify(resized(size, *how))
