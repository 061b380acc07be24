"""The interval is that of the long run, however late a design comes to it."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.streaming.beats.beats import Network, predict_interval, predict_spacing, simulate_beats
from nnef_hw.streaming.beats.fifos import give_fifos
from nnef_hw.streaming.beats.steady import Advances, Steady, cycles_per_frame, find_steady
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

LONG = 150


def conv(g, x, weights, stride, padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    return g.op(
        "conv", x, weights, 0.0, border="constant", padding=list(padding), stride=list(stride),
        dilation=list(dilation), groups=groups,
    )  # fmt: skip


def branches_that_hold_each_other_up(rng):
    """Line buffers hold many frames of the input; the branches wait for each other when full."""
    g = GraphBuilder()
    x = g.input("x", [1, 1, 3, 7])
    y = g.op("relu", conv(g, x, rng.normal(size=[3, 1, 1, 3]), (4, 1), dilation=(1, 3)))
    y = conv(g, y, rng.normal(size=[15, 1, 1, 5]), (4, 1), ((0, 0), (3, 3)), groups=3)
    y = conv(g, y, rng.normal(size=[75, 1, 1, 1]), (3, 1), groups=15)
    z = g.op("tanh", conv(g, x, rng.normal(size=[11, 1, 3, 3]), (1, 2)))
    z = conv(g, z, rng.normal(size=[1, 11, 4, 1]), (5, 4), ((3, 3), (0, 3)))
    return g.build(g.op("sigmoid", y), g.op("tanh", z))


def slower_branch_that_begins_early(rng):
    """Of three outputs the last one comes late, but another one every 10 cycles and not 9."""
    g = GraphBuilder()
    x = g.input("x", [1, 3, 3])
    y = g.op("slice", x, axes=[1, 2], begin=[1, 0], end=[2, 1], stride=[1, 1])
    y = g.op("pad", y, padding=[(0, 0), (0, 0), (0, 1)], border="constant", value=0.0,
             shape=[1, 1, 2])  # fmt: skip
    y = g.conv(y, rng.normal(size=[2, 1, 1]))
    z = g.op("add", g.op("mul", x, rng.normal(size=[1, 3])), rng.normal(size=[1, 3]))
    return g.build(y, g.op("argmax_reduce", z, axes=[1]))


def strides_and_an_input_apart(rng):
    g = GraphBuilder()
    x, other = (g.input(name, [1, 11, 2, 5]) for name in ("x", "other"))
    x = g.op("nearest_downsample", x, factor=[2, 1])
    y = g.op("max_pool", x, size=[1, 1, 1, 2], border="ignore", padding=[(0, 0)] * 4,
             stride=[1, 1, 3, 2], dilation=[1] * 4)  # fmt: skip
    z = conv(g, y, rng.normal(size=[11, 1, 3, 1]), (3, 1), ((0, 2), (0, 0)), groups=11)
    w = conv(g, x, rng.normal(size=[22, 1, 1, 3]), (2, 3), ((0, 1), (3, 0)), groups=11)
    return g.build(g.op("tanh", z), w, g.op("tanh", other), y, x)


def two_requantizers(rng):
    """Frames of one code, which come in pairs."""
    g = GraphBuilder()
    x = g.input("x", [1, 1, 1, 1])
    return g.build(*(g.conv(x, rng.normal(size=[1, 1, 1, 1])) for _ in range(2)))


def a_chain(rng):
    g = GraphBuilder()
    x = g.op("relu", g.conv(g.input("x", [1, 1, 5, 5]), rng.normal(size=[2, 1, 3, 3])))
    return g.build(g.conv(x, rng.normal(size=[3, 2, 2, 2])))


NETWORKS = pytest.mark.parametrize(
    ("network", "board"),
    [
        (branches_that_hold_each_other_up, "ecp5"),
        (slower_branch_that_begins_early, "ecp5"),
        (strides_and_an_input_apart, "ice40"),
        (two_requantizers, "ecp5"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)


def spacings_over(ends, period):
    ends = np.array(ends)
    return ends[period:] - ends[:-period]


@NETWORKS
def test_the_interval_is_that_of_the_long_run(network, board, fix, rng):
    plan = schedule(fix(network(rng)), find_board(board))
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, LONG)
    (cycles,) = set(spacings_over(times.last_outputs, plan.period)[plan.settling :].tolist())
    assert plan.interval == -(-cycles // plan.period)
    assert cycles_per_frame(times.last_outputs, plan.period) == plan.interval


@pytest.mark.parametrize(
    "network", [slower_branch_that_begins_early, two_requantizers], ids=lambda f: f.__name__
)
def test_short_runs_are_predicted_too(network, fix, simulate, rng):
    graph = fix(network(rng))
    plan = schedule(graph, find_board("ecp5"))
    ends = simulate(plan, graph).run(12).times.last_outputs
    for frames in range(1, len(ends) + 1):
        found = cycles_per_frame(ends[:frames], plan.period)
        assert found == predict_interval(plan, frames)
        if frames > 1:
            assert ends[frames - 1] - ends[frames - 2] == predict_spacing(plan, frames)
    assert predict_interval(plan, 1) is None


@pytest.mark.usefixtures("one_code_per_beat")
def test_no_fifo_is_missing_where_branches_hold_each_other_up(fix, rng):
    plan = schedule(fix(branches_that_hold_each_other_up(rng)), find_board("ecp5"))
    assert plan.interval == max(block.cycles for block in plan.blocks)
    without = [block.with_fifos([0] * len(block.fifos)) for block in plan.blocks]
    times = simulate_beats(without, plan.inputs, plan.outputs)
    assert times.interval > plan.interval
    # It does not show at first.
    assert set(times.spacings[:3]) == {plan.interval}


@NETWORKS
def test_a_simulation_that_goes_on_ends_as_a_new_one(network, board, fix, rng):
    """It may have stopped earlier: when no frame was proved to take longer than was asked for."""
    plan = schedule(fix(network(rng)), find_board(board))
    again = Network(plan.blocks, plan.inputs, plan.outputs)
    asked = Steady(2 * plan.interval, 1, None)
    early = again.settle(asked)
    assert early.steady.mean <= asked.mean
    times = again.settle()
    new = simulate_beats(plan.blocks, plan.inputs, plan.outputs)
    assert (times, times.steady) == (new, new.steady)
    assert len(early.last_outputs) <= len(times.last_outputs)


def test_sizing_fifos_simulates_a_chain_once(fix, rng):
    """Without branches, what sizes the FIFOs is the simulation of the blocks as they are."""
    target = find_board("ecp5")
    plan = schedule(fix(a_chain(rng)), target)
    sized = give_fifos(plan.blocks, (plan.inputs, plan.outputs), target.device)
    assert sized.blocks == plan.blocks
    network = Network(plan.blocks, plan.inputs, plan.outputs)
    times, events = sized.settled
    assert (times, events) == (network.run(), network.events)
    assert times.steady == simulate_beats(plan.blocks, plan.inputs, plan.outputs).steady
    plan = schedule(fix(strides_and_an_input_apart(rng)), target)
    assert give_fifos(plan.blocks, (plan.inputs, plan.outputs), target.device).settled is None


def test_frames_that_leave_before_they_come_steadily(fix, rng):
    graph = fix(strides_and_an_input_apart(rng))
    plan = schedule(graph, find_board("icebreaker"), clock_mhz=24, target_fps=60_000)
    assert plan.settling > 2
    assert predict_interval(plan, plan.settling) < plan.interval
    assert predict_interval(plan, 1000) == plan.interval


def test_a_pattern_of_two_frames(fix, rng):
    plan = schedule(fix(two_requantizers(rng)), find_board("ecp5"))
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, LONG)
    pattern = times.spacings[-plan.period :]
    assert plan.period == len(set(pattern)) == 2
    assert plan.interval == -(-sum(pattern) // 2)
    unknown = replace(plan, settling=None)
    for frames in (LONG - 1, LONG):
        assert predict_spacing(plan, frames) == predict_spacing(unknown, frames)


# what is proved, of events given one by one


@dataclass
class Events:
    times: list[int]


def bounds_of(*groups, frames, period=1, delay=1):
    """Return what is proved after each frame: of groups of series of cycles, one per frame."""
    series = [[Events([]) for _ in group] for group in groups]
    advances = Advances(series, delay)
    bounds = []
    for n in range(frames):
        for events, group in zip(series, groups, strict=True):
            for one, cycles in zip(events, group, strict=True):
                one.times.append(cycles[n])
        advances.add_frame()
        bounds.append(advances.bound(period))
    return bounds


def evenly(first, step):
    return [first + n * step for n in range(20)]


def test_the_largest_advance_is_the_bound():
    assert bounds_of([evenly(0, 3), evenly(1, 5)], frames=6)[-1] == 5
    assert bounds_of([evenly(0, 3), evenly(1, 3)], frames=6)[-1] == 3


def test_nothing_is_proved_of_what_a_first_frame_may_hold_up():
    early, late = evenly(0, 3), evenly(20, 3)
    # The last frame, and 3 cycles more, have to be later than the end of the first frame.
    assert bounds_of([early, late], frames=9) == [None] * 6 + [3] * 3
    assert bounds_of([early, late], frames=9, delay=4) == [None] * 7 + [3] * 2
    # What is in no group together does not wait for each other.
    assert bounds_of([early], [late], frames=9) == [None] * 2 + [3] * 7


def test_a_larger_advance_counts_until_it_is_past():
    once = [0, 3, 6, 16, 19, 22, 25, 28]
    later = [cycle + 9 for cycle in once]
    assert bounds_of([once, later], frames=8) == [None, None, None, 10, 10, 10, 3, 3]


def test_a_pattern_needs_its_period():
    """Two frames are inside at a time, each of 9 cycles: one enters as the last but one leaves."""
    entering = [0, 4, 10, 14, 20, 24, 30, 34]
    leaving = [cycle + 9 for cycle in entering]
    group = [entering, leaving]
    assert set(bounds_of(group, frames=8)[2:]) == {6}
    assert bounds_of(group, frames=8, period=2)[-4:] == [10] * 4


@pytest.mark.parametrize(
    ("delay", "frames", "least", "most"),
    [
        (15, [[0, 1, 10], [11, 20], [21, 30]], 10, 10),
        (16, [[10], [19, 20], [29, 30]], 1000, None),
    ],
    ids=["fewer than before", "more than before"],
)
def test_the_last_events_of_frames_are_compared(delay, frames, least, most):
    """The first frame has padding of the second one too; what has none before, came any time."""
    even, uneven = Events([]), Events([])
    advances = Advances([[even, uneven]], delay)
    for cycle, events in zip((5, 15, 25), frames, strict=True):
        even.times.append(cycle)
        uneven.times += events
        advances.add_frame()
    found = advances.bound(1)
    assert found >= least
    assert most is None or found <= most


def test_ends_have_to_attain_what_is_proved():
    branches = [evenly(0, 9), evenly(0, 10)], [evenly(11, 9), evenly(1, 10)]
    series = [[Events([]) for _ in group] for group in branches]
    advances, found = Advances(series, 1), []
    for n in range(16):
        for events, group in zip(series, branches, strict=True):
            for one, cycles in zip(events, group, strict=True):
                one.times.append(cycles[n])
        advances.add_frame()
        ends = np.max([branches[1][0][: n + 1], branches[1][1][: n + 1]], axis=0).tolist()
        found.append(find_steady(advances, ends, 11))
    assert found[:12] == [None] * 12
    assert found[-1] == Steady(10, 1, 10)
    assert find_steady(advances, ends[:6], 11, enough=Steady(10, 1, None)) == Steady(10, 1, None)
    assert find_steady(advances, ends[:6], 11, enough=Steady(9, 1, None)) is None


@pytest.mark.parametrize("slowest", [0, 12])
def test_a_late_first_frame_is_no_steady_state(slowest):
    """It passes a layer per frame; behind it frames are 10 cycles apart, in front of it 12."""
    layers = 4

    def end(layer, n):
        return 2 * layer + 10 * n + 2 * min(n, layer + 1)

    series = [Events([]) for _ in range(layers)]
    advances, found, ends = Advances([[events] for events in series], 1), [], []
    for n in range(16):
        for layer, events in enumerate(series):
            events.times.append(end(layer, n))
        advances.add_frame()
        ends.append(end(layers - 1, n))
        found.append(find_steady(advances, ends, 14, slowest=slowest))
    assert found[-1] == Steady(10, 1, layers)
    wrong = [steady for steady in found if steady is not None and steady.cycles == 12]
    assert bool(wrong) == (slowest == 12)


def test_the_mean_is_rounded_up():
    assert Steady(9, 2, 0).mean == Fraction(9, 2)
    assert Steady(9, 2, 0).interval == 5
    assert cycles_per_frame([0, 4, 9, 13, 18], 2) == 5
    assert cycles_per_frame([0, 4], 2) == 4
    assert cycles_per_frame([7], 2) is None
