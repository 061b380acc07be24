"""A linear layer behind a flatten reads the image."""

from simplified import check


def test_linear_behind_flatten_reads_the_image(image, rng):
    y = image.pool("max_pool", "x", 2)
    y = image.reshape(y, [1, 27])
    y = image.op("linear", y, rng.standard_normal((8, 27)), rng.standard_normal((1, 8)))
    y = image.op("relu", y)
    image.op("linear", y, rng.standard_normal((2, 8)), 0.0)
    graph = check(image.build(), rng, ["max_pool", "conv", "reshape", "linear"])
    assert graph.tensor(graph.nodes[1].inputs[1]).shape == (8, 3, 3, 3)
    assert graph.nodes[1].attrs["activation"] == "relu"


def test_linear_behind_a_global_pool_stays(image, rng):
    y = image.op("mean_reduce", "x", axes=[2, 3])
    y = image.op("squeeze", y, axes=[2, 3], shape=(1, 3))
    image.op("linear", y, rng.standard_normal((2, 3)), 0.0)
    check(image.build(), rng, ["avg_pool", "reshape", "linear"])
