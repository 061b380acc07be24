"""Networks of windows step by step: rows stay in line buffers; codes and cycles of accelerators."""

from dataclasses import replace

import numpy as np
import pytest
from changed_plans import with_blocks
from recurrent_graphs import delay_line
from temporal_graphs import TEMPORAL, Temporal, padded, random_temporal

from nnef_hw.architecture.kept_rows import find_kept_rows
from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.ir import Stage
from nnef_hw.parts import WindowPart
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import run_rtl
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

BOARD = "ulx3s_85f"


def stepwise(graph, rng, *, continued=False):
    """Return the network of a step, fixed."""
    how = StreamTime(2, continued)
    window, _ = how.window(simplify(graph))
    samples = {
        name: rng.normal(size=(10, *window.tensor(name).shape[1:])) for name in window.inputs
    }
    step, _ = how.steps(quantize(window, samples))
    assert step.stage == Stage.FIXED
    return step


@pytest.mark.parametrize("name", TEMPORAL)
def test_codes_and_cycles(name, simulate, rng):
    graph = stepwise(TEMPORAL[name](), rng)
    simulate(schedule(graph, find_board(BOARD)), graph).check(7)


def test_the_least_memory(simulate, rng):
    """Line buffers that hold no word more than a window spans make new rows wait."""
    t = Temporal("tight", 16, 4)
    t.conv(t.net.op("relu", t.conv("x", 8, 4)), 2, 2, dilation=3, name="y")
    graph = stepwise(t.net.build("y"), rng)
    plan = schedule(graph, find_board(BOARD))
    blocks = tuple(
        Block.of(layer, folding, block.device)
        for layer, block in zip(lower(graph).layers, plan.blocks, strict=True)
        for folding in [slowest(layer, block.device)]
    )
    assert any(block.buffer.depth == block.buffer.window.span for block in blocks)
    simulate(with_blocks(plan, blocks), graph).check(7)


def slowest(layer, device):
    """Return the folding of one row and one lane with the least memory."""
    small = [folding for folding in layer.foldings(device) if folding.shape["lanes"] == 1]
    folding = max(small, key=lambda folding: layer.cycles(folding, device))
    [buffer] = (part for part in layer.parts(folding, device) if isinstance(part, WindowPart))
    window = buffer.window
    return replace(folding, depth=max(2, 1 << (window.min_depth - 1).bit_length()))


def test_continued_borders(simulate, rng):
    graph = stepwise(padded(), rng, continued=True)
    simulate(schedule(graph, find_board(BOARD)), graph).check(7)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 200))]
)
def test_random_networks(seed, force, simulate, rng):
    """With stalls, of foldings that are forced."""
    target = find_board("ecp5")
    graph = stepwise(random_temporal(seed), rng)
    simulate(force(schedule(graph, target), graph, target), graph).check(5)


def test_states_of_windows_are_in_their_line_buffers(rng):
    graph = stepwise(TEMPORAL["causal"](), rng)
    plan = schedule(graph, find_board(BOARD))
    assert graph.states.keys() == find_kept_rows(graph).states
    assert not any(block.closes_loop for block in plan.blocks)
    assert {block.op for block in plan.blocks} == {"conv", "add"}
    # One row of a step, of a window of 16.
    assert plan.macs == 4 * 3 * 3 + 4 * 4 * 3 + 2 * 4


