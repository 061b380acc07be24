"""A network that has hardly any foldings to choose from."""

import numpy as np

from nnef_hw.testing import GraphBuilder


def two_layers(rng):
    """Two layers of sizes with few divisors."""
    g = GraphBuilder("perceptron")
    x = g.input("x", [1, 94])
    for inputs, outputs in ((94, 206), (206, 20)):
        weights = rng.normal(size=[outputs, inputs])
        x = g.op("linear", x, weights, np.zeros((1, outputs)), name=f"linear{outputs}")
    return g.build(x)
