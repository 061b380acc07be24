"""Results that leave cycles apart: one digit of a factor after the other, sums bit by bit."""

from dataclasses import replace

import numpy as np
import pytest
from attention_graphs import attention
from engine_graphs import first_that_fits, grown, planned
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.shortage import LUT_SHARE
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

BOARDS = ("icebreaker", "ulx3s_85f")


@pytest.fixture
def short_passes(rng, fix):
    """Return a fixed graph with sums of two tensors whose passes have a single word."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", (1, 4, 3, 3)), rng.normal(size=(6, 4, 1, 1)))
    y = builder.op("relu", builder.conv(x, rng.normal(size=(4, 6, 1, 1))))
    y = builder.op("tanh", builder.op("add", x, builder.conv(y, rng.normal(size=(6, 4, 1, 1)))))
    builder.conv(y, rng.normal(size=(5, 6, 3, 3)), rng.normal(size=(1, 5)))
    return fix(builder.build())


@pytest.mark.parametrize(
    ("cycles", "ring_words", "board"),
    few(
        [(cycles, words, board) for cycles in (4, 8) for words in (0, 64) for board in BOARDS],
        [(4, 0, "icebreaker"), (8, 64, "icebreaker"), (4, 64, "ulx3s_85f"), (8, 0, "ulx3s_85f")],
    ),
)
def test_passes_wait_for_results(short_passes, run_engine, cycles, ring_words, board):
    """Where they have fewer words than results take cycles; also those that nothing is added to."""
    options = {"ring_words": ring_words, "board": find_board(board)}
    fast, plan = (planned(short_passes, **options, result_cycles=n) for n in (1, cycles))
    engine = plan.design.engine
    assert engine.requantizer.cycles == engine.find(TensorSums).cycles == cycles
    assert engine.requantizer.stages < cycles
    assert plan.interval > fast.interval
    run_engine(plan, short_passes, frames=3)
    run_engine(plan, short_passes, frames=3, stall=0.3)


def test_long_passes_do_not_wait(rng, fix, run_engine):
    """A pass of as many words as its results take cycles: only the end of a layer is later."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 16, 4, 4))
    builder.conv(x, rng.normal(size=(8, 16, 3, 3)), padding=1)
    graph = fix(builder.build())
    fast, slow = (planned(graph, result_cycles=n) for n in (1, 8))
    assert fast.interval < slow.interval < 1.02 * fast.interval
    run_engine(slow, graph)


@pytest.mark.parametrize("ring_words", [0, 64])
def test_attention(rng, fix, run_engine, ring_words):
    graph = fix(attention(rng, 5, 8, 2))
    plan = planned(graph, board=find_board("icebreaker"), ring_words=ring_words, result_cycles=4)
    run_engine(plan, graph)


@pytest.mark.parametrize("cycles", [4, 8])
def test_places_wait_in_registers_and_steps_are_short_without_gaps(rng, fix, run_engine, cycles):
    """Two block RAMs fewer: one of places, one of rows of the program."""
    graph = fix(attention(rng, 5, 8, 2))
    board = find_board("icebreaker")
    plain, plan = (
        planned(graph, board=board, result_cycles=cycles, dense=dense) for dense in (False, True)
    )
    engine, layout = plan.design.engine, plan.design.engine.layout
    assert engine.requantizer.holds_places
    assert engine.requantizer.held_places(engine) == 2
    assert not engine.requantizer.memories(engine)
    steps = [layout.widths[f"{name}_step"] for name in ("read", "write", "weight")]
    places = [layout.widths[name] for name in ("read", "write", "weight")]
    assert sum(steps) < sum(places)
    assert layout.row_bits % 16 == 0
    assert plan.resources.bram <= plain.resources.bram - 2
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


MORE = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 40)]


