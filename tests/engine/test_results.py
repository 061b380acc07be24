"""Several results of a pass leave per cycle: codes of a word, written at once."""

from dataclasses import replace

import numpy as np
import pytest
from engine_graphs import first_that_fits, grown, planned
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.engine.network.lowering import lower
from nnef_hw.hardware.devices import UP5K
from nnef_hw.parts.engine.pairs import Gather
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

SIZES = [(4, 4, 2), (4, 4, 4), (8, 4, 2), (8, 4, 4), (8, 8, 4), (8, 8, 8), (16, 8, 8)]


@pytest.fixture
def bottleneck(rng, fix):
    """Return a fixed graph: expansion, depthwise, projection, sum with a function behind."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 3, 7, 6))

    def conv(x, outputs, channels, size, **options):
        weights = rng.normal(size=(outputs, channels, size, size))
        bias = rng.normal(size=(1, outputs))
        return builder.conv(x, weights, bias, padding=size // 2, **options)

    x = builder.op("relu", conv(x, 8, 3, 3, stride=2))
    y = builder.op("relu", conv(x, 24, 8, 1))
    y = builder.op("relu", conv(y, 24, 1, 3, groups=24))
    builder.op("tanh", builder.op("add", x, conv(y, 8, 24, 1)))
    return fix(builder.build())


@pytest.mark.parametrize(
    ("rows", "lanes", "results", "ring_words"),
    few(
        [*((*size, 0) for size in SIZES), *((*size, 64) for size in SIZES[1:6:2])],
        # Fewer results than lanes, and as many; more rows than lanes, and as many; both memories.
        [(4, 4, 2, 0), (8, 4, 4, 64), (8, 8, 4, 0)],
    ),
)
def test_a_bottleneck(bottleneck, run_engine, rows, lanes, results, ring_words):
    one, plan = (planned(bottleneck, rows, lanes, ring_words, results=n) for n in (1, results))
    assert plan.interval < one.interval
    # What is added is in memory a second time, and nothing else.
    engine = plan.design.engine
    assert engine.find(TensorSums).words == 12 * 8 // lanes < engine.codes.words
    run_engine(plan, bottleneck)


def test_results_are_waited_for(rng, fix):
    """A pass takes the greater of its words and of the groups of results of the one before."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 8, 16, 16))
    builder.conv(x, rng.normal(size=(16, 8, 1, 1)))
    graph = fix(builder.build())
    found = []
    for results in (1, 2, 4, 8):
        plan = planned(graph, 16, 8, results=results)
        [[part]] = plan.design.program.parts
        found.append((part.cycles, len(plan.design.constants)))
    # The first pass has none before it.
    assert found == [(1 + 255 * n, n) for n in (16, 8, 4, 2)]


@pytest.mark.parametrize(
    ("kind", "lanes"), covering(["concat", "rows", "channels", "pad", "inside"], [4, 8])
)
def test_words_move_as_they_are(rng, fix, run_engine, kind, lanes):
    """Where all of a layer's do; otherwise a code at a time, as channels that begin in a word."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 3, 4, 5))
    x, y = (builder.conv(x, rng.normal(size=(n, 3, 1, 1))) for n in (16, 12))
    if kind == "concat":
        builder.op("concat", x, y, axis=1, shape=[1, 28, 4, 5])
    elif kind == "pad":
        padding = [(0, 0), (0, 0), (1, 0), (2, 1)]
        builder.op("pad", y, padding=padding, border="constant", value=0.5)
    else:
        axis, begin, end = {"rows": (2, 1, 4), "channels": (1, 8, 16), "inside": (1, 5, 16)}[kind]
        builder.op("slice", x, axes=[axis], begin=[begin], end=[end], stride=[1])
    graph = fix(builder.build(), symmetric=False)
    plans = [planned(graph, 8, lanes, results=results) for results in (1, lanes)]
    cycles = [plan.spans[-2].cycles for plan in plans]
    gathers = [plan.design.layers[-1].gathers(plan.design.shape) for plan in plans]
    assert gathers == [True, kind == "inside"]
    assert [plan.design.engine.has(Gather) for plan in plans] == gathers
    assert kind == "inside" or cycles[1] < cycles[0] / 2
    run_engine(plans[1], graph)


MORE = [pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, *range(4, 80))]


@pytest.mark.parametrize("seed", [0, 3, *MORE])
def test_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng([seed, 20])
    rows, lanes, results = SIZES[seed % len(SIZES)]

    def attempt():
        graph = fix(grown(rng, (2, 6), ("mul", "max", "min")), calibration="minmax")
        board = find_board("ulx3s_85f")
        if not lower(graph, board.device).fits(lanes):
            return None
        ring_words = int(rng.choice([0, 64, 128]))
        plan = planned(graph, rows, lanes, ring_words, board, results)
        assert plan.design.program.parts
        return plan, graph

    plan, graph = first_that_fits(attempt)
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, stall=0.3)


def test_fields_are_in_an_order(bottleneck):
    """Those that all instructions share, too: a design is the same whenever it is made."""
    engine = planned(bottleneck, 8, 8, 64, results=4).design.engine
    instructions = planned(bottleneck, 8, 8, 64, results=4).design.instructions
    names = list(dict.fromkeys(name for x in instructions for name in x.values))
    assert len(engine.same_fields) > 3
    assert list(engine.same_fields) == [name for name in names if name in engine.same_fields]


def test_sizes_that_no_engine_has(bottleneck):
    engine = planned(bottleneck, 8, 4, results=2).design.engine
    with pytest.raises(ValueError, match="results must be a power of two, at most the lanes"):
        replace(engine.array, results=8)
    with pytest.raises(ValueError, match="leave one by one to single-port RAM"):
        replace(engine, codes=replace(engine.codes, single_port=UP5K.single_port))
