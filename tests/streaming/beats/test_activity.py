"""What blocks do over a steady frame agrees with the Plan."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.streaming.beats.activity import make_timeline
from nnef_hw.streaming.beats.beats import simulate_beats, trace_beats
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

TARGET = find_board("ulx3s_85f")


def conv(g, x, shape, rng, groups=1):
    """Add a convolution that keeps the image's extents."""
    channels, _, kernel, _ = shape
    pad = [(kernel // 2, kernel // 2)] * 2
    return g.op(
        "conv", x, rng.normal(size=shape), rng.normal(size=[1, channels]), border="constant",
        padding=pad, stride=[1, 1], dilation=[1, 1], groups=groups,
    )  # fmt: skip


@pytest.fixture
def residual(fix, rng):
    g = GraphBuilder("residual")
    x = g.op("relu", conv(g, g.input("x", [1, 3, 8, 8]), (8, 3, 3, 3), rng))
    y = g.op("relu", conv(g, x, (8, 1, 3, 3), rng, groups=8))
    y = conv(g, y, (8, 8, 1, 1), rng)
    pooled = g.op("mean_reduce", g.op("add", x, y), axes=[2, 3])
    return fix(g.build(g.reshape(pooled, [1, 8])))


@pytest.fixture
def plan(residual, one_code_per_beat):
    return schedule(residual, TARGET)


def test_an_array_takes_the_words_of_its_passes(plan):
    for block, activity in zip(plan.blocks, make_timeline(plan).blocks, strict=True):
        if block.buffer is not None:
            window = block.buffer.window
            words = window.out_pixels * window.passes * block.pass_words
            assert sum(activity.busy) == words, block.name
        else:
            image = block.layer.image
            codes = image.beats if image is not None else 8 * 8 * 8
            assert sum(activity.busy) == codes, block.name


def test_steps_fill_the_interval_and_no_more(plan):
    timeline = make_timeline(plan)
    assert timeline.interval == plan.interval
    count = -(-plan.interval // timeline.step)
    for activity in (*timeline.inputs, *timeline.blocks):
        assert len(activity.busy) == len(activity.waiting) == count
        occupied = np.add(activity.busy, activity.waiting)
        assert occupied.max() <= timeline.step
        assert occupied.sum() <= timeline.interval
        assert occupied[-1] <= plan.interval - timeline.step * (count - 1)
    assert sum(timeline.inputs[0].busy) == plan.inputs[0].beats


def test_recording_changes_no_cycle(plan):
    times, traces = trace_beats(plan.blocks, plan.inputs, plan.outputs)
    assert times == simulate_beats(plan.blocks, plan.inputs, plan.outputs)
    for trace in traces.values():
        assert (np.subtract(trace.accepted, trace.offered) >= 0).all()
        assert (np.diff(trace.accepted) >= 0).all()


def test_slow_reader_makes_its_writer_wait(plan):
    """The layer behind gives a result every 40 cycles; the one before it then cannot go on."""
    slow = [
        block.with_folding(digit_stages=1, digit_bits=1) if n == 2 else block
        for n, block in enumerate(plan.blocks)
    ]
    times = simulate_beats(slow, plan.inputs, plan.outputs)
    waits = [
        sum(activity.waiting)
        for activity in make_timeline(
            replace(plan, blocks=tuple(slow), interval=times.interval)
        ).blocks
    ]
    assert waits[2] > times.interval // 2
    assert sum(make_timeline(plan).blocks[2].waiting) < plan.interval // 10


def test_timeline_is_deterministic(plan):
    assert make_timeline(plan) == make_timeline(plan)


def test_concat_takes_the_codes_of_its_operands_in_turn(fix, rng):
    g = GraphBuilder("concat")
    x = g.input("x", [1, 3, 4, 4])
    y = g.op("tanh", x)
    fixed = fix(g.build(g.op("concat", x, y, axis=1, shape=[1, 6, 4, 4])))
    plan = schedule(fixed, TARGET)
    (index,) = [n for n, block in enumerate(plan.blocks) if block.kind == "concat"]
    timeline = make_timeline(plan)
    lanes = plan.blocks[index].layer.operand_lanes
    assert sum(timeline.blocks[index].busy) * lanes == 2 * 3 * 4 * 4
    assert timeline.blocks[index].waiting == (0,) * len(timeline.blocks[index].busy)


def test_move_takes_every_code_once(fix, rng):
    g = GraphBuilder("pad")
    x = g.op("tanh", g.input("x", [1, 3, 4, 4]))
    padding = [(0, 0), (0, 0), (1, 2), (2, 1)]
    padded = g.op("pad", x, padding=padding, border="constant", value=0.0)
    plan = schedule(fix(g.build(g.op("tanh", padded))), TARGET)
    timeline = make_timeline(plan)
    (index,) = [n for n, block in enumerate(plan.blocks) if block.kind == "pad"]
    lanes = plan.blocks[index].layer.operand_lanes
    assert sum(timeline.blocks[index].busy) * lanes == 3 * 4 * 4
