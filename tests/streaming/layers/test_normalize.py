"""Normalizations in a network: cycles at every spacing, exact under stalls, of many frames."""

import numpy as np
import pytest
from changed_plans import with_folding
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.parts.functions.normalize import FAST_SPACINGS, SPACINGS
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 6


def alone(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 5])
    return g.build(g.op("normalize", x, 1.0, 0.0, axes=[1], epsilon=1e-3, centered=True))


def of_pixels(rng):
    """Of the last axis, behind a residual sum, with a scale and an offset for each place."""
    g = GraphBuilder()
    x = g.input("x", [1, 3, 6])
    y = g.op("matmul", x, rng.normal(size=(1, 6, 6)), transposeA=False, transposeB=False)
    y = g.op("add", x, y)
    scale, offset = rng.normal(size=(2, 1, 1, 6))
    return g.build(g.op("normalize", y, scale, offset, axes=[2], epsilon=1e-5, centered=True))


def beside_itself(rng):
    """What is normalized is added to the result, so that a branch may hold the other one up."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 2, 3]), rng.normal(size=[9, 2, 1, 1]))
    y = g.op("normalize", x, rng.normal(size=(1, 9)), 0.0, axes=[1], epsilon=0.0, centered=False)
    return g.build(g.op("add", x, g.op("tanh", y)))


def one_channel(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 1, 2, 2])
    return g.build(g.op("normalize", x, -2.0, 0.5, axes=[1], epsilon=0.25, centered=False))


def whole_image(rng):
    """Over all but the batch."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 2, 3]), rng.normal(size=[3, 2, 1, 1]))
    scale = rng.normal(size=(1, 3, 2, 3))
    return g.build(g.op("normalize", x, scale, 0.0, axes=[1, 2, 3], epsilon=1e-3, centered=True))


@pytest.mark.parametrize(
    ("network", "spacing"),
    covering([alone, of_pixels, beside_itself, one_channel, whole_image], SPACINGS),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_cycles_are_those_of_the_hardware(network, spacing, fix, simulate, rng):
    target = find_board("ice40")
    graph = fix(network(rng))
    plan = with_folding(schedule(graph, target), target, "normalize", spacing=spacing, digits=1)
    simulate(plan, graph).check(FRAMES)


@pytest.mark.parametrize(
    ("network", "spacing"), covering([of_pixels, one_channel, whole_image], FAST_SPACINGS)
)
def test_two_bits_of_a_root_per_cycle(network, spacing, fix, simulate, rng):
    target = find_board("ecp5")
    graph = fix(network(rng))
    slow, fast = (
        with_folding(schedule(graph, target), target, "normalize", spacing=spacing, digits=digits)
        for digits in (1, 2)
    )
    assert fast.latency < slow.latency
    simulate(fast, graph).check(FRAMES)


def residual(rng):
    """Six pixels of 96 channels, normalized behind a residual sum."""
    g = GraphBuilder()
    x = g.input("x", [1, 96, 3, 2])
    y = g.op("add", x, g.conv(x, rng.normal(size=[96, 96, 1, 1])))
    scale, offset = rng.normal(size=(2, 1, 96, 1, 1))
    y = g.op("normalize", y, scale, offset, axes=[1], epsilon=1e-5, centered=True)
    return g.build(g.conv(y, rng.normal(size=[12, 96, 1, 1])))


@pytest.mark.parametrize("cycles", few([500, 350, 260], [260]))
def test_beats_of_several_codes(cycles, fix, simulate, rng):
    """A frame of 576 codes within fewer cycles, the normalization in the middle."""
    target = find_board("ecp5")
    graph = fix(residual(rng))
    plan = schedule(graph, target, target_fps=target.clock_mhz * 1e6 / cycles)
    [block] = [block for block in plan.blocks if block.op == "normalize"]
    assert block.layer.result_lanes >= 576 / cycles
    assert plan.interval <= cycles
    simulate(plan, graph).check(FRAMES, stall=0.3)


@pytest.mark.parametrize("bits", [4, 12, 16])
def test_other_widths(bits, fix, simulate, rng):
    graph = fix(of_pixels(rng), activation_bits=bits)
    plan = schedule(graph, find_board("ecp5"))
    simulate(plan, graph).check(3)


def test_block_cycles_are_the_spacing_of_its_pixels(fix, rng):
    target = find_board("ice40")
    plan = schedule(fix(alone(rng)), target)
    for spacing in SPACINGS:
        changed = with_folding(plan, target, "normalize", spacing=spacing, digits=1)
        assert changed.interval == changed.blocks[-1].cycles


def test_the_solver_takes_no_more_than_its_pixels_need(fix, rng):
    """A slow one where the rate allows it: its multipliers take fewer LUTs."""
    target = find_board("ecp5")
    graph = fix(of_pixels(rng))
    fast, slow = (
        schedule(graph, target, target_fps=target.clock_mhz * 1e6 / cycles)
        for cycles in (230, 2000)
    )
    taken = [
        next(block for block in plan.blocks if block.op == "normalize") for plan in (fast, slow)
    ]
    assert taken[0].folding.spacing <= taken[1].folding.spacing == max(SPACINGS)
    assert np.isclose(taken[1].cycles, slow.interval, rtol=1.0)
