"""Without a rate, streams are as wide as makes the network clearly faster."""

import contextlib

import numpy as np
import pytest
from golden_networks import residual
from sweeps import covering

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search import solver
from nnef_hw.streaming.search.search import MAC_COST, fullness
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.streaming.search.width import MOST_LUTS, useful_widths
from nnef_hw.testing import GraphBuilder

LARGE, SMALL = find_board("ulx3s_85f"), find_board("icebreaker")


def image(rng):
    """What digits_cnn has: 768 codes behind the first layer, of 96 pixels."""
    g = GraphBuilder("image")
    x = g.conv(g.input("x", [1, 1, 12, 8]), rng.normal(size=[8, 1, 3, 3]), padding=1, name="first")
    x = g.pool("max_pool", g.op("relu", x, name="relu"), name="pool")
    x = g.conv(x, rng.normal(size=[16, 8, 3, 3]), padding=1, name="second")
    return g.build(g.conv(g.op("relu", x, name="relu1"), rng.normal(size=[10, 16, 6, 4])))


def classes(rng):
    """A border, which takes codes one by one, behind wide streams and in front of a softmax."""
    g = GraphBuilder("classes")
    x = g.conv(g.input("x", [1, 3, 8, 8]), rng.normal(size=[16, 3, 3, 3]), padding=1, name="first")
    x = g.conv(g.op("relu", x, name="relu"), rng.normal(size=[4, 16, 1, 1]), name="second")
    sides = [(0, 0), (0, 0), (1, 1), (0, 0)]
    x = g.op("pad", x, padding=sides, border="constant", value=0.0, name="border")
    return g.build(g.op("softmax", x, axes=[1], name="soft"))


def vectors(rng):
    """Two linear layers."""
    g = GraphBuilder("vectors")
    x = g.op("linear", g.input("x", [1, 24]), rng.normal(size=[32, 24]), rng.normal(size=[1, 32]))
    x = g.op("linear", g.op("tanh", x), rng.normal(size=[6, 32]), rng.normal(size=[1, 6]))
    return g.build(x)


def blocks(rng):
    """Sums of branches, whose layers wait for each other where streams are never idle."""
    del rng  # its numbers are the same everywhere
    return residual().graph


NETWORKS = {"image": image, "classes": classes, "vectors": vectors}


def rate(board, cycles):
    return board.clock_mhz * 1e6 / cycles


@pytest.mark.parametrize("network", NETWORKS)
def test_a_clearly_faster_design_is_too_large(network, fix, rng):
    """Of a rate an eighth and some waits higher, every design takes too many LUTs, or none fits."""
    graph = fix(NETWORKS[network](rng))
    plan = schedule(graph, LARGE)
    narrow = useful_widths(lower(graph), LARGE, False)[-1]
    assert narrow.network is lower(graph)
    assert plan.lanes
    assert plan.interval < max(int(np.prod(x)) for x in lower(graph).images.values())
    with contextlib.suppress(TargetError):
        faster = schedule(graph, LARGE, target_fps=rate(LARGE, plan.interval / 1.5))
        assert faster.resources.lut > plan.resources.lut


@pytest.mark.parametrize("network", NETWORKS)
def test_a_small_network_stays_small(network, fix, rng):
    """A design with wide streams takes at most three times the LUTs of one without."""
    graph = fix(NETWORKS[network](rng))
    plan = schedule(graph, LARGE)
    busiest = max(int(np.prod(image)) for image in lower(graph).images.values())
    narrow = schedule(graph, LARGE, target_fps=rate(LARGE, busiest * 1.3))
    assert not narrow.lanes
    assert narrow.resources.lut < plan.resources.lut <= MOST_LUTS * 1.1 * narrow.resources.lut


def test_layers_of_one_code_per_beat_forbid_nothing_elsewhere(fix, rng):
    """The first layer has 1,024 codes; the softmax takes a few cycles for each of its 80 pixels."""
    graph = fix(classes(rng))
    plan = schedule(graph, LARGE)
    assert plan.lanes["relu"] > 1
    assert "soft" not in plan.lanes
    slowest = max(plan.blocks, key=lambda block: block.cycles)
    assert (slowest.tensor, slowest.cycles) == ("soft", plan.interval)
    assert 320 < plan.interval < 1024


def test_where_the_device_ends_it_streams_stay_narrow(fix, rng):
    graph = fix(image(rng))
    assert len(useful_widths(lower(graph), SMALL, False)) == 1
    assert not schedule(graph, SMALL).lanes


def test_streams_are_not_wider_where_waits_make_that_slower(fix, rng, monkeypatch):
    """A design with wide streams that turns out slow is compared with the next narrower one."""
    graph = fix(image(rng))
    fast = schedule(graph, LARGE)
    width = useful_widths(lower(graph), LARGE, False)[0]
    slow = [[max(blocks, key=lambda block: block.cycles)] for blocks in width.options]
    widths = [width._replace(options=slow, enough=fast.interval), width._replace(enough=0)]
    monkeypatch.setattr(solver, "useful_widths", lambda *_: widths)
    assert schedule(graph, LARGE).interval == fast.interval


def cost(plan, board):
    """What the search makes small."""
    device, used = board.device, plan.resources
    shares = np.array(used.lut / device.lut), np.array(used.bram / device.bram)
    macs = sum(block.macs_per_cycle for block in plan.blocks)
    return float(fullness(*shares, long_wires=device.long_wires)) + MAC_COST * macs


@pytest.mark.parametrize(
    ("network", "board"),
    [
        *covering([*NETWORKS], [LARGE, SMALL]),
        pytest.param("blocks", LARGE, marks=pytest.mark.nightly),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_a_lower_rate_never_costs_more(network, board, fix, rng):
    """Each design is no dearer than any of a higher rate; the fastest is that without a rate."""
    graph = fix({**NETWORKS, "blocks": blocks}[network](rng))
    fastest = schedule(graph, board).interval
    cycles = [int(fastest * 1.25**n) for n in range(10)]
    plans = [schedule(graph, board, target_fps=rate(board, most)) for most in cycles]
    assert all(plan.interval <= most for plan, most in zip(plans, cycles, strict=True))
    costs = [cost(plan, board) for plan in plans]
    assert costs == sorted(costs, reverse=True)
