"""Networks whose streams carry whole pixels: a result in every cycle."""

import json
from itertools import pairwise, product

import numpy as np
import pytest
from sweeps import few

from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import Target
from nnef_hw.streaming.filters.whole import MatrixFolding
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.search.ceiling import find_ceilings
from nnef_hw.streaming.search.headroom import find_headroom
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

RATE = find_board("ulx3s_85f").clock_mhz * 1e6
"""Inferences per second for which the board has a cycle each."""


def perceptron(rng, sizes, function="relu"):
    g = GraphBuilder("mlp")
    x = g.input("x", [1, sizes[0]])
    for n, (inputs, outputs) in enumerate(pairwise(sizes)):
        weights, bias = rng.normal(size=[outputs, inputs]), rng.normal(size=[1, outputs])
        x = g.op("linear", x, weights, bias, name=f"fc{n}")
        if n + 2 < len(sizes):
            x = g.op(function, x, name=f"{function}{n}")
    return g.build(x)


def pixels(rng):
    """A 1 x 1 convolution of an image, and a function of its codes."""
    g = GraphBuilder("pixels")
    x = g.conv(g.input("x", [1, 3, 4, 5]), rng.normal(size=[6, 3, 1, 1]), name="mix")
    return g.build(g.op("tanh", x, name="squash"))


