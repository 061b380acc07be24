"""Designs for frames that wait for each other: the shortest way of a lone one."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from step_graphs import step

from nnef_hw.boards import find_board
from nnef_hw.errors import ShortageError
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.search import latency
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

TARGET = find_board("ulx3s_85f")


@pytest.fixture(scope="module")
def fixed():
    rng = np.random.default_rng(5)
    positions = np.tile(np.arange(8), (6, 3))[..., None]
    samples = {"token": rng.integers(0, 11, positions.shape), "position": positions}
    return quantize(simplify(step(rng, heads=2, size=2)), samples)


@pytest.fixture(scope="module")
def plan(fixed):
    return schedule(fixed, TARGET, by_latency=True)


@pytest.fixture
def perceptron(fix, rng):
    g = GraphBuilder("perceptron")
    x = g.input("x", [1, 6])
    for inputs, outputs in pairwise((6, 48, 5)):
        x = g.op("linear", x, rng.normal(size=[outputs, inputs]), rng.normal(size=[1, outputs]))
        x = g.op("relu", x)
    return fix(g.build(x))


def test_a_lone_frame_passes_sooner_in_predicted_cycles(fixed, plan, simulate):
    assert plan.latency < 0.93 * schedule(fixed, TARGET).latency
    assert plan.resources.lut <= TARGET.device.lut * 0.95
    simulate(plan, fixed).check(20)


def test_what_is_short_bounds_the_latency(fixed, plan):
    few = replace(TARGET, device=replace(TARGET.device, lut=plan.resources.lut * 3 // 4))
    less = schedule(fixed, few, by_latency=True)
    assert less.resources.lut < plan.resources.lut
    assert less.latency >= plan.latency


def test_a_design_stays_if_the_search_has_no_time(fixed, monkeypatch):
    monkeypatch.setattr(latency, "MOST_EVENTS", 0)
    monkeypatch.setattr(latency, "_starts", lambda blocks, *_: [list(blocks)])
    latencies = [schedule(fixed, TARGET, by_latency=wish).latency for wish in (True, False)]
    assert latencies[0] <= latencies[1]


def test_all_trials_share_the_time(perceptron, monkeypatch):
    """Plans with wider streams are many: there is one for each layer and width."""
    spent = []
    measured = latency._LatencySearch._latency

    def counted(search, blocks):
        before = search.events
        found = measured(search, blocks)
        spent.append(search.events - before)
        return found

    monkeypatch.setattr(latency._LatencySearch, "_latency", counted)
    monkeypatch.setattr(latency, "MOST_TRIALS", 1)
    schedule(perceptron, TARGET, by_latency=True)
    most, longest = sum(spent) // 2, max(spent)
    spent.clear()
    monkeypatch.setattr(latency, "MOST_EVENTS", most // 2)
    monkeypatch.setattr(latency, "MOST_WIDER_EVENTS", most // 2)
    schedule(perceptron, TARGET, by_latency=True)
    assert 0 < sum(spent) <= most + 8 * longest


def test_a_rate_is_one_of_steps_that_wait_for_each_other(fixed, plan):
    with pytest.raises(ShortageError, match=r"does not reach .* steps/s .* one behind the other"):
        schedule(
            fixed, TARGET, by_latency=True, target_fps=1.2 * plan.clock_mhz * 1e6 / plan.latency
        )


def test_streams_between_layers_get_wider(simulate, perceptron):
    """Codes of a hidden layer leave together: one by one they are most of the latency."""
    plan = schedule(perceptron, TARGET, by_latency=True)
    hidden, last = plan.blocks
    assert hidden.layer.result_lanes == last.layer.operand_lanes > 1
    assert (hidden.layer.operand_lanes, last.layer.result_lanes) == (1, 1)
    text = plan.dumps()
    assert StreamingPlan.from_json(json.loads(text), lower(perceptron)).dumps() == text
    simulate(plan, perceptron).check(12)


def test_streams_that_layers_make_equally_wide_get_wider_together(fix, rng, simulate):
    """A softmax between two layers of weights takes as many codes as it gives."""
    g = GraphBuilder("weighed")
    x = g.op("linear", g.input("x", [1, 6]), rng.normal(size=[48, 6]), np.zeros((1, 48)))
    x = g.op("softmax", x, axes=[1])
    graph = fix(g.build(g.op("linear", x, rng.normal(size=[5, 48]), np.zeros((1, 5)))))
    plan = schedule(graph, TARGET, by_latency=True)
    before, softmax, behind = (block.layer for block in plan.blocks)
    assert before.result_lanes == softmax.operand_lanes > 1
    assert softmax.result_lanes == behind.operand_lanes == softmax.operand_lanes
    assert plan.latency < schedule(graph, TARGET).latency
    simulate(plan, graph).check(12)
