"""The estimate of an engine, and what synthesis says."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.testing import GraphBuilder


@pytest.mark.synth
@pytest.mark.nightly
@pytest.mark.parametrize("board", ["icebreaker", "ulx3s_25f", "ulx3s_85f"])
def test_estimate_is_within_10_percent(board, script, fix, rng, tmp_path):
    """On an ECP5 multipliers make two products, some of them in logic on the smaller one."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 8, 12, 12]), rng.normal(size=[16, 8, 3, 3]), padding=[(1, 1)] * 2)
    other = g.conv(x, rng.normal(size=[16, 16, 3, 3]), padding=[(1, 1)] * 2)
    x = g.op("relu", g.op("add", x, other))
    x = g.reshape(g.pool("max_pool", x, 2), [1, 576])
    graph = fix(g.build(g.op("linear", x, rng.normal(size=[10, 576]), np.zeros((1, 10)))))
    plan = schedule_engine(graph, find_board(board))
    assert (plan.design.engine.array.in_logic > 0) == (board == "ulx3s_25f")
    found = script.measure(EngineAccelerator(plan), find_board(board), tmp_path)

    estimate = plan.resources
    error = (estimate.lut - plan.link.lut) / found.lut - 1
    assert abs(error) < 0.1, f"{error:+.1%}"
    assert found.dsp == estimate.dsp
