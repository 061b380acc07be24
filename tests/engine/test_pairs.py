"""Products and extrema of two tensors on the engine."""

import numpy as np
import pytest
from engine_graphs import EngineNetwork, planned
from sweeps import covering

from nnef_hw.boards import find_board
from nnef_hw.testing import GraphBuilder


def gate(rng, functions=("relu", "sigmoid"), rounding=None):
    """A squeeze-and-excitation block: channels are scaled by what their means tell."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", (1, 3, 4, 3)), rng.normal(size=(6, 3, 1, 1)))
    x = builder.op(functions[0], x)
    mean = builder.op("mean_reduce", x, axes=[2, 3])
    squeezed = builder.op("relu", builder.conv(mean, rng.normal(size=(5, 6, 1, 1))))
    scale = builder.op(functions[1], builder.conv(squeezed, rng.normal(size=(6, 5, 1, 1))))
    builder.op("mul", x, scale, name="gated")
    return builder.build().replaced(rounding=rounding)


@pytest.mark.parametrize(
    ("names", "rounding"), covering(["relu sigmoid", "tanh tanh"], [None, "tflite"])
)
def test_gates(fix, run_engine, rng, rounding, names):
    """Of codes whose zero point is the lowest one, or in the middle."""
    functions = tuple(names.split())
    graph = fix(gate(rng, functions, rounding))
    plan = planned(graph)
    assert plan.design.layers[-1].repeats == (3 if "relu" in functions else 2)
    run_engine(plan, graph)


@pytest.mark.parametrize(
    ("op", "rows", "lanes", "ring_words"),
    covering(["max", "min", "mul"], [(4, 4, 32), (8, 8, 0)]),
)
def test_of_two_tensors(fix, run_engine, rng, op, rows, lanes, ring_words):
    """Of all limits of codes; something is computed before, and added behind."""
    builder = GraphBuilder()
    x, y = builder.input("x", (1, 5, 3, 4)), builder.input("y", (1, 5, 3, 4))
    first = builder.op(op, x, y)
    second = builder.conv(first, rng.normal(size=(5, 5, 3, 3)), padding=1)
    builder.op("add", builder.op(op, second, y), first)
    graph = fix(builder.build())
    run_engine(planned(graph, rows, lanes, ring_words), graph)


def test_a_square(fix, run_engine, rng):
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", (1, 4, 2, 3)), rng.normal(size=(4, 4, 1, 1)))
    builder.op("tanh", builder.op("mul", x, x))
    graph = fix(builder.build())
    plan = planned(graph)
    assert plan.design.layers[-1].table is not None
    run_engine(plan, graph)


def test_in_single_port_ram(fix, run_engine, rng):
    """Both operands are in the bank that is read."""
    graph = fix(gate(rng))
    plan = planned(graph, board=find_board("icebreaker"))
    assert plan.design.engine.codes.single_port
    run_engine(plan, graph)


@pytest.mark.parametrize(
    "seed", [71, *(pytest.param(n, marks=pytest.mark.nightly) for n in (72, *range(80, 120)))]
)
def test_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng(seed)
    network = EngineNetwork(rng, ("mul", "max", "min"))
    for _ in range(3):
        network.grow()
        network._sum()
    graph = fix(network.finish(), symmetric=bool(rng.integers(2)), calibration="minmax")
    plan = planned(graph, *[(4, 4), (8, 4), (8, 8)][int(rng.integers(3))])
    run_engine(plan, graph, frames=1)
