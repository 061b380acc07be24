"""Engines with a program that a system may write, and programs of other weights for them."""

from dataclasses import replace

from nnef_hw.engine.retrained import fit_shifts, kept, retrained
from nnef_hw.testing import GraphBuilder


def every_memory(rng, scale=1.0):
    """Return a network with rows, constants, weights, and tables of three sorts."""
    g = GraphBuilder("net")
    x = g.input("x", (1, 4, 3, 3))
    x = g.conv(x, scale * rng.normal(size=(6, 4, 3, 3)), rng.normal(size=(1, 6)), padding=1)
    x = g.op("softmax", g.op("tanh", x), axes=[1])
    y = g.op("sigmoid", g.conv(x, rng.normal(size=(6, 6, 1, 1))))
    x = g.conv(g.op("add", x, y), rng.normal(size=(5, 6, 3, 3)))
    g.op("softmax", g.reshape(x, [1, 5]), axes=[1])
    return g.build()


def with_other_weights(plan, fix, rng):
    """Return the plan of a network of other weights on the same engine, and its fixed graph."""
    known = kept(plan.design)
    graph = fix(
        every_memory(rng, scale=3.0),
        largest_layer_factor=known.layer_factor, largest_sum_factor=known.sum_factor,
    )  # fmt: skip
    graph = fit_shifts(graph, plan.design)
    return replace(plan, design=retrained(graph, plan.design)), graph
