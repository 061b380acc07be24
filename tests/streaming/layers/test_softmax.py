"""A final softmax, one pixel at a time or several that overlap: cycles, and which is chosen."""

import numpy as np
import pytest
from changed_plans import with_folding
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.lanes import equally_wide, takes_lanes, why_not_whole
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 7

DIVISION_STAGES = (1, 2, 3, 5, 9)
"""Numbers of stages for 8 bits, without those that are not faster than a smaller one."""


def linear(g, x, shape, rng):
    return g.op("linear", x, rng.normal(size=shape), np.zeros((1, shape[0])))


def digits(rng):
    """The multilayer perceptron of scikit-learn's digits: 64 codes in, 10 classes."""
    g = GraphBuilder()
    x = g.op("relu", linear(g, g.input("x", [1, 64]), [32, 64], rng))
    return g.build(g.op("softmax", linear(g, x, [10, 32], rng), axes=[1]))


def alone(rng):
    g = GraphBuilder()
    return g.build(g.op("softmax", g.input("x", [1, 5]), axes=[1]))


def one_class(rng):
    g = GraphBuilder()
    return g.build(g.op("softmax", g.input("x", [1, 1, 2, 3]), axes=[1]))


def of_pixels(rng):
    """A softmax of every pixel; its scores leave too, so that a branch may hold it up."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 4]), rng.normal(size=[3, 2, 1, 1]))
    return g.build(g.op("softmax", x, name="softmax", axes=[1]), g.op("tanh", x, name="tanh"))


def scaled(rng):
    """Scores times their softmax."""
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 6, 2, 2]))
    return g.build(g.op("mul", x, g.op("softmax", x, axes=[1])))


def weighted(rng):
    """Sums of probabilities, none of which is great: their steps are finer than 1/256."""
    g = GraphBuilder()
    x = g.op("softmax", g.op("tanh", g.input("x", [1, 20, 2, 2])), name="softmax", axes=[1])
    return g.build(g.conv(x, rng.normal(size=[3, 20, 1, 1])))


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize(
    ("network", "stages"),
    covering([alone, one_class, of_pixels, scaled, weighted], [0, *DIVISION_STAGES]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_cycles_are_those_of_the_hardware(network, stages, fix, simulate, rng):
    target = find_board("ice40")
    graph = fix(network(rng))
    plan = with_folding(schedule(graph, target), target, "softmax", stages=stages)
    simulate(plan, graph).check(FRAMES)


@pytest.mark.usefixtures("one_code_per_beat")
def test_block_cycles_are_the_spacing_of_its_pixels(fix, rng):
    target = find_board("ice40")
    graph = fix(alone(rng))
    plan = schedule(graph, target)
    for stages in (0, *DIVISION_STAGES):
        changed = with_folding(plan, target, "softmax", stages=stages)
        assert changed.interval == changed.blocks[-1].cycles


@pytest.mark.parametrize("board", few(["ecp5", "icebreaker"], ["icebreaker"]))
def test_a_final_softmax_does_not_bound_the_interval(board, fix, simulate, rng):
    """It overlaps frames where it has to; the small one stays where it is fast enough."""
    graph = fix(digits(rng))
    target = find_board(board)
    plan = schedule(graph, target)
    assert plan.interval == (64 if board == "ecp5" else 128)
    assert plan.blocks[-1].kind == "pipelined_softmax"
    trial = simulate(plan, graph).run(8)
    assert trial.codes == trial.expected
    assert set(np.diff(trial.times.last_outputs)[-4:].tolist()) == {plan.interval}
    slow = schedule(graph, target, target_fps=target.clock_mhz * 1e6 / 400)
    assert slow.blocks[-1].kind == "softmax"
    assert slow.resources.bram < plan.resources.bram


@pytest.mark.parametrize("lanes", [2, 3, 6])
def test_wide_beats_are_exact_in_predicted_cycles(lanes, fix, force, simulate, rng):
    """Scores, probabilities and their product are equally wide; so is the border."""
    target = find_board("ulx3s_85f")
    graph = fix(scaled(rng))
    network = lower(graph)
    [streams] = equally_wide(network)
    wide = network.widened(dict.fromkeys(streams, lanes))
    assert takes_lanes(wide, target)
    plan = force(schedule(graph, target), graph, target, wide)
    block = next(block for block in plan.blocks if block.op == "softmax")
    assert (block.kind, block.parts[0].lanes) == ("pipelined_softmax", lanes)
    simulate(plan, graph).check(FRAMES)


def test_wide_beats_take_fewer_cycles(fix, rng):
    """A pixel of 20 codes passes in 5 beats; what sums them up takes a few cycles more."""
    device = find_board("ulx3s_85f").device
    network = lower(fix(weighted(rng)))
    cycles = []
    for lanes in (1, 4, 20):
        [layer] = [
            x
            for x in network.widened(dict.fromkeys(network.images, lanes)).layers
            if x.label == "softmax"
        ]
        foldings = layer.foldings(device)
        assert any(not folding.stages for folding in foldings) == (lanes == 1)
        assert all((layer.without_overlap(x) is None) == (lanes > 1) for x in foldings[1:])
        cycles.append(min(layer.cycles(folding, device) for folding in foldings))
    assert cycles == [4 * (20 + 4), 4 * (5 + 5), 4 * (1 + 7)]


def test_widths_that_do_not_divide_the_channels_are_refused(fix, rng):
    target = find_board("ulx3s_85f")
    network = lower(fix(scaled(rng)))
    assert not takes_lanes(network.widened(dict.fromkeys(network.images, 4)), target)
    assert why_not_whole(network, target) == ""


def test_finer_steps_have_more_stages_to_choose_from(fix, rng):
    graph = fix(weighted(rng))
    qtype = graph.tensor("softmax").qtype
    assert (qtype.bits, qtype.scale) == (8, 2.0**-10)
    target = find_board("ecp5")
    plan = schedule(graph, target, target_fps=target.clock_mhz * 1e6 / 100)
    block = next(block for block in plan.blocks if block.op == "softmax")
    assert (block.folding.stages, block.parts[0].quotient_bits) == (11, 11)
