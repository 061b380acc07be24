"""FIFOs and line buffers are as large as they must be: with less, a design is slower or stuck."""

from bisect import bisect_left
from dataclasses import replace
from math import ceil
from operator import itemgetter

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.streaming.beats.beats import DeadlockError, simulate_beats
from nnef_hw.streaming.beats.fifos import fifo_depths
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def weights(rng, *shape):
    return rng.normal(size=shape)


def residual(rng):
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 2, 5, 6]), weights(rng, 3, 2, 1, 1)))
    y = g.op("relu", g.conv(x, weights(rng, 3, 3, 3, 3), padding=1))
    return g.build(g.op("relu", g.op("add", x, g.conv(y, weights(rng, 3, 3, 3, 3), padding=1))))


def deep_residual(rng):
    """More frames are in the branch at a time than a few."""
    g = GraphBuilder()
    x = y = g.op("relu", g.conv(g.input("x", [1, 2, 4, 4]), weights(rng, 2, 2, 1, 1)))
    for _ in range(5):
        y = g.op("relu", g.conv(y, weights(rng, 2, 2, 3, 3), padding=1))
    return g.build(g.op("add", x, y))


def joined(axis):
    def network(rng):
        g = GraphBuilder()
        x = g.input("x", [1, 3, 6, 5])
        y = g.op("relu", g.conv(x, weights(rng, 3, 3, 3, 3), padding=1))
        shape = [extent * (2 if n == axis else 1) for n, extent in enumerate((1, 3, 6, 5))]
        return g.build(g.op("concat", g.op("tanh", x), y, axis=axis, shape=shape))

    network.__name__ = f"joined_along_{axis}"
    return network


def joined_before_a_slow_layer(rng):
    """The input could run far ahead of the last layer, and gain nothing."""
    g = GraphBuilder()
    x = g.input("x", [1, 3, 5, 5])
    y = g.op("relu", g.conv(x, weights(rng, 3, 3, 3, 3), padding=1))
    x = g.op("concat", g.op("tanh", x), y, axis=1, shape=[1, 6, 5, 5])
    return g.build(g.conv(x, weights(rng, 40, 6, 3, 3), padding=1))


def chain(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 6, 6])
    for _ in range(3):
        channels = g.build(x).tensor(x).shape[1]
        x = g.op("relu", g.conv(x, weights(rng, 4, channels, 3, 3), padding=1))
    return g.build(x)