def test_branches_of_unlike_delay_wait_in_queues(rng):
    """Nothing goes round: each stream is taken once, and given some rows later."""
    graph = stepwise(TEMPORAL["unlike_branches"](), rng)
    plan = schedule(graph, find_board(BOARD))
    assert graph.states.keys() == find_kept_rows(graph).states
    delays = [block for block in plan.blocks if block.kind == "delay"]
    assert [block.layer.count // block.layer.frame for block in delays] == [4]
    assert all(block.leads and not block.closes_loop for block in delays)


def test_a_shift_register_of_a_models_own_is_kept_as_well(rng):
    graph = simplify(delay_line())
    fixed = quantize(graph, {"x": rng.normal(size=(8, 6, 2, 1))})
    assert find_kept_rows(fixed).states == {"old"}
    [block] = schedule(fixed, find_board(BOARD)).blocks
    assert (block.buffer.window.history, block.buffer.window.height) == (2, 1)


def channels_last(back=(0, 2, 3, 1)):
    """Return a filter whose state has its channels last, as TensorFlow Lite's variables have."""
    rng = np.random.default_rng(0)
    net = GraphBuilder("channels_last")
    x = net.op("tanh", net.input("x", (1, 2, 1, 1)))
    old = net.op("transpose", net.state("old", np.zeros((1, 2, 1, 2))), axes=[0, 3, 1, 2],
                 shape=(1, 2, 2, 1), name="image")  # fmt: skip
    both = net.op("concat", old, x, name="both", axis=2)
    cut = {"axes": [2], "begin": [1], "end": [3], "stride": [1], "shape": (1, 2, 2, 1)}
    shifted = net.op("slice", both, name="shifted", **cut)
    net.update("old", net.op("transpose", shifted, axes=list(back), shape=(1, 2, 1, 2)))
    net.conv(both, rng.normal(size=(3, 2, 3, 1)), name="y")
    return net.build("y")


def test_states_with_their_channels_last_are_kept(simulate, rng):
    graph = quantize(simplify(channels_last()), {"x": rng.normal(size=(8, 6, 2, 1, 1))})
    assert find_kept_rows(graph).states == {"old"}
    simulate(schedule(graph, find_board(BOARD)), graph).check(5)


def test_states_whose_rows_change_places_go_round(simulate, rng):
    """Rows and channels are as many, so that only their places tell."""
    graph = simplify(channels_last(back=(0, 1, 3, 2)))
    graph = quantize(graph, {"x": rng.normal(size=(8, 6, 2, 1, 1))})
    assert not find_kept_rows(graph).states
    simulate(schedule(graph, find_board(BOARD)), graph).check(5)


def filtered(*, read=False, initial=0.0, function=None, padding=(0, 0)):
    """Return a filter over three steps whose rows are read elsewhere, or begin with numbers."""
    net = GraphBuilder("filter")
    x = net.input("x", (1, 2, 1, 1))
    old = net.state("old", np.zeros((1, 2, 2, 1)) + initial)
    both = net.op("concat", old, x, name="both", axis=2)
    cut = {"axes": [2], "begin": [1], "end": [3], "stride": [1], "shape": (1, 2, 2, 1)}
    net.update("old", net.op("slice", both, name="shifted", **cut))
    windows = net.op(function, both) if function else both
    rng = np.random.default_rng(0)
    y = net.op(
        "conv", windows, rng.normal(size=(3, 2, 3, 1)), np.zeros((1, 3)), name="y",
        border="constant", padding=[padding, (0, 0)], stride=[1, 1], dilation=[1, 1], groups=1,
    )  # fmt: skip
    if not read:
        return net.build(y)
    pool = {"size": [1, 1, 3, 1], "stride": [1] * 4, "dilation": [1] * 4}
    net.op("max_pool", net.op("tanh", both), name="largest", border="constant",
           padding=[(0, 0)] * 4, **pool)  # fmt: skip
    return net.build(y, "largest")


@pytest.mark.parametrize(
    "options",
    [
        {"read": True}, {"initial": 0.5}, {"function": "tanh"}, {"padding": (0, 1)},
        {"initial": np.arange(4).reshape(1, 2, 2, 1) / 4},
    ],
    ids=["read", "of other codes", "through a function", "padded", "of several codes"],
)  # fmt: skip
def test_other_states_go_round(options, simulate, rng):
    """What a line buffer cannot keep is streamed, with the same codes."""
    graph = quantize(simplify(filtered(**options)), {"x": rng.normal(size=(8, 6, 2, 1, 1))})
    assert not find_kept_rows(graph).states
    plan = schedule(graph, find_board(BOARD))
    assert any(block.closes_loop for block in plan.blocks)
    simulate(plan, graph).check(5)


def test_an_output_of_rows_of_steps_before_is_refused(rng):
    """It would leave before its step begins."""
    t = Temporal("late", 12)
    first = t.conv("x", 2, 3, name="first")
    t.net.op("relu", t.rows("x", 0, 6), name="late")
    [error] = Streaming().problems(stepwise(t.net.build(first, "late"), rng))
    assert "output 'late' depends on no input of its step" in str(error)


@pytest.mark.verilator
def test_sequences_with_resets_and_stalls(rng):
    """After a reset the rows above are again what they were at first."""
    graph = stepwise(TEMPORAL["unlike_branches"](), rng)
    plan = schedule(graph, find_board(BOARD))
    qtype = graph.tensor("x").qtype
    codes = {"x": rng.integers(qtype.lo, qtype.hi + 1, (6, 40, *graph.tensor("x").shape[1:]))}
    expected = run_fixed(graph, codes)
    verilog = to_verilog(Accelerator(plan, graph))
    for stall in (0.0, 0.4):
        found = run_rtl(verilog, plan, graph, codes, stall=stall)
        [result] = graph.outputs
        np.testing.assert_array_equal(found.codes[result], expected[result])
