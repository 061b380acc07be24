"""What no result depends on is dropped."""

from simplified import check


def test_dead_nodes_vanish(image, rng):
    y = image.op("tanh", "x")
    image.op("sin", "x")
    check(image.build(y), rng, ["tanh"])
