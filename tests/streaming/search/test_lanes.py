"""Networks whose streams carry several codes per beat, where one per cycle is too slow."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from streamable_graphs import random_networks
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.errors import ErrorGroup, TargetError, UnsupportedError
from nnef_hw.streaming.beats.activity import make_timeline
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.report import report_plan
from nnef_hw.streaming.search.ceiling import find_ceilings
from nnef_hw.streaming.search.headroom import find_headroom
from nnef_hw.streaming.search.lanes import wider
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

BOARD = find_board("ulx3s_85f")
CLOCK = BOARD.clock_mhz * 1e6
SHARDS = 1
PER_SHARD = 3
NIGHTLY_SHARDS = 6
PER_NIGHTLY_SHARD = 20
FRAMES = 3
LONG = 48


def separable(rng):
    """What DS-CNN has: depthwise and pointwise layers, an average of the image, classes."""
    g = GraphBuilder("separable")
    x = g.conv(g.input("x", [1, 1, 9, 6]), rng.normal(size=[16, 1, 3, 3]), name="stem")
    x = g.op("relu", x, name="relu")
    x = g.conv(x, rng.normal(size=[16, 1, 3, 3]), groups=16, padding=1, name="depth")
    x = g.op("relu", x, name="relu1")
    x = g.conv(x, rng.normal(size=[16, 16, 1, 1]), name="point")
    x = g.op("mean_reduce", g.op("relu", x, name="relu2"), axes=[2, 3], name="mean")
    x = g.op("linear", g.reshape(x, [1, 16]), rng.normal(size=[4, 16]), rng.normal(size=[1, 4]))
    return g.build(g.op("softmax", x, axes=[1], name="classes"))


def residual(rng):
    """Branches that meet, all of their operators beat by beat, and maxima of windows."""
    g = GraphBuilder("residual")
    x = g.input("x", [1, 4, 6, 6])
    y = g.conv(x, rng.normal(size=[4, 4, 3, 3]), padding=1, name="conv")
    y = g.op("mul", g.op("add", x, y, name="sum"), g.op("tanh", y, name="tanh"), name="product")
    y = g.op("max", y, x, name="greater")
    y = g.pool("max_pool", y, stride=1, padding=1, name="windows")
    return g.build(g.pool("avg_pool", y, 3, stride=1, padding=1, border="ignore", name="averages"))


def image(rng):
    """A channel that becomes eight, and pools whose pixels have few beats, or one."""
    g = GraphBuilder("image")
    x = g.conv(g.input("x", [1, 1, 8, 8]), rng.normal(size=[8, 1, 3, 3]), padding=1, name="first")
    x = g.pool("max_pool", g.op("relu", x, name="relu"), name="greatest")
    x = g.conv(x, rng.normal(size=[4, 8, 2, 2]), name="second")
    return g.build(g.pool("avg_pool", g.op("relu", x, name="relu1"), 3, stride=3, name="averages"))


NETWORKS = {"separable": separable, "residual": residual, "image": image}


def wide_networks(graph, target=BOARD, *, every=False):
    """Return the graph's layers with streams of several codes, as few and as many as there are.

    And, if every one is asked for, of a number of codes between these.
    """
    network = lower(graph)
    codes = max(int(np.prod(image)) for image in network.images.values())
    networks = [wide.network for wide in wider(network, target, max(1, codes // 2))]
    return networks if every else [*networks[:1], *networks[1:][-1:]]


@pytest.mark.parametrize(
    ("network", "place"),
    # The fewest codes of the separable network are what the rate below asks for.
    few(
        list(product(NETWORKS, [0, 1, -1])),
        [("residual", -1), ("image", 0)],
    ),
)
def test_is_exact(network, place, fix, force, rng, simulate):
    graph = fix(NETWORKS[network](rng))
    plan = schedule(graph, BOARD)
    forced = force(plan, graph, BOARD, wide_networks(graph, every=True)[place])
    assert max(forced.lanes.values()) > 1
    simulate(forced, graph, "verilator").check(LONG)


def test_a_rate_takes_as_many_codes_per_beat_as_it_needs(fix, rng, simulate):
    """The streams between layers have 448 codes, the input 54: of that one per beat is enough."""
    graph = fix(separable(rng))
    assert not schedule(graph, BOARD, target_fps=CLOCK / 460).lanes
    plan = schedule(graph, BOARD, target_fps=CLOCK / 300)
    assert plan.interval <= 300
    # the mean keeps the width, and the linear layer ends it
    assert plan.lanes == dict.fromkeys(["relu", "relu1", "relu2", "mean"], 2)
    assert plan.inputs[0].lanes == plan.outputs[0].lanes == 1
    simulate(plan, graph, "verilator").check(LONG)


def test_a_word_is_a_window_for_all_channels_of_a_beat(fix, rng):
    """So the layer that reads the image takes as many cycles as its results have beats."""
    graph = fix(image(rng))
    for cycles, lanes in ((256, 2), (128, 4), (80, 8)):
        plan = schedule(graph, BOARD, target_fps=CLOCK / cycles)
        [first, pool, *_] = plan.blocks
        assert (first.kind, first.layer.result_lanes) == ("dot", lanes)
        assert first.cycles == 64 * 8 // lanes
        # with less than three beats in a pixel, a line buffer gives the windows of a pool
        assert pool.kind == ("running_max" if lanes == 2 else "max_pool")


def test_plan_report_and_boards_know_the_beats(fix, rng):
    graph = fix(separable(rng))
    network = lower(graph)
    plan = schedule(graph, BOARD, target_fps=CLOCK / 300)
    again = StreamingPlan.from_json(json.loads(plan.dumps()), network)
    assert again.dumps() == plan.dumps()
    assert again.lanes == plan.lanes
    assert again.resources == plan.resources
    ceilings = find_ceilings(network, [BOARD], plan.blocks)
    assert ceilings[BOARD.name].interval <= plan.interval
    assert find_ceilings(network, [BOARD])[BOARD.name].interval > plan.interval
    headroom = find_headroom(plan, network, BOARD.device)
    assert headroom.cycles >= 224 > headroom.wanted
    report = report_plan(plan, graph, BOARD, make_timeline(plan))
    assert report.beat == "beat"
    assert report.roofs.streams == plan.macs / 224


def test_layers_of_one_code_per_beat_refuse_the_rate(fix, rng):
    g = GraphBuilder("exchanged")
    x = g.conv(g.input("x", [1, 2, 6, 8]), rng.normal(size=[8, 2, 1, 1]), name="point")
    x = g.op("tanh", g.op("transpose", x, axes=[0, 3, 2, 1]))
    graph = fix(g.build(x))
    assert wide_networks(graph) == []
    with pytest.raises(TargetError, match=r"fewer than 384 cycles.* takes codes one by one"):
        schedule(graph, BOARD, target_fps=CLOCK / 300)


def check_networks(start, count, fix, force, simulate, rng, *, every=False):
    """Build and run random networks of which the layers take wider streams."""
    state = rng.bit_generator.state

    @seed(start)
    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(random_networks())
    def run(network):
        rng.bit_generator.state = state
        try:
            graph = fix(network.graph, **network.scheme)
            wide = wide_networks(graph, every=every)
            plan = schedule(graph, BOARD)
        except (ErrorGroup, TargetError, UnsupportedError):
            reject()
        if not wide:
            reject()
        for each in wide:
            simulate(force(plan, graph, BOARD, each), graph).check(FRAMES)

    run()


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_networks(shard, fix, force, simulate, rng):
    check_networks(shard, PER_SHARD, fix, force, simulate, rng)


@pytest.mark.nightly
@pytest.mark.parametrize("shard", range(NIGHTLY_SHARDS))
def test_many_random_networks(shard, fix, force, simulate, rng):
    check_networks(1000 + shard, PER_NIGHTLY_SHARD, fix, force, simulate, rng, every=True)
