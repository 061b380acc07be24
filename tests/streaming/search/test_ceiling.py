"""The most that boards can make of a network, and what ends it."""

from dataclasses import replace

import pytest
from attention_graphs import product
from sweeps import few

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.streaming.foldings.budget import queue_resources
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.ceiling import find_ceilings
from nnef_hw.streaming.search.lanes import takes_lanes
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def linears(fix, rng):
    g = GraphBuilder("linears")
    x = g.input("x", [1, 64])
    for _ in range(2):
        x = g.op("linear", x, rng.normal(size=[64, 64]), rng.normal(size=[1, 64]))
    return fix(g.build(x))


def ceiling_of(graph, target):
    return find_ceilings(lower(graph), [target])[target.name]


@pytest.mark.parametrize("board", few(["icebreaker", "ulx3s_12f"], ["icebreaker"]))
def test_a_plan_comes_close_and_is_never_faster(board, linears):
    target = find_board(board)
    plan, ceiling = schedule(linears, target), ceiling_of(linears, target)
    slowest = max(block.cycles for block in plan.blocks)
    assert ceiling.interval <= slowest <= ceiling.interval * 5 / 4


@pytest.mark.parametrize("board", few(["icebreaker", "ulx3s_12f"], ["icebreaker"]))
def test_twice_as_many_of_what_ends_it_help_as_much_as_said(board, linears):
    target = find_board(board)
    ceiling = ceiling_of(linears, target)
    assert ceiling.with_twice
    for resource, interval in ceiling.with_twice.items():
        doubled = replace(target.device, **{resource: 2 * getattr(target.device, resource)})
        assert interval < ceiling.interval
        assert ceiling_of(linears, replace(target, device=doubled)).interval == interval


def test_what_ends_nothing_does_not_help(linears):
    target = find_board("icebreaker")
    ceiling = ceiling_of(linears, target)
    for resource in {"lut", "dsp", "bram"} - set(ceiling.with_twice):
        doubled = replace(target.device, **{resource: 2 * getattr(target.device, resource)})
        assert ceiling_of(linears, replace(target, device=doubled)).interval == ceiling.interval


def test_a_stream_of_one_code_per_cycle_ends_it_on_every_board(fix):
    g = GraphBuilder("shallow")
    network = lower(fix(g.build(g.pool("max_pool", g.input("x", [1, 2, 16, 16])))))
    for ceiling in find_ceilings(network, BOARDS).values():
        assert (ceiling.interval, ceiling.with_twice, ceiling.floor) == (512, {}, 512)


def test_boards_with_more_of_everything_are_no_slower(linears):
    boards = {(board.device.name, board.link_lut): board for board in BOARDS}.values()
    ceilings = find_ceilings(lower(linears), boards)
    for small in boards:
        for large in boards:
            if small.device.is_within(large.device) and small.link_lut == large.link_lut:
                assert ceilings[large.name].interval <= ceilings[small.name].interval


def test_a_board_that_a_network_does_not_fit_has_no_ceiling(fix, rng):
    g = GraphBuilder("large")
    weights = rng.normal(size=[400, 50])
    graph = fix(g.build(g.op("linear", g.input("x", [1, 50]), weights, 0.0)))
    assert ceiling_of(graph, find_board("icebreaker")) is None


def test_fifos_have_to_fit_too(fix, rng):
    g = GraphBuilder("residual")
    x = g.input("x", [1, 16, 20, 20])
    y = g.conv(x, rng.normal(size=[16, 16, 3, 3]), padding=1)
    graph = fix(g.build(g.op("add", x, y)))
    target = find_board("ulx3s_12f")
    plan, network = schedule(graph, target), lower(graph)
    fifos = queue_resources(plan.blocks, target.device)
    assert fifos.bram
    # So many block RAMs that all but the FIFOs fit.
    boards = [replace(target, device=replace(target.device, bram=n)) for n in range(1, 10)]
    enough = [
        next(b.device.bram for b in boards if find_ceilings(network, [b], blocks)[b.name])
        for blocks in ((), plan.blocks)
    ]
    assert enough[1] == enough[0] + fifos.bram


def test_operands_with_beats_of_other_widths_keep_theirs(fix):
    """Rows of several codes per beat, whose matrix comes code by code."""
    target = find_board("ulx3s_85f")
    network = lower(fix(product([1, 64, 8], [1, 8, 1])))
    [layer] = network.layers
    wide = network.widened({layer.sources[0]: 8})
    assert takes_lanes(wide, target)
    blocks = [min(options, key=lambda block: block.cycles)
              for options in network_options(wide, target.device)]  # fmt: skip
    [ceiling] = find_ceilings(network, [target], blocks).values()
    [narrow] = find_ceilings(network, [target]).values()
    assert ceiling.interval <= blocks[0].cycles < narrow.interval
