"""What the engine refuses: the place, the reason, a remedy."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.layers.formats import ANYWHERE, Image, Shape
from nnef_hw.engine.layers.pieces import move_piece, nest_of
from nnef_hw.engine.memory.store import FlashStore
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.shortage import LUT_SHARE
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.ir import Reordering
from nnef_hw.passes import simplify
from nnef_hw.testing import GraphBuilder

ENGINE = SharedArray()


def refused(builder):
    return [str(error) for error in ENGINE.problems(simplify(builder.build()))]


@pytest.fixture
def builder():
    builder = GraphBuilder()
    builder.input("x", (1, 4, 4, 4))
    return builder


def test_states_hide_nothing(builder, rng):
    """What else is refused is told too."""
    kept = builder.state("kept", np.zeros((1, 4, 4, 4)))
    builder.update(kept, builder.op("add", "x", kept, name="total"))
    joined = builder.op("concat", builder.conv("total", rng.normal(size=(3, 4, 1, 1))), "total",
                        axis=1, shape=[1, 7, 4, 4], name="joined")  # fmt: skip
    builder.conv(joined, rng.normal(size=(2, 7, 1, 1)), name="y")
    graph = simplify(builder.build("y", "kept"))
    texts = [str(error) for error in ENGINE.problems(graph)]
    assert len(texts) == 2
    assert "output 'kept' is what the step before left in state 'kept'" in texts[0]
    assert "concat 'joined'" in texts[1]


def test_operands_that_are_no_reason(builder, rng):
    """One that is broadcast is repeated first, a constant one is written first."""
    x = builder.conv("x", rng.normal(size=(4, 4, 1, 1)))
    y = builder.pool("avg_pool", x, 4)
    total = builder.op("add", x, y, name="sum")
    builder.op("add", total, rng.normal(size=(1, 4, 4, 4)), name="more")
    assert refused(builder) == []


def test_codes_that_do_not_fill_words(builder, rng):
    """Three channels are not the beginning of the word with the fourth one."""
    x = builder.conv("x", rng.normal(size=(3, 4, 1, 1)))
    builder.op("concat", x, "x", axis=1, shape=[1, 7, 4, 4], name="joined")
    [joined] = refused(builder)
    assert "concat 'joined': channels of an operand before others are no multiple of 4" in joined


@pytest.mark.parametrize(
    ("channels", "into", "works"),
    [(2, 32, True), (2, 4, True), (6, 3, True), (6, 12, True), (6, 32, False)],
)
def test_streams_of_other_pixels(channels, into, works):
    """The codes of a word are whole loops, or a part of one."""
    volume = 16 * channels
    target = Image(1, volume // into, into)
    piece = move_piece(Image(1, 16, channels), target, Reordering((1, 1, volume), (0, 1, 2)))
    assert (piece is not None and nest_of(piece, 4, ANYWHERE) is not None) == works


def test_sums_without_factors(builder, rng, fix, monkeypatch):
    """None of random scales has been found: shorter ones than any has are tried."""
    monkeypatch.setattr("nnef_hw.engine.layers.sum_factors._MOST_BITS", 9)
    x = builder.conv("x", rng.normal(size=(4, 4, 1, 1)))
    builder.op("add", x, builder.conv(x, rng.normal(size=(4, 4, 1, 1))), name="total")
    graph = builder.build()
    assert not ENGINE.problems(fix(graph))
    [error] = ENGINE.problems(fix(graph, rounding="tflite"))
    assert "add 'total': no factors of 26 bits round as TensorFlow Lite does" in str(error)


def test_wide_codes(builder, rng, fix):
    builder.conv("x", rng.normal(size=(4, 4, 1, 1)), name="wide")
    texts = [str(error) for error in ENGINE.problems(fix(builder.build(), activation_bits=12))]
    assert len(texts) == 2
    assert all("has codes of 12 bits" in text for text in texts)


@pytest.fixture
def large(rng, fix):
    builder = GraphBuilder("large")
    x = builder.input("x", (1, 4096))
    builder.op("linear", x, rng.normal(size=(40, 4096)), np.zeros((1, 40)))
    return fix(builder.build(), weight_rounding="nearest", correct_bias=False)


def test_what_does_not_fit(large):
    board = find_board("ice40_hx8k_b_evn")
    match = r"'large' does not fit ice40_hx8k_b_evn .* block RAMs of 32; 163,840 bytes of weights"
    with pytest.raises(TargetError, match=match):
        ENGINE.plan(large, board)
    assert not ENGINE.may_fit(large, board)
    assert ENGINE.may_fit(large, find_board("icebreaker"))


def test_codes_that_do_not_fit(rng, fix):
    """Weights may come from flash, codes have to be on the chip."""
    builder = GraphBuilder("high")
    builder.conv(builder.input("x", (1, 24, 64, 60)), rng.normal(size=(4, 24, 1, 1)), name="y")
    graph = fix(builder.build(), weight_rounding="nearest", correct_bias=False)
    match = (
        r"block RAMs of 30.*107,520 bytes of codes, as layer 'y' runs, are kept in block RAM; its "
        r"single-port RAMs hold 131,072, half of them what a layer reads"
    )
    with pytest.raises(TargetError, match=match):
        ENGINE.plan(graph, find_board("icebreaker"))


def test_plans(builder, rng, fix):
    """The fastest array that fits, and the smallest that is fast enough."""
    builder.conv("x", rng.normal(size=(8, 4, 3, 3)), padding=1)
    graph = fix(builder.build())
    board = find_board("ulx3s_85f")
    plan = ENGINE.plan(graph, board)
    slow = ENGINE.plan(graph, board, target_fps=1)
    assert slow.multipliers == 16 < plan.multipliers
    assert plan.interval < slow.interval
    with pytest.raises(ValueError, match="not one of this model"):
        ENGINE.read_plan({**plan.to_json(), "interval": 1}, graph)
    with pytest.raises(TargetError, match="no array that fits takes fewer than"):
        ENGINE.plan(graph, board, target_fps=1e9)
    with pytest.raises(UsageError, match="--layer-counters"):
        ENGINE.plan(graph, board, layer_counters=True)


def test_fewer_rows_slide_where_cells_are_short(rng, fix):
    """As many as leave the fewest cycles; a plan that is read again has as many."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 8, 59, 1))
    weights = rng.normal(size=(8, 1, 12, 1))
    builder.conv(x, weights, padding=[(0, 0), (0, 0)], groups=8)
    graph, board = fix(builder.build()), find_board("icebreaker")
    rows, cycles, cells = [], [], board.device.lut
    while not rows or rows[-1] > 1:
        device = replace(board.device, lut=cells)
        plan = schedule_engine(graph, replace(board, device=device))
        rows.append(plan.design.program.slide_rows)
        cycles.append(plan.interval)
        assert plan.design.engine.array.slide_rows == rows[-1] <= plan.design.shape.sliding
        assert SharedArray().read_plan(json.loads(plan.dumps()), graph).dumps() == plan.dumps()
        cells = int((plan.resources.lut - 1) / LUT_SHARE)
    assert list(dict.fromkeys(rows)) == [4, 3, 2, 1]
    assert cycles == sorted(cycles)


