"""Batches: every layer runs for several frames, so that its weights are read once."""

import json

import numpy as np
import pytest
from engine_graphs import EngineNetwork, planned

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.errors import NnefHwError
from nnef_hw.testing import GraphBuilder

ICEBREAKER = find_board("icebreaker")


def layers(rng, *sizes, end=None):
    """Return a network of linear layers."""
    builder = GraphBuilder("dense")
    x = builder.input("x", (1, sizes[0]))
    for n, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        x = builder.op(
            "linear", x, rng.normal(size=(outputs, inputs)), rng.normal(size=(1, outputs))
        )
        if n < len(sizes) - 2:
            x = builder.op("relu", x)
    if end:
        builder.op(end, x, axes=[1])
    return builder.build()


@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize(("batch", "ring_words"), [(2, 0), (3, 32), (5, 64)])
def test_linear_layers(fix, rng, run_engine, batch, ring_words, stall):
    """Weights come once for all frames of a batch."""
    graph = fix(layers(rng, 21, 18, 7, 30))
    alone = planned(graph, ring_words=ring_words)
    plan = planned(graph, ring_words=ring_words, batch=batch)
    run_engine(plan, graph, frames=3, stall=stall)
    if ring_words:
        assert plan.design.frame_words < 1.2 * alone.design.frame_words
        assert plan.interval < alone.interval


@pytest.mark.parametrize("end", ["softmax", "argmax_reduce"])
def test_tails(fix, rng, run_engine, end):
    """They compute frame by frame."""
    graph = fix(layers(rng, 12, 9, 6, end=end))
    run_engine(planned(graph, ring_words=32, batch=3), graph)


@pytest.mark.parametrize(("ring_words", "stall"), [(0, 0.0), (32, 0.3)])
def test_several_inputs_and_outputs(fix, rng, run_engine, ring_words, stall):
    """They take turns, frame by frame."""
    builder = GraphBuilder()
    one, other = builder.input("x", (1, 3, 2, 2)), builder.input("y", (1, 5, 2, 2))
    first = builder.conv(one, rng.normal(size=(6, 3, 1, 1)))
    second = builder.conv(other, rng.normal(size=(6, 5, 1, 1)))
    graph = fix(builder.build(builder.op("add", first, second), builder.op("relu", second)))
    run_engine(planned(graph, ring_words=ring_words, batch=3), graph, stall=stall)


MORE = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 60)]


@pytest.mark.parametrize("seed", [*range(6), *MORE])
def test_random_networks(fix, run_engine, seed):
    """Windows, sums, codes that change their places; in block RAM and in single-port RAM."""
    rng = np.random.default_rng([seed, 16])
    network = EngineNetwork(rng, products=("mul", "max"))
    for _ in range(int(rng.integers(2, 5))):
        network.grow()
    graph = fix(network.finish())
    board = [find_board("ulx3s_85f"), ICEBREAKER][seed % 2]
    options = {"batch": int(rng.integers(2, 5)), "ring_words": [0, 64][seed // 2 % 2]}
    try:
        plan = planned(graph, board=board, **options)
    except NnefHwError as error:
        pytest.skip(str(error))
    run_engine(plan, graph)


def test_a_plan_is_read_again(fix, rng):
    graph = fix(layers(rng, 21, 18, 7))
    plan = planned(graph, batch=4)
    value = json.loads(plan.dumps())
    assert value["batch"] == 4
    assert SharedArray().read_plan(value, graph).dumps() == plan.dumps()
