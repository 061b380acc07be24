"""Designs for frames that wait for each other: the shortest way of a lone one."""

from dataclasses import replace

import numpy as np
import pytest
from step_graphs import step

from nnef_hw.boards import find_board
from nnef_hw.errors import ShortageError
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.search import latency
from nnef_hw.streaming.search.solver import schedule

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


def test_a_rate_is_one_of_steps_that_wait_for_each_other(fixed, plan):
    with pytest.raises(ShortageError, match=r"does not reach .* steps/s .* one behind the other"):
        schedule(
            fixed, TARGET, by_latency=True, target_fps=1.2 * plan.clock_mhz * 1e6 / plan.latency
        )