def averaged(rng):
    """The results of the pool leave slowly, all at once."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 4, 6, 6]), weights(rng, 24, 4, 3, 3), padding=1)
    return g.build(g.op("mean_reduce", g.op("tanh", x), axes=[2, 3]))


FRAMES = 4
EVERY_NETWORK = pytest.mark.parametrize(
    "network",
    [residual, deep_residual, joined(1), joined(2), joined_before_a_slow_layer, chain, averaged],
    ids=lambda f: f.__name__,
)
BOARDS = pytest.mark.parametrize("board", ["ice40", "ecp5"])


def with_fifo(plan, place, operand, depth):
    """The plan with another FIFO in front of one operand."""
    blocks = list(plan.blocks)
    depths = list(blocks[place].fifos)
    depths[operand] = depth
    blocks[place] = blocks[place].with_fifos(depths)
    return replace(plan, blocks=tuple(blocks))


def with_line_buffer(plan, place, depth):
    blocks = list(plan.blocks)
    blocks[place] = blocks[place].with_folding(depth=depth)
    return replace(plan, blocks=tuple(blocks))


def is_as_fast(other, plan):
    try:
        times = simulate_beats(other.blocks, other.inputs, other.outputs)
    except DeadlockError:
        return False
    return times.interval <= plan.interval and times.latency <= plan.latency


def fifos(plan):
    """Every FIFO of a plan: number of its block, operand, items."""
    return [
        (place, operand, source.depth)
        for place, block in enumerate(plan.blocks)
        for operand, source in enumerate(block.sources)
        if source.depth
    ]


def least_items(plan, place, operand, depth):
    """The fewest items with which nothing is slower; block RAM may hold more."""
    return bisect_left(
        range(depth + 1),
        True,
        lo=2,
        key=lambda items: is_as_fast(with_fifo(plan, place, operand, items), plan),
    )


@BOARDS
@EVERY_NETWORK
def test_a_cheaper_fifo_is_slower_or_deadlocks(network, board, fix, rng):
    target = find_board(board)
    plan = schedule(fix(network(rng)), target)
    for place, operand, depth in fifos(plan):
        *cheaper, chosen = fifo_depths(plan.blocks[place], operand, depth, target.device)
        assert chosen == depth
        if cheaper:
            assert not is_as_fast(with_fifo(plan, place, operand, cheaper[-1]), plan)


@pytest.mark.parametrize(
    "network",
    [residual, *(pytest.param(f, marks=pytest.mark.nightly) for f in (joined(1), chain))],
    ids=lambda f: f.__name__,
)
def test_one_item_fewer_stalls_the_hardware(network, fix, simulate, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board("ice40"))
    place, operand, depth = max(fifos(plan), key=itemgetter(2))
    least = least_items(plan, place, operand, depth)
    intervals = []
    for items in (least, least - 1):
        exact = with_fifo(plan, place, operand, items)
        times = simulate_beats(exact.blocks, exact.inputs, exact.outputs, FRAMES)
        exact = replace(exact, interval=times.interval, latency=times.latency)
        simulate(exact, graph).check(FRAMES)
        intervals.append(times.interval)
    assert intervals[0] == plan.interval < intervals[1]


@pytest.mark.parametrize("network", [residual, joined(2), chain], ids=lambda f: f.__name__)
def test_one_word_fewer_of_a_line_buffer_stalls_or_deadlocks(network, fix, rng, monkeypatch):
    # Hardware has depths of powers of two only, its timing can be told of any.
    monkeypatch.setattr(LineBuffer, "__post_init__", lambda _: None)
    plan = schedule(fix(network(rng)), find_board("ice40"))
    slowest = [
        place
        for place, block in enumerate(plan.blocks)
        if block.cycles == plan.interval and block.buffer and block.buffer.window.taps > 1
    ]
    assert slowest
    for place in slowest:
        window = plan.blocks[place].buffer.window
        enough = window.span + max(window.column_step, window.row_step, window.frame_step)
        assert plan.blocks[place].buffer.depth >= enough
        assert is_as_fast(with_line_buffer(plan, place, enough), plan)
        assert not is_as_fast(with_line_buffer(plan, place, enough - 1), plan)
        least = with_line_buffer(plan, place, window.min_depth)
        assert simulate_beats(least.blocks, plan.inputs, plan.outputs).interval > plan.interval
        stuck = with_line_buffer(plan, place, window.min_depth - 1)
        with pytest.raises(DeadlockError):
            simulate_beats(stuck.blocks, plan.inputs, plan.outputs)


@EVERY_NETWORK
def test_the_slowest_layer_never_waits_where_there_is_room_for_fifos(network, fix, rng):
    plan = schedule(fix(network(rng)), find_board("ecp5"))
    assert plan.interval == max(block.cycles for block in plan.blocks)


@EVERY_NETWORK
def test_the_interval_is_that_of_every_later_frame(network, fix, rng):
    plan = schedule(fix(network(rng)), find_board("ecp5"))
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, 30)
    assert plan.settling < 15
    spacings = np.array(times.spacings[plan.settling :])
    assert (spacings[plan.period :] == spacings[: -plan.period]).all()
    assert ceil(spacings[: plan.period].mean()) == plan.interval


def test_a_fifo_is_not_sized_by_how_far_the_input_could_run_ahead(fix, rng):
    plan = schedule(fix(joined_before_a_slow_layer(rng)), find_board("ice40"))
    ((place, operand, depth),) = fifos(plan)
    assert least_items(plan, place, operand, depth) < plan.inputs[0].beats
