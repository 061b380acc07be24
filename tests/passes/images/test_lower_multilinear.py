"""Interpolation becomes convolutions."""

import pytest
from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder


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
