"""The estimate of a whole accelerator, and what synthesis says."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


@pytest.mark.synth
@pytest.mark.parametrize(
    "board",
    [
        pytest.param("icebreaker", marks=pytest.mark.nightly),
        pytest.param("ulx3s_85f", marks=pytest.mark.nightly),
        "tang_nano_20k",
        pytest.param("tang_primer_25k", marks=pytest.mark.nightly),
        pytest.param("arty_a7_100", marks=pytest.mark.nightly),
    ],
)
def test_whole_accelerator_is_within_15_percent(board, script, fix, rng, tmp_path):
    g = GraphBuilder()
    weights = rng.normal(size=[6, 2, 3, 3])
    x = g.conv(g.input("x", [1, 2, 12, 12]), weights, rng.normal(size=[1, 6]), padding=[(1, 1)] * 2)
    x = g.reshape(g.pool("max_pool", g.op("relu", x), 2), [1, 216])
    graph = fix(g.build(g.op("linear", x, rng.normal(size=[10, 216]), np.zeros((1, 10)))))
    target = find_board(board)
    plan = schedule(graph, target, target_fps=4000)
    found = script.measure(Accelerator(plan, graph), target, tmp_path)

    estimate = plan.resources
    link_lut = target.link_lut
    error = (estimate.lut - link_lut) / found.lut - 1
    assert abs(error) < 0.15, f"{error:+.1%}"
    assert found.dsp == estimate.dsp - plan.link.dsp > 0
    assert found.bram == estimate.bram - plan.link.bram > 0
