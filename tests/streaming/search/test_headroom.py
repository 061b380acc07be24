"""What half the interval would take."""

from dataclasses import replace

import pytest

from nnef_hw.boards import find_board
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.headroom import find_headroom
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def linears(fix, rng):
    """Return ``linears(channels)``: a graph that reads few codes and multiplies a lot."""

    def linears(channels):
        g = GraphBuilder("linears")
        x = g.input("x", [1, channels])
        for _ in range(2):
            weights = rng.normal(size=[channels, channels])
            x = g.op("linear", x, weights, rng.normal(size=[1, channels]))
        return fix(g.build(x))

    return linears


@pytest.fixture
def shallow(fix, rng):
    g = GraphBuilder("shallow")
    x = g.pool("max_pool", g.input("x", [1, 2, 16, 16]))
    return fix(g.build(x))


def headroom_of(graph, board, **options):
    target = find_board(board)
    plan = schedule(graph, target, **options)
    return plan, find_headroom(plan, lower(graph), target.device)


def test_design_made_slow_by_choice_can_be_halved(linears):
    plan, headroom = headroom_of(linears(16), "ulx3s_85f", clock_mhz=60, target_fps=60e6 / 160)
    assert headroom.wanted == headroom.cycles == plan.interval // 2
    assert headroom.limits == headroom.lacking == ()
    assert [change.name for change in headroom.changes] == [
        block.name for block in plan.blocks if block.cycles > headroom.wanted
    ]
    assert all(change.then > change.multipliers for change in headroom.changes)
    grown = sum(change.then - change.multipliers for change in headroom.changes)
    assert headroom.multipliers == plan.multipliers + grown


def test_full_device_lacks_what_the_search_ran_out_of(linears):
    plan, headroom = headroom_of(linears(64), "icebreaker")
    assert headroom.lacking
    for shortage in headroom.lacking:
        assert shortage.wanted > shortage.usable
        assert shortage.wanted == getattr(headroom.resources, shortage.resource)
    assert headroom.multipliers > plan.multipliers


def test_stream_of_one_code_per_cycle_is_a_limit(shallow):
    plan, headroom = headroom_of(shallow, "ulx3s_85f", clock_mhz=60, target_fps=60e6 / 600)
    assert plan.interval >= 512
    (limit,) = headroom.limits
    assert limit.name == plan.blocks[0].name
    assert limit.cycles == headroom.cycles == 512
    assert headroom.changes == ()


def test_fifos_are_kept(linears):
    graph, target = linears(16), find_board("ulx3s_85f")
    plan = schedule(graph, target, clock_mhz=60, target_fps=60e6 / 160)
    first, *others = plan.blocks
    buffered = first.with_fifos([600])
    plans = (plan, replace(plan, blocks=(buffered, *others)))
    plain, with_fifo = (find_headroom(p, lower(graph), target.device) for p in plans)
    assert plain.changes[0].name == first.name
    assert with_fifo.resources.bram == plain.resources.bram + 1
