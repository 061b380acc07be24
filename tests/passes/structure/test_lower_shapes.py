"""Transposes that follow each other."""

from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder


def test_transposes_that_follow_each_other_are_one_or_none(rng):
    g = GraphBuilder()
    x = g.op("transpose", g.op("tanh", g.input("x", [1, 2, 3, 4])), axes=[0, 2, 3, 1])
    moved = g.op("transpose", x, axes=[0, 2, 1, 3])
    back = g.op("transpose", x, axes=[0, 3, 1, 2])
    ops = canonical_ops(g.build(g.op("exp", moved), g.op("exp", back)), rng)
    assert ops == ["tanh", "exp", "transpose", "exp"]
