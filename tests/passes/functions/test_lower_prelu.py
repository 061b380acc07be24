"""Slopes become products and extrema."""

import numpy as np
import pytest
from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder


@pytest.mark.parametrize(
    ("slopes", "ops"),
    [
        ([0.2, -0.5, 1.0], ["conv", "max"]),
        ([1.5, 2.0, 1.0], ["conv", "min"]),
        ([0.2, 3.0, 1.0], ["conv", "max", "conv", "min"]),
        ([0.3, 0.3, 0.3], ["leaky_relu"]),
    ],
)
def test_slopes_of_a_prelu(slopes, ops, rng):
    g = GraphBuilder()
    g.op("prelu", g.input("x", [1, 3, 2, 4]), np.array([slopes]))
    assert canonical_ops(g.build(), rng) == ops