@pytest.mark.parametrize("seed", [0, 1, 2, *MORE])
def test_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng([seed, 30])

    def attempt():
        graph = fix(grown(rng, (2, 6), ("mul", "max", "min")), calibration="minmax")
        board = find_board(BOARDS[seed % 2])
        rows, lanes = [(4, 4), (8, 4), (8, 8)][seed % 3]
        if not lower(graph, board.device).fits(lanes):
            return None
        ring_words = int(rng.choice([0, 64, 128]))
        cycles = int(rng.choice([4, 8]))
        plan = planned(graph, rows, lanes, ring_words, board, result_cycles=cycles)
        assert plan.design.program.parts
        return plan, graph

    plan, graph = first_that_fits(attempt)
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, stall=0.3)


def test_pieces_that_do_not_belong_together(short_passes):
    engine = planned(short_passes, result_cycles=4).design.engine
    with pytest.raises(ValueError, match="as many cycles as other results"):
        replace(engine, requantizer=replace(engine.requantizer, cycles=8))
    with pytest.raises(ValueError, match="digits for 4 cycles, the last of which rounds"):
        replace(engine.requantizer, digit_bits=1)
    with pytest.raises(ValueError, match="holds places of results that are apart only"):
        replace(engine.requantizer, cycles=1, holds_places=True)
    with pytest.raises(ValueError, match="leave one by one"):
        replace(engine, array=replace(engine.array, results=2))


def test_only_where_logic_cells_are_short(short_passes):
    """On a device with few of them results leave apart; where all have room, one by one."""
    board = find_board("icebreaker")
    roomy = schedule_engine(short_passes, board)
    assert roomy.design.result_cycles == 1
    least = int((roomy.resources.lut - 50) / LUT_SHARE)
    small = replace(board, device=replace(board.device, lut=least))
    assert schedule_engine(short_passes, small, clock_mhz=24.0).design.result_cycles == 4
    plan = schedule_engine(short_passes, small)
    assert plan.design.result_cycles == 8
    assert plan.resources.lut < roomy.resources.lut
    assert plan.interval > roomy.interval
    assert EnginePlan.of(plan.design, small, None).to_json()["result_cycles"] == 8


@pytest.mark.parametrize(("rows", "lanes"), [(2, 2), (4, 2)])
def test_words_of_two_codes(short_passes, run_engine, rows, lanes):
    board = find_board("icebreaker")
    plan = planned(short_passes, rows, lanes, 64, board, result_cycles=8)
    run_engine(plan, short_passes, frames=3)
    run_engine(plan, short_passes, frames=3, stall=0.3)


@pytest.fixture
def no_sums(rng, fix):
    """Return a fixed graph that adds no tensors."""
    builder = GraphBuilder()
    x = builder.op(
        "relu", builder.conv(builder.input("x", (1, 4, 3, 3)), rng.normal(size=(6, 4, 1, 1)))
    )
    builder.conv(x, rng.normal(size=(6, 1, 3, 3)), groups=6)
    return fix(builder.build())


def test_two_codes_that_leave_four_cycles_apart(no_sums, run_engine):
    plan = planned(no_sums, 2, 2, 64, find_board("icebreaker"), result_cycles=4)
    run_engine(plan, no_sums, frames=3)
    run_engine(plan, no_sums, frames=3, stall=0.3)


@pytest.mark.parametrize(("name", "cycles"), [("short_passes", [8, 1]), ("no_sums", [8, 4, 1])])
def test_the_smallest_array_has_fewer_cells_at_a_rate(name, cycles, request):
    """As slow as the rate allows; but sums bit by bit take longer than two codes of 4 cycles."""
    graph, board = request.getfixturevalue(name), find_board("icebreaker")
    rate, luts = 1000.0, []
    for each in cycles:
        plan = schedule_engine(graph, board, clock_mhz=12.0, target_fps=rate)
        assert (plan.design.shape[:2], plan.design.result_cycles) == ((2, 2), each)
        rate = 12e6 / (plan.interval - 1)
        luts.append(plan.resources.lut)
    assert luts == sorted(set(luts))
