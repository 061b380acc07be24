"""Products with a constant matrix are linear layers."""

from simplified import check

from nnef_hw.testing import GraphBuilder


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
