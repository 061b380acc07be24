"""Limits become attributes."""

import numpy as np
import pytest
from simplified import check


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        ("clamp", ("x", 0.0, 6.0), "clamp"),
        ("min", (0.9, "x"), "clamp"),
        ("max", ("x", -0.5), "clamp"),
        ("prelu", ("x", 0.1), "leaky_relu"),
        ("prelu", ("x", np.full((1, 3), 0.1)), "leaky_relu"),
        ("max", ("x", 0.0), "relu"),
    ],
)
def test_bounds_become_attributes(op, operands, result, image, rng):
    image.op(op, *operands)
    graph = check(image.build(), rng, [result])
    assert graph.nodes[0].inputs == ("x",)


def test_limits_of_channels_stay_constants(image, rng):
    image.op("min", "x", np.array([[0.1, 0.2, 0.3]]))
    check(image.build(), rng, ["min"])