def test_report(builder, rng, fix):
    x = builder.conv("x", rng.normal(size=(8, 4, 3, 3)), padding=1)
    builder.op("argmax_reduce", x, axes=[1])
    graph = fix(builder.build())
    board = find_board("ulx3s_85f")
    plan = ENGINE.plan(graph, board)
    timeline = ENGINE.timeline(plan)
    report = ENGINE.report(plan, graph, board, timeline)
    layer, tail = report.layers
    assert layer.macs == plan.macs == 16 * 8 * 4 * 9
    assert layer.cycles == layer.busy_cycles + layer.waiting_cycles
    assert (tail.multipliers, report.in_turn) == (0, True)
    assert sum(timeline.blocks[0].busy) == layer.busy_cycles
    assert sum(timeline.blocks[0].waiting) == layer.waiting_cycles
    assert sum(timeline.inputs[0].busy) == 16
    [work, _] = ENGINE.predict_work(plan, 1, 3, 4)
    assert (work.busy, work.waiting) == (2 * layer.busy_cycles, 2 * layer.waiting_cycles)
    assert work.busy + work.waiting + work.starved == 2 * plan.interval


def test_no_reader_is_made_for_more_weights_than_flash_has(large, monkeypatch):
    def reader(self, words, *others):
        raise ValueError(f"{words} words are beyond 24 bits of address")

    monkeypatch.setattr(FlashStore, "fits", lambda self, words: False)
    monkeypatch.setattr(FlashStore, "reader", reader)
    match = r"'large' does not fit icebreaker .* block RAMs of 30; 163,840 bytes of weights"
    with pytest.raises(TargetError, match=match):
        ENGINE.plan(large, find_board("icebreaker"))


def test_layers_know_how_many_words_of_weights_they_have(builder, rng, fix):
    x = builder.conv(builder.input("x", (1, 5, 6, 7)), rng.normal(size=(13, 5, 3, 2)), 0.0)
    x = builder.op("relu", builder.conv(x, rng.normal(size=(13, 1, 2, 2)), 0.0, groups=13))
    x = builder.pool("max_pool", x, 2)
    x = builder.reshape(x, [1, 26])
    builder.op("linear", x, rng.normal(size=(9, 26)), 0.0)
    network = lower(fix(builder.build()), find_board("ulx3s_85f").device)
    for shape in (Shape(4, 4), Shape(8, 4), Shape(12, 4), Shape(16, 8)):
        for layer in network.layers:
            assert layer.weight_words(shape) == len(layer.weights(shape)), layer.name
