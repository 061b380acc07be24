"""Products with a constant matrix are linear layers."""

import pytest
from simplified import canonical_ops, check

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


def layers(graph, rng):
    """Simplify; the results must be the same; return the operators that move nothing."""
    return [op for op in canonical_ops(graph, rng) if op not in {"reshape", "transpose"}]


@pytest.mark.parametrize(
    ("shape", "ops"),
    [
        ((1, 5, 3), ["conv"]),
        ((1, 1, 5, 3), ["conv"]),
        ((1, 5, 1), ["linear"]),
        ((1, 1, 5, 1), ["linear"]),
    ],
)
def test_a_transposed_activation_on_the_left(shape, ops, rng):
    """As tract writes convolutions of one pixel, whose images have the channels first."""
    builder = GraphBuilder()
    builder.input("x", shape)
    matrix = rng.standard_normal((*[1] * (len(shape) - 2), 4, 5))
    builder.op("matmul", "x", matrix, transposeA=True, transposeB=True)
    assert layers(builder.build(), rng) == ops


@pytest.mark.parametrize("shape", [(1, 3, 5), (1, 1, 3, 5), (1, 1, 5)])
def test_a_transposed_activation_on_the_right(shape, rng):
    builder = GraphBuilder()
    builder.input("x", shape)
    matrix = rng.standard_normal((*[1] * (len(shape) - 2), 4, 5))
    builder.op("matmul", matrix, "x", transposeA=False, transposeB=True)
    assert layers(builder.build(), rng) == ["conv"]


def test_a_single_column(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 8))
    matrix = rng.standard_normal((3, 8))
    builder.op("matmul", matrix, "x", transposeA=False, transposeB=True)
    assert layers(builder.build(), rng) == ["linear"]
