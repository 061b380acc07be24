"""Reductions become pools and convolutions."""

import pytest
from simplified import canonical_ops, check

from nnef_hw.testing import GraphBuilder


def test_reductions_and_boxes_become_pools(image, rng):
    a = image.op("max_reduce", "x", axes=[2, 3])
    b = image.op("sum_reduce", "x", axes=[3], normalize=True)
    c = image.pool("box", "x", 2)
    image._nodes[-1] = image._nodes[-1].with_attrs(normalize=True)
    check(image.build(a, b, c), rng, ["max_pool", "avg_pool", "avg_pool"])


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
