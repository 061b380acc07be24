"""Batches: every layer runs for several frames, so that its weights are read once."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from engine_graphs import first_that_fits, grown, planned
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.layers.gather import GatherLayer
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.host.manifest import read_manifest
from nnef_hw.parts.engine.program import Kind
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.bench_device import bench_device
from nnef_hw.run.device import open_device
from nnef_hw.run.simulate import simulate
from nnef_hw.samples.samples import load_samples
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

ICEBREAKER = find_board("icebreaker")


def layers(rng, *sizes, end=None):
    """Return a network of linear layers."""
    builder = GraphBuilder("dense")
    x = builder.input("x", (1, sizes[0]))
    for n, (inputs, outputs) in enumerate(pairwise(sizes)):
        weights, biases = rng.normal(size=(outputs, inputs)), rng.normal(size=(1, outputs))
        x = builder.op("linear", x, weights, biases)
        if n < len(sizes) - 2:
            x = builder.op("relu", x)
    if end:
        builder.op(end, x, axes=[1])
    return builder.build()


@pytest.mark.parametrize("ring_words", [0, 32])
def test_codes_that_go_to_one_word_after_the_other(fix, rng, run_engine, ring_words):
    """Four heads of three features, joined: three words of a pixel, from frame to frame."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 3, 4, 5]), rng.normal(size=(3, 3, 1, 1)))
    x = g.reshape(g.op("transpose", x, axes=[0, 3, 2, 1]), [1, 5, 12])
    weights = g.constant("w", rng.normal(size=(1, 12, 4)), label="w")
    graph = fix(g.build(g.op("matmul", x, weights, transposeA=False, transposeB=False)))
    plan = planned(graph, ring_words=ring_words, batch=3)
    shape, layers = plan.design.shape, plan.design.layers
    assert any(any(x.packs(shape)) for x in layers if isinstance(x, GatherLayer))
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.4)


@pytest.mark.parametrize(("batch", "ring_words"), [(2, 0), (3, 32), (5, 64)])
def test_linear_layers(fix, rng, run_engine, batch, ring_words):
    """Weights come once for all frames of a batch."""
    graph = fix(layers(rng, 21, 18, 7, 30))
    alone = planned(graph, ring_words=ring_words)
    plan = planned(graph, ring_words=ring_words, batch=batch)
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)
    if ring_words:
        assert plan.design.packets.frame_words < 1.2 * alone.design.packets.frame_words
        assert plan.interval < alone.interval


@pytest.mark.parametrize("end", ["softmax", "argmax_reduce"])
def test_tails(fix, rng, run_engine, end):
    """They compute frame by frame."""
    graph = fix(layers(rng, 12, 9, 6, end=end))
    run_engine(planned(graph, ring_words=32, batch=3), graph)


@pytest.mark.parametrize(("ring_words", "stall"), few([(0, 0.0), (32, 0.3)], [(32, 0.3)]))
def test_several_inputs_and_outputs(fix, rng, run_engine, ring_words, stall):
    """They take turns, frame by frame."""
    builder = GraphBuilder()
    one, other = builder.input("x", (1, 3, 2, 2)), builder.input("y", (1, 5, 2, 2))
    first = builder.conv(one, rng.normal(size=(6, 3, 1, 1)))
    second = builder.conv(other, rng.normal(size=(6, 5, 1, 1)))
    graph = fix(builder.build(builder.op("add", first, second), builder.op("relu", second)))
    run_engine(planned(graph, ring_words=ring_words, batch=3), graph, stall=stall)


MORE = [pytest.param(seed, marks=pytest.mark.nightly) for seed in (0, 3, *range(4, 60))]


