"""Borders that continue the image become parts of it."""

import pytest
from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder

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
