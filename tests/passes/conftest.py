"""Graphs that tests of passes begin with."""

import pytest

from nnef_hw.testing import GraphBuilder


@pytest.fixture
def image():
    builder = GraphBuilder()
    builder.input("x", (1, 3, 6, 6))
    return builder


@pytest.fixture
def layer(rng):
    """Build x -> linear l, ready for more."""
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.constant("w", rng.normal(size=(3, 4)), label="w")
    builder.op("linear", "x", "w", rng.normal(size=(1, 3)), name="l")
    return builder