@pytest.mark.parametrize("seed", [1, 2, *MORE])
def test_random_networks(fix, run_engine, seed):
    """Windows, sums, codes that change their places; in block RAM and in single-port RAM."""
    rng = np.random.default_rng([seed, 16])
    graph = fix(grown(rng, (2, 5), ("mul", "max")))
    board = [find_board("ulx3s_85f"), ICEBREAKER][seed % 2]
    options = {"batch": int(rng.integers(2, 5)), "ring_words": [0, 128][seed // 2 % 2]}
    run_engine(planned(graph, board=board, **options), graph)


@pytest.mark.parametrize(
    ("alone", "saved", "stall"),
    few(
        [(1, 2 * 16, 0.3), (2, 2 * 16, 0.0), (4, 2 * (16 + 3 * 32), 0.0)],
        [(1, 2 * 16, 0.3), (4, 2 * (16 + 3 * 32), 0.0)],
    ),
)
def test_first_layers_run_frame_by_frame(fix, rng, run_engine, alone, saved, stall):
    """Tensors that others read have a place per frame, and the early ones only one."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4, 4, 4))

    def conv(x, outputs, channels, **options):
        weights = rng.normal(size=(outputs, channels, 3, 3))
        return builder.op("relu", builder.conv(x, weights, padding=1, **options))

    x = conv(x, 8, 4)
    y = conv(conv(x, 8, 8), 8, 8)
    x = conv(builder.op("add", x, y), 16, 8, stride=2)
    graph = fix(builder.build(conv(x, 16, 16), x))
    together = planned(graph, ring_words=64, batch=3)
    plan = planned(graph, ring_words=64, batch=3, frame_by_frame=alone)
    words = [sum(stay.words for stay in x.design.placement.stays) for x in (together, plan)]
    assert words[0] - words[1] == saved
    assert plan.design.packets.frame_words > together.design.packets.frame_words
    run_engine(plan, graph, stall=stall)


MORE_SPLIT = [pytest.param(seed, marks=pytest.mark.nightly) for seed in (0, 3, *range(4, 80))]


@pytest.mark.parametrize("seed", [1, 2, *MORE_SPLIT])
def test_random_networks_frame_by_frame(fix, run_engine, seed):
    """Several inputs and outputs, of which frames take turns, and what keeps its place or not."""
    rng = np.random.default_rng([seed, 18])

    def attempt():
        graph = fix(grown(rng, (3, 7), ("mul", "max")))
        board = [find_board("ulx3s_85f"), ICEBREAKER][seed % 2]
        options = {"batch": int(rng.integers(2, 4)), "ring_words": [0, 128][seed // 2 % 2]}
        count = len(planned(graph, board=board, **options).design.layers)
        alone = int(rng.integers(1, count + 1))
        plan = planned(graph, board=board, frame_by_frame=alone, **options)
        assert plan.design.program.parts
        return plan, graph

    run_engine(*first_that_fits(attempt))


def test_what_is_shown_of_layers_that_run_frame_by_frame(fix, rng):
    """Their cycles of all frames, at their times, and the steps of one of them."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4, 4, 4))
    for _ in range(3):
        x = builder.op("relu", builder.conv(x, rng.normal(size=(4, 4, 3, 3)), padding=1))
    graph = fix(builder.build())
    board = find_board("ulx3s_85f")
    plan = planned(graph, ring_words=64, batch=4, frame_by_frame=2, board=board)
    engine = SharedArray()
    timeline = engine.timeline(plan)
    report = engine.report(plan, graph, board, timeline)
    assert len(report.memory_map.steps) == 1 + 3 + 1
    assert [len(plan.spans_of(Kind.RUN, n)) for n in range(3)] == [4, 4, 1]
    assert [sum(x.busy) for x in (*timeline.inputs, *timeline.blocks)] == [4 * 16, *[4 * 144] * 3]
    assert sum(span.cycles for span in plan.spans) == plan.batch_cycles
    names = [row["tensor"] for row in engine.program(plan)]
    assert names == [*["x", *plan.design.program.names[1:3]] * 4, *plan.design.program.names[-2:]]


def test_as_few_layers_as_it_takes_run_frame_by_frame(fix, rng):
    """A batch of which all tensors have room runs together; a larger one as far as they have."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 8, 24, 24))
    for inputs, outputs, stride in ((8, 16, 1), (16, 16, 2), (16, 24, 2), (24, 48, 2), (48, 96, 1)):
        weights = rng.normal(size=(outputs, inputs, 3, 3))
        x = builder.op("relu", builder.conv(x, weights, padding=1, stride=stride))
    graph = fix(builder.build())
    board = find_board("ulx3s_12f")
    alone, plan = (schedule_engine(graph, board, batch=batch) for batch in (1, 8))
    assert alone.design.frame_by_frame == 0 < plan.design.frame_by_frame < 5
    one_less = replace(plan.design, frame_by_frame=plan.design.frame_by_frame - 1)
    assert plan.resources.bram <= board.device.bram
    assert EnginePlan.of(one_less, board, None).resources.bram > board.device.bram
    # The same engine waits for weights where it computes frames one by one; but then a larger array
    # has room, which takes fewer cycles here.
    by_itself = replace(plan.design, batch=1, frame_by_frame=0)
    assert plan.interval < EnginePlan.of(by_itself, board, None).interval
    assert alone.multipliers > plan.multipliers
    assert alone.interval < plan.interval


def test_a_plan_is_read_again(fix, rng):
    graph = fix(layers(rng, 21, 18, 7))
    plan = planned(graph, batch=4, frame_by_frame=1)
    value = json.loads(plan.dumps())
    assert (value["batch"], value["frame_by_frame"]) == (4, 1)
    assert SharedArray().read_plan(value, graph).dumps() == plan.dumps()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a build that takes batches of 4, its samples, and its report."""
    folder, rng = tmp_path_factory.mktemp("batches"), np.random.default_rng(4)
    save(layers(rng, 96, 160, 96, 40), folder / "dense.nnef.tgz")
    np.savez(folder / "samples.npz", inputs=rng.normal(size=(10, 96)))
    options = BuildOptions(
        model=folder / "dense.nnef.tgz", board="icebreaker", out=folder / "out", arch="engine",
        calibrate=folder / "samples.npz", bitstream=False, frames=6, batch=4,
    )  # fmt: skip
    return options.out, folder / "samples.npz", build(options)


@pytest.mark.verilator
def test_build(built):
    """Weights from flash, once per batch; a batch that is not full is filled up."""
    out, path, report = built
    folder = BuildFolder.open(out)
    alone = schedule_engine(folder.fixed, ICEBREAKER)
    assert (report.batch, read_manifest(out).batch) == (4, 4)
    assert report.memory.bytes < 2 * alone.design.packets.frame_words / 3
    assert report.cycles_per_inference < alone.interval
    assert report.simulation.bit_exact
    assert report.simulation.frames == 6
    for frames in (1, 4, 9):
        row = simulate(folder, path, limit=frames)
        assert (row.bit_exact, row.frames) == (True, frames)
        assert row.cycles_per_inference == row.predicted_cycles_per_inference
        assert row.latency_cycles == folder.plan.latency


@pytest.mark.verilator
def test_a_board(built):
    """A host fills up the last batch; the board counts the cycles of a batch."""
    out, path, _ = built
    fixed = BuildFolder.open(out).fixed
    codes = quantize_inputs(fixed, load_samples(path, fixed)[:5].inputs)
    with open_device(out, "sim") as device:
        found = device.run_codes(codes)
    [name] = fixed.outputs
    assert (found[name] == run_fixed(fixed, codes)[name]).all()
    row = bench_device(out, "sim", frames=7, link_frames=3)
    assert row.cycles_per_inference == row.predicted_cycles_per_inference
    assert row.cycles_per_inference == BuildFolder.open(out).plan.interval


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arch": "engine", "batch": 65}, "--batch must be 1 to 64, not 65"),
        ({"arch": "engine", "batch": 0}, "--batch must be positive, not 0"),
        ({"arch": "streaming", "batch": 2}, "--batch is for layers that take turns"),
    ],
)
def test_batches_that_make_no_sense(tmp_path, rng, options, message):
    save(layers(rng, 12, 8), tmp_path / "dense.nnef.tgz")
    np.savez(tmp_path / "samples.npz", inputs=rng.normal(size=(10, 12)))
    wanted = BuildOptions(
        model=tmp_path / "dense.nnef.tgz", board="icebreaker", out=tmp_path / "out",
        calibrate=tmp_path / "samples.npz", bitstream=False, **options,
    )  # fmt: skip
    with pytest.raises(UsageError, match=message):
        build(wanted)


def test_batches_that_do_not_fit(fix, rng):
    builder = GraphBuilder()
    x = builder.input("x", (1, 16, 32, 32))
    builder.conv(builder.conv(x, rng.normal(size=(16, 16, 1, 1))), rng.normal(size=(16, 16, 1, 1)))
    graph = fix(builder.build())
    assert schedule_engine(graph, ICEBREAKER, batch=2).batch == 2
    with pytest.raises(TargetError, match=r"bytes of codes of 8 frames, as layer"):
        schedule_engine(graph, ICEBREAKER, batch=8)
