"""A transposed convolution becomes one convolution and depth to space."""

import itertools

import pytest
from simplified import canonical_ops

from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder


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
    with pytest.raises(Exception, match="use a constant filter, border = "):
        simplify(graph.replaced(nodes=(node,)))
