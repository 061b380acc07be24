"""Depth to space is found in the transposes that exporters write."""

import pytest
from simplified import canonical_ops

from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder


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
    canonical = simplify(g.build(x, g.reshape(y, [1, 3, 6, 8])))
    assert "depth_to_space" not in {node.op for node in canonical.nodes}
