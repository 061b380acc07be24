"""Attention masks in hardware: the integers of the model, and the cycles that were predicted."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

BLOCKED = np.triu(np.ones((1, 4, 4), bool), 1)
BLOCKED[:, 3] = True  # masked whole


def added(builder, x, value):
    return builder.op("add", x, np.where(BLOCKED, value, 0.0))


def selected(builder, x, value):
    """Select where an input says so."""
    hidden = builder.op("lt", builder.input("m", (1, 4, 4)), 0.5)
    return builder.op("select", hidden, value, x)


def multiplied(builder, x, value):
    return builder.op("add", x, builder.op("mul", builder.input("m", (1, 4, 4)), value))


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("mask", "value"),
    [(added, -1e9), (added, -np.inf), (selected, -1e9), (selected, -np.inf), (multiplied, -1e9)],
)
def test_codes_and_cycles(mask, value, simulate, rng):
    builder = GraphBuilder()
    scores = mask(builder, builder.input("x", (1, 4, 4)), value)
    graph = simplify(builder.build(builder.op("softmax", scores, axes=[2])))
    samples = {"x": rng.standard_normal((20, 4, 4)), "m": rng.integers(0, 2, (20, 4, 4))}
    fixed = quantize(graph, {name: samples[name] for name in graph.inputs})
    simulate(schedule(fixed, find_board("ulx3s_85f")), fixed).check(3)
