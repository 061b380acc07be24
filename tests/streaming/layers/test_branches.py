"""Networks with branches, and convolutions in groups: codes and cycles of whole accelerators."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from changed_plans import with_blocks
from sweeps import alternate, few

from nnef_hw.boards import find_board
from nnef_hw.streaming.beats.beats import DeadlockError, simulate_beats
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 3


def weights(rng, *shape):
    return rng.normal(size=shape)


def shortcut(rng):
    """A residual block, as in ResNet."""
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 2, 5, 6]), weights(rng, 3, 2, 1, 1)))
    y = g.op("relu", g.conv(x, weights(rng, 3, 3, 3, 3), padding=1))
    return g.build(g.op("relu", g.op("add", x, g.conv(y, weights(rng, 3, 3, 3, 3), padding=1))))


def projected(rng):
    """A residual block whose shortcut halves the image."""
    g = GraphBuilder()
    x = g.input("x", [1, 2, 6, 6])
    y = g.op("relu", g.conv(x, weights(rng, 4, 2, 3, 3), padding=[(0, 1), (0, 1)], stride=2))
    return g.build(g.op("add", g.conv(x, weights(rng, 4, 2, 1, 1), stride=2), y))


def of_two_branches(op):
    def network(rng):
        g = GraphBuilder()
        x = g.input("x", [1, 3, 4, 4])
        y = g.op("tanh", g.conv(x, weights(rng, 3, 3, 3, 3), padding=1))
        return g.build(g.op(op, g.op("tanh", x), y))

    network.__name__ = f"{op}_of_two_branches"
    return network


def with_constant(op, *, first=False):
    def network(rng):
        g = GraphBuilder()
        operands = [g.input("x", [1, 3, 2, 2]), rng.normal(size=(1, 3))]
        return g.build(g.op(op, *(reversed(operands) if first else operands)))

    network.__name__ = f"{op}_with_constant" + "_first" * first
    return network


def joined(axis):
    def network(rng):
        g = GraphBuilder()
        x = g.input("x", [1, 3, 4, 5])
        y = g.op("relu", g.conv(x, weights(rng, 3, 3, 3, 3), padding=1))
        z = g.op("tanh", x)
        shape = [extent * (3 if n == axis else 1) for n, extent in enumerate((1, 3, 4, 5))]
        return g.build(g.op("tanh", g.op("concat", y, x, z, axis=axis, shape=shape)))

    network.__name__ = f"joined_along_{axis}"
    return network


def itself_twice(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 3, 2, 2])
    return g.build(g.op("mul", x, x))


def depthwise(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 5, 6, 4]), weights(rng, 5, 1, 3, 3), padding=1, groups=5)
    return g.build(g.conv(g.op("relu", x), weights(rng, 4, 5, 1, 1)))


def depthwise_of_rows(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 6, 9]), weights(rng, 6, 1, 4), groups=6, stride=2)
    return g.build(g.op("relu", x))


def grouped(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 4, 5, 5])
    return g.build(g.conv(x, weights(rng, 6, 2, 2, 2), groups=2))


def dilated(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 7, 6])
    return g.build(g.conv(x, weights(rng, 3, 2, 3, 2), dilation=2, padding=1))


NETWORKS = (
    shortcut, projected, itself_twice, depthwise, depthwise_of_rows, grouped, dilated,
    *(of_two_branches(op) for op in ("add", "max", "min", "mul", "sub")),
    *(joined(axis) for axis in (1, 2, 3)),
    *(with_constant(op) for op in ("add", "max", "mul", "sub")),
    with_constant("sub", first=True),
)  # fmt: skip


@pytest.mark.parametrize(
    ("network", "board"),
    alternate(list(zip(NETWORKS, cycle(["ice40", "ecp5", "gowin"]), strict=False))),
    ids=lambda choice: getattr(choice, "__name__", choice),
)
def test_plan_of_the_solver(network, board, fix, simulate, rng):
    """On families in turn: parts and their primitives are tested on each by themselves."""
    graph = fix(network(rng))
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(FRAMES)


# Two networks of this kind are enough: a difference, and streams that are joined.
SAME = {"add_of_two_branches", "min_of_two_branches"}


@pytest.mark.parametrize(
    "network",
    few(NETWORKS, [f for f in NETWORKS[1::2] if f.__name__ not in SAME]),
    ids=lambda f: f.__name__,
)
def test_foldings_by_force(network, fix, force, simulate, rng):
    target = find_board("ecp5")
    graph = fix(network(rng))
    plan = force(schedule(graph, target), graph, target)
    simulate(plan, graph).check(FRAMES)


def shallower(plan, items):
    """The plan with that many fewer items in its deepest FIFO."""
    depth = max(source.depth for block in plan.blocks for source in block.sources)
    blocks = tuple(
        block.with_fifos([n - items if n == depth else n for n in block.fifos])
        for block in plan.blocks
    )
    return replace(plan, blocks=blocks)


def two_convolutions(rng):
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 2, 6, 6]), weights(rng, 4, 2, 3, 3), padding=1))
    return g.build(g.conv(x, weights(rng, 4, 4, 3, 3), padding=1))


@pytest.mark.parametrize("depth", few([2, 5, 16, 40, 17], [17]))
def test_fifo_between_layers(depth, fix, simulate, rng):
    graph = fix(two_convolutions(rng))
    plan = schedule(graph, find_board("ecp5"))
    first, second = plan.blocks
    plan = with_blocks(plan, (first, second.with_fifos([depth])))
    simulate(plan, graph).check(FRAMES)


def test_a_shortcut_without_room_deadlocks(fix, rng):
    plan = schedule(fix(shortcut(rng)), find_board("ecp5"))
    short = shallower(plan, max(s.depth for b in plan.blocks for s in b.sources) - 4)
    with pytest.raises(DeadlockError):
        simulate_beats(short.blocks, plan.inputs, plan.outputs)


def averages_of_sums(rng):
    """Averages of a convolution's codes, and of their sums along rows, which come slowly."""
    g = GraphBuilder()
    x = g.input("x", [1, 1, 3, 6])
    y = g.op(
        "conv", x, weights(rng, 10, 1, 3, 2), rng.normal(size=(1, 10)), border="constant",
        padding=[(2, 1), (0, 2)], stride=[2, 1], dilation=[1, 1], groups=1,
    )  # fmt: skip
    z = g.op("sum_reduce", y, axes=[3], normalize=False)
    means = [g.op("mean_reduce", t, axes=[2, 3]) for t in (g.op("relu", y), z)]
    return g.build(g.op("concat", *means, axis=1))


def test_what_a_slow_requantizer_holds_is_no_room_for_others(fix, simulate, rng):
    graph = fix(averages_of_sums(rng), activation_bits=15)
    plan = schedule(graph, find_board("ecp5"))
    simulate(plan, graph).check(FRAMES)


def test_deeper_fifos_gain_nothing(fix, rng):
    plan = schedule(fix(shortcut(rng)), find_board("ecp5"))
    deeper = shallower(plan, -50)
    times = [simulate_beats(p.blocks, plan.inputs, plan.outputs) for p in (plan, deeper)]
    assert times[0] == times[1]
    assert np.diff(times[0].last_outputs).max() == plan.interval
