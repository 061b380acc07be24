"""Limits become attributes."""

import numpy as np
from simplified import check


def test_bounds_become_attributes(image, rng):
    y = image.op("clamp", "x", 0.0, 6.0)
    y = image.op("min", 0.9, y)
    y = image.op("max", y, -0.5)
    y = image.op("prelu", y, 0.1)
    image.op("max", y, 0.0)
    graph = check(image.build(), rng, ["clamp", "clamp", "clamp", "leaky_relu", "relu"])
    assert all(len(node.inputs) == 1 for node in graph.nodes)


def test_limits_of_channels_stay_constants(image, rng):
    image.op("min", "x", np.array([[0.1, 0.2, 0.3]]))
    check(image.build(), rng, ["min"])
