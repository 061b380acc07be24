"""One-dimensional networks gain an axis."""

from simplified import batch_norm, check

from nnef_hw.testing import GraphBuilder


def test_one_dimensional_networks_gain_an_axis(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3, 12))
    y = builder.conv("x", rng.standard_normal((4, 3, 3)), padding=1)
    y = batch_norm(builder, y, 4, rng)
    y = builder.op("relu", y)
    y = builder.pool("max_pool", y, 2)
    y = builder.conv(y, rng.standard_normal((4, 1, 3)), groups=4)
    y = builder.op("tanh", y)
    y = builder.op("mean_reduce", y, axes=[2])
    y = builder.op("squeeze", y, axes=[2], shape=(1, 4))
    builder.op("linear", y, rng.standard_normal((2, 4)), 0.0)
    check(
        builder.build(),
        rng,
        ["reshape", "conv", "max_pool", "conv", "tanh", "avg_pool", "reshape", "linear"],
    )


def test_one_dimensional_branches_gain_an_axis(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3, 8))
    y = builder.conv("x", rng.standard_normal((3, 3, 3)), padding=1)
    y = builder.op("relu", builder.op("add", y, "x"))
    builder.op("max", y, rng.standard_normal((1, 3, 1)))
    graph = check(builder.build(), rng)
    assert [node.op for node in graph.nodes if node.op != "reshape"] == ["conv", "add", "max"]
    assert graph.tensor(graph.nodes[-1].inputs[0]).shape == (1, 3, 8, 1)
