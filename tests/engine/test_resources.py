"""The estimate of an engine, and what synthesis says."""

import numpy as np
import pytest
from engine_graphs import BOARD, planned

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


@pytest.mark.synth
@pytest.mark.nightly
def test_short_memories_are_in_lut_ram(script, fix, rng, tmp_path):
    """Matrices, copies of constants and delay lines; as synthesis sees it."""
    g = GraphBuilder()
    x = g.input("x", [1, 12, 16])
    y = g.op("matmul", x, rng.normal(size=(1, 16, 16)), transposeA=False, transposeB=False)
    scores = g.op("matmul", y, y, transposeA=False, transposeB=True)
    shares = g.op("softmax", g.op("mul", scores, 0.1), axes=[2])
    graph = fix(g.build(g.op("matmul", shares, y, transposeA=False, transposeB=False)))
    options = {"rows": 8, "lanes": 8, "results": 4, "ring_words": 64, "unit_ways": 2}
    plain, plan = (
        planned(graph, **options, lut_matrices=own, single_copy=own) for own in (False, True)
    )
    found = script.measure(EngineAccelerator(plan), BOARD, tmp_path)
    assert found.bram == plan.design.engine.resources(BOARD.device).bram
    assert plain.resources.bram - plan.resources.bram > 8
    estimate = plan.resources.lut - plan.link.lut
    assert abs(estimate / found.lut - 1) < 0.15