NETWORKS = {
    "relu": (lambda rng: perceptron(rng, [9, 12, 7, 5]), {}),
    "sigmoid": (lambda rng: perceptron(rng, [4, 6, 3], "sigmoid"), {"activation_bits": 6}),
    "powers of two": (
        lambda rng: perceptron(rng, [16, 8, 5]), {"power_of_two": True, "weight_bits": 4},
    ),
    "signed": (lambda rng: perceptron(rng, [5, 4, 3], "tanh"), {"symmetric": True}),
    "image": (pixels, {}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("network", "engine"),
    few(
        list(product(NETWORKS, ["pysim", "verilator"])),
        # Each network once; one of powers of two has the same functions as that of ReLUs.
        [*((name, "pysim") for name in ("sigmoid", "signed", "image")),
         ("powers of two", "verilator")],
    ),
)  # fmt: skip
def test_gives_a_pixel_per_cycle(network, engine, fix, rng, simulate):
    make, scheme = NETWORKS[network]
    graph = fix(make(rng), **scheme)
    plan = schedule(graph, find_board("ulx3s_85f"), target_fps=RATE / 20)
    plan = schedule(graph, find_board("ulx3s_85f"), target_fps=RATE / plan.outputs[0].beats)
    pixels = int(np.prod(plan.inputs[0].image[:2]))
    assert plan.interval == pixels
    assert [port.beats for port in (*plan.inputs, *plan.outputs)] == [pixels, pixels]
    simulate(plan, graph, engine).check(40)


def test_nothing_is_faster_than_a_result_per_cycle(fix, rng):
    graph, target = fix(perceptron(rng, [9, 6, 5])), find_board("ulx3s_85f")
    plan = schedule(graph, target, target_fps=RATE)
    headroom = find_headroom(plan, lower(graph), target.device)
    assert (headroom.wanted, headroom.cycles) == (1, 1)
    assert headroom.limits == headroom.changes == headroom.lacking == ()
    ceilings = find_ceilings(lower(graph), [target, find_board("icebreaker")], plan.blocks)
    assert [ceiling.interval for ceiling in ceilings.values()] == [1, 9]


def test_plan_is_read_back(fix, rng):
    graph = fix(perceptron(rng, [9, 6, 5]))
    plan = schedule(graph, find_board("ulx3s_85f"), target_fps=RATE)
    again = StreamingPlan.from_json(json.loads(plan.dumps()), lower(graph))
    assert again.dumps() == plan.dumps()
    assert again.inputs == plan.inputs
    assert [port.lanes for port in (*again.inputs, *again.outputs)] == [9, 5]


def test_only_a_rate_asks_for_whole_pixels(fix, rng):
    graph = fix(perceptron(rng, [9, 6, 5]))
    plan = schedule(graph, find_board("ulx3s_85f"))
    assert (plan.interval < 9, plan.inputs[0].lanes) == (True, 3)
    assert schedule(graph, find_board("ulx3s_85f"), target_fps=RATE / 9).inputs[0].lanes == 1
    # a few codes per beat are enough where arrays are
    plan = schedule(graph, find_board("ulx3s_85f"), target_fps=RATE / 8)
    assert plan.inputs[0].lanes == 3
    assert plan.interval <= 8
    plan = schedule(graph, find_board("ulx3s_85f"), target_fps=RATE / 2)
    assert plan.interval == 1
    assert all(isinstance(block.folding, MatrixFolding) for block in plan.blocks)
    assert plan.mac_utilization == pytest.approx(1.0)


def test_says_what_rate_there_is(fix, rng):
    graph = fix(perceptron(rng, [9, 6, 5]))
    with pytest.raises(
        TargetError,
        match=r"no foldings that fit together take fewer than 1 cycles; relu0 alone takes 1",
    ):
        schedule(graph, find_board("ulx3s_85f"), target_fps=2 * RATE)
    with pytest.raises(TargetError, match=r"fewer than \d\d+ cycles"):
        schedule(fix(perceptron(rng, [16, 30, 16])), find_board("icebreaker"), target_fps=12e6)


def test_says_what_a_result_per_cycle_would_take(fix, rng):
    graph = fix(perceptron(rng, [16, 64, 32, 32, 5]))
    with pytest.raises(TargetError, match=r"; for 1 it takes at least [\d,]+ LUTs, .* more than"):
        schedule(graph, find_board("ulx3s_85f"), target_fps=RATE)


def test_says_why_streams_do_not_carry_whole_pixels(fix, rng):
    large = fix(perceptron(rng, [16, 64, 32]))
    with pytest.raises(TargetError, match="relu0 has no folding for them on up5k"):
        schedule(large, find_board("icebreaker"), target_fps=12e6)


def test_beats_are_no_wider_than_the_host_link_says(fix, rng):
    graph = fix(perceptron(rng, [300, 2]), power_of_two=True, weight_bits=2)
    with pytest.raises(
        TargetError, match=r"fewer than 300 cycles.*the host link takes at most 255 bytes"
    ):
        schedule(graph, find_board("ulx3s_85f"), target_fps=RATE)
    ip = Target("none", "IP", find_board("ulx3s_85f").device, clock_mhz=60.0, link_lut=0)
    plan = schedule(graph, ip, clock_mhz=60, target_fps=60e6)
    assert (plan.interval, plan.inputs[0].lanes) == (1, 300)


def test_half_of_it_takes_other_layers(fix, rng):
    """A layer that has no such hardware keeps all streams narrow."""
    g = GraphBuilder("classes")
    x = g.op("linear", g.input("x", [1, 4]), rng.normal(size=[5, 4]), np.zeros((1, 5)))
    graph = fix(g.build(g.op("softmax", x, name="classes", axes=[1])))
    with pytest.raises(TargetError, match="no foldings that fit together"):
        schedule(graph, find_board("ulx3s_85f"), target_fps=RATE)


def test_requantizers_are_part_of_the_sums(fix, rng):
    graph = fix(perceptron(rng, [9, 6, 5]))
    plan = schedule(graph, find_board("ulx3s_85f"), target_fps=RATE)
    for block, layer in zip(plan.blocks, lower(graph).layers, strict=True):
        [part] = block.parts
        assert isinstance(layer.requant, Requant)
        assert part.in_logic == part.multipliers == layer.weights.size
        # the pipeline is as deep as its registers, and the queue has room for it
        assert part.depth > part.latency == len(part.cuts.places) + 2


@pytest.fixture
def tagger(fix, rng):
    """A classifier of jets' size, with 6-bit weights and codes and powers of two as scales."""
    graph = perceptron(rng, [16, 64, 32, 32, 5])
    return fix(graph, power_of_two=True, weight_bits=6, activation_bits=6)


def test_jet_tagger_fits_an_85f(tagger):
    target = find_board("ulx3s_85f")
    plan = schedule(tagger, target, target_fps=RATE)
    assert plan.interval == 1
    assert plan.resources.lut <= target.device.lut
    assert plan.resources.dsp == 0


def test_registers_are_as_far_apart_as_the_clock_allows(tagger):
    """A slower clock takes fewer of them, and so fewer cycles; the adders are the same."""
    target = find_board("ulx3s_85f")
    found = []
    for clock in (30, 50, 87.5):
        plan = schedule(tagger, target, clock_mhz=clock, target_fps=clock * 1e6)
        parts = [block.parts[0] for block in plan.blocks]
        for part in parts:
            adders = target.device.family.adders
            assert part.chained == adders.chained(clock, max(part.graph.widths))
        found.append((plan.latency, plan.resources.ff))
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    assert found[1][0] <= 16


@pytest.mark.nightly
def test_jet_tagger_gives_a_result_per_cycle(tagger, simulate):
    plan = schedule(tagger, find_board("ulx3s_85f"), target_fps=RATE)
    simulate(plan, tagger, "verilator").check(500)
