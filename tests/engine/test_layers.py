"""Every kind of layer on the engine: codes and cycles, in Amaranth's simulator."""

from dataclasses import replace

import numpy as np
import pytest
from engine_graphs import grown, planned
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.engine.report import report_plan
from nnef_hw.errors import TargetError
from nnef_hw.parts.engine.pairs import Gather
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


@pytest.fixture
def builder(rng):
    builder = GraphBuilder()
    builder.rng = rng
    return builder


def filters(builder, *shape):
    return builder.rng.normal(size=shape)


def conv(builder, x, outputs, channels, size=3, **options):
    weights = filters(builder, outputs, channels, size, size)
    return builder.conv(x, weights, filters(builder, 1, outputs), **options)


@pytest.mark.parametrize(
    ("outputs", "channels", "options"),
    [
        pytest.param(5, 6, {"padding": 1}, marks=pytest.mark.nightly),
        (9, 3, {"stride": 2, "padding": [(0, 1), (1, 0)]}),
        (4, 8, {"dilation": 2, "padding": 2}),
        (6, 4, {"groups": 2}),
    ],
    ids=["padding", "stride", "dilation", "groups"],
)
def test_convolutions(builder, fix, run_engine, outputs, channels, options):
    x = builder.input("x", (1, channels, 5, 6))
    conv(builder, x, outputs, channels // options.get("groups", 1), **options)
    graph = fix(builder.build())
    run_engine(planned(graph), graph)
    run_engine(planned(graph, 8, 4), graph, stall=0.3)


@pytest.mark.parametrize(
    ("image", "stride", "rows"),
    few(
        [((9, 4), 1, 3), ((4, 9), 1, 3), ((5, 8), 2, 2), ((6, 6), 3, 1)],
        [((9, 4), 1, 3), ((5, 8), 2, 2), ((6, 6), 3, 1)],
    ),
    ids=["down", "right", "stride", "apart"],
)
def test_depthwise_convolutions_slide(builder, fix, run_engine, image, stride, rows):
    """Windows that overlap share what is read; those that do not are computed one by one."""
    x = builder.input("x", (1, 6, *image))
    conv(builder, x, 6, 1, stride=stride, padding=1, groups=6)
    graph = fix(builder.build())
    plan = planned(graph)
    [layer] = plan.design.layers
    assert layer.sliding_rows(plan.design.shape) == rows
    run_engine(plan, graph)


@pytest.mark.parametrize(
    ("axis", "size", "options", "turns"),
    [
        (0, 10, {"padding": [(0, 0), (0, 0)]}, 3),
        (1, 5, {"padding": [(0, 0), (1, 3)]}, 2),
        (0, 9, {"stride": 2, "padding": [(4, 4), (0, 0)]}, 2),
        pytest.param(1, 11, {"padding": [(0, 0), (5, 5)]}, 3, marks=pytest.mark.nightly),
    ],
)
def test_long_windows_slide_several_times(builder, fix, run_engine, axis, size, options, turns):
    """Of signals: every turn has every so manieth result."""
    shape, kernel = [1, 1], [1, 1]
    shape[axis], kernel[axis] = 24, size
    x = builder.input("x", (1, 6, *shape))
    weights = filters(builder, 6, 1, *kernel)
    y = builder.conv(x, weights, filters(builder, 1, 6), groups=6, **options)
    builder.op("box", y, size=[1, 1, *kernel], border="constant", padding=[(0, 0)] * 4)
    graph = fix(builder.build())
    plan = planned(graph, ring_words=32)
    [layer, _] = plan.design.layers
    [part, *_] = plan.design.program.parts[0]
    assert (part.nest.counts[5], layer.sliding_rows(plan.design.shape) > 2) == (turns, True)
    run_engine(plan, graph)


@pytest.mark.parametrize(
    ("op", "border"),
    [
        pytest.param("max_pool", "constant", marks=pytest.mark.nightly),
        ("max_pool", "ignore"),
        ("avg_pool", "constant"),
        ("box", "constant"),
    ],
)
def test_pools(builder, fix, run_engine, op, border):
    x = builder.input("x", (1, 5, 6, 7))
    builder.pool(op, x, 3, stride=2, padding=1, border=border)
    graph = fix(builder.build(), symmetric=False)
    run_engine(planned(graph), graph)


@pytest.mark.parametrize(
    ("size", "ring_words", "areas"),
    few([(2, 0, 9), (3, 32, 9), (4, 0, 25)], [(2, 0, 9), (4, 0, 25)]),
)
def test_averages_of_what_is_inside(builder, fix, run_engine, size, ring_words, areas):
    """A factor for each number of taps, and a part of the layer for each area with one."""
    x = conv(builder, builder.input("x", (1, 3, 6, 5)), 6, 3, padding=1)
    y = builder.pool("avg_pool", x, size, stride=1, padding=size // 2, border="ignore")
    conv(builder, y, 3, 6)
    graph = fix(builder.build(), symmetric=False)
    plan = planned(graph, ring_words=ring_words)
    assert len(plan.design.program.parts[1]) == areas
    run_engine(plan, graph)


@pytest.mark.parametrize(("size", "outputs"), few([(1, 5), (2, 4), (3, 5)], [(1, 5), (3, 5)]))
def test_codes_in_single_port_ram(builder, fix, run_engine, size, outputs):
    """Read in one bank while the other one is written, and read where a tensor is added.

    With 9 words per pass a write comes in the cycle in which another word is read.
    """
    x = builder.input("x", (1, 4, 4, 3))
    options = {"padding": [(size // 2, (size - 1) // 2)] * 2}
    first = builder.op("relu", conv(builder, x, outputs, 4, size, **options))
    second = builder.op("relu", conv(builder, first, 4, outputs, size, **options))
    third = conv(builder, second, outputs, 4, size, **options)
    builder.pool("max_pool", builder.op("add", first, third), 2)
    graph = fix(builder.build())
    plan = planned(graph, board=find_board("icebreaker"))
    assert plan.design.engine.codes.single_port
    assert plan.resources.spram == 4
    assert plan.design.layers[2].residual is not None
    run_engine(plan, graph)


@pytest.mark.parametrize(("size", "ring_words"), [(1, 0), (2, 16)])
def test_a_sum_of_what_is_read(builder, fix, run_engine, size, ring_words):
    """What is added is in the bank that the array reads: it has a cycle of its own."""
    x = builder.input("x", (1, 4, 3, 3))
    options = {"padding": [(size // 2, (size - 1) // 2)] * 2}
    first = builder.op("relu", conv(builder, x, 6, 4, size, **options))
    second = conv(builder, first, 6, 6, size, **options)
    builder.op("relu", builder.op("add", first, second))
    graph = fix(builder.build())
    board = find_board("icebreaker")
    plan = planned(graph, rows=8 // size, board=board, ring_words=ring_words)
    assert plan.design.engine.codes.single_port
    assert [plan.design.placement.shares(layer) for layer in plan.design.layers] == [False, True]
    run_engine(plan, graph)


ARRAYS = {
    "small": {"rows": 4, "lanes": 4},
    "small_together": {"rows": 8, "lanes": 4, "results": 2},
    "all_together": {"rows": 8, "lanes": 8, "results": 8},
    "wide": {"rows": 16, "lanes": 8, "results": 4},
    "wide_ring": {"rows": 16, "lanes": 16, "results": 4, "ring_words": 64},
    "slow_ring": {"rows": 8, "lanes": 8, "ring_words": 64},
}


BOARDS = "ulx3s_85f", "icebreaker"
"""With registers of block RAMs, and without them."""


@pytest.mark.parametrize(("kind", "size", "board"), covering([*ARRAYS], [1, 2, 3], BOARDS))
def test_a_sum_of_codes_that_are_there_once(builder, fix, run_engine, kind, size, board):
    """No second memory holds what is added."""
    x = builder.input("x", (1, 4, 5, 5))
    options = {"padding": [(size // 2, (size - 1) // 2)] * 2}
    first = builder.op("relu", conv(builder, x, 18, 4, size, **options))
    total = builder.op("add", first, conv(builder, first, 18, 18, size, **options))
    total = builder.op("relu", total)
    builder.op("add", total, conv(builder, total, 18, 18, 1))
    graph = fix(builder.build())
    device = replace(find_board(board).device, single_port=None)
    board = replace(find_board(board), device=device)
    plain, plan = (
        planned(graph, **ARRAYS[kind], board=board, single_copy=once) for once in (False, True)
    )
    assert plain.design.engine.find(TensorSums).words > 0
    assert plan.design.engine.find(TensorSums).words == 0
    assert plan.resources.bram < plain.resources.bram
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.3)


@pytest.mark.parametrize(
    ("channels", "cycles", "board", "ring_words"),
    few(
        [(7, 4, "icebreaker", 64), (15, 8, "icebreaker", 128), (15, 8, "ulx3s_85f", 0)],
        [(7, 4, "icebreaker", 64), (15, 8, "ulx3s_85f", 0)],
    ),
)
def test_sums_bit_by_bit(builder, fix, run_engine, channels, cycles, board, ring_words):
    """Where every pass has time for it, parts of a layer too; other codes pass at once."""
    x = builder.input("x", (1, 5, 2, 2))
    first = builder.op("relu", conv(builder, x, channels, 5, padding=1))
    second = conv(builder, first, channels, channels, padding=1)
    total = builder.op("tanh", builder.op("add", first, second))
    builder.op("sub", conv(builder, total, channels, channels, padding=1), first)
    graph = fix(builder.build())
    plan = planned(graph, board=find_board(board), ring_words=ring_words)
    assert plan.design.engine.find(TensorSums).cycles == cycles
    assert (len(plan.design.instructions) > 5) == bool(ring_words)
    run_engine(plan, graph)


def test_what_the_array_reads_is_not_written_over(builder, fix, run_engine):
    """Though a tensor that is added, and read no more, gives its place to the sum."""
    x = builder.input("x", (1, 4, 3, 3))
    first = builder.op("relu", conv(builder, x, 4, 4, padding=1))
    builder.op("add", first, conv(builder, first, 4, 4, padding=1))
    graph = fix(builder.build())
    plan = planned(graph)
    one, two = plan.design.layers
    assert two.residual.tensor == one.tensor == two.operand
    assert plan.design.placement.places[one.tensor] != plan.design.placement.places[two.tensor]
    run_engine(plan, graph)


def test_the_longer_operand_adds(builder, fix, run_engine):
    """A layer with few words per code comes before the other one, which has time for the sum."""
    x = builder.input("x", (1, 8, 4, 4))
    long = conv(builder, x, 6, 8, padding=1)
    short = conv(builder, x, 6, 8, size=1)
    builder.op("add", long, short)
    graph = fix(builder.build())
    plan = planned(graph)
    assert [layer.kernel for layer in plan.design.layers] == [(1, 1), (3, 3)]
    assert plan.design.layers[1].residual is not None
    run_engine(plan, graph)


def test_a_ring_that_is_too_small(builder, fix):
    x = builder.input("x", (1, 9, 4, 4))
    conv(builder, x, 5, 9)
    plan = planned(fix(builder.build()), ring_words=16)
    with pytest.raises(TargetError, match=r"a pass takes 27 words of weights, and the ring has 16"):
        plan.design.program.parts  # noqa: B018


def test_limits_of_codes(builder, fix, run_engine):
    """Those of a layer's own codes and those of a sum, inside of what a code can hold."""
    x = builder.input("x", (1, 4, 3, 3))
    first = builder.op("relu", conv(builder, x, 4, 4, padding=1))
    builder.op("add", first, conv(builder, first, 4, 4, padding=1))
    graph = fix(builder.build())

    def narrowed(node):
        requant = node.attrs.get("requant")
        return node.with_attrs(requant=replace(requant, lo=requant.lo + 90, hi=requant.hi - 60))

    graph = graph.replaced(nodes=tuple(map(narrowed, graph.nodes)))
    run_engine(planned(graph), graph)


def test_limits_are_those_of_the_layer(builder, fix, run_engine):
    """The last codes of a layer are made as the next one is being read."""
    x = builder.input("x", (1, 4, 2, 3))
    for _ in range(3):
        x = conv(builder, x, 4, 4, padding=1)
    graph = fix(builder.build())

    def narrowed(n, node):
        requant = node.attrs["requant"]
        low, high = (160, 0) if n % 2 else (0, 160)
        return node.with_attrs(requant=replace(requant, lo=requant.lo + low, hi=requant.hi - high))

    nodes = [narrowed(n, node) for n, node in enumerate(graph.nodes)]
    graph = graph.replaced(nodes=tuple(nodes))
    plan = planned(graph, board=find_board("icebreaker"))
    assert {"low", "high"} <= plan.design.engine.fields.keys()
    assert plan.design.engine.pipeline.late_ahead == 1
    run_engine(plan, graph, frames=4)


def test_a_sum_is_computed_by_the_layer_before_it(builder, fix, run_engine):
    """Its place in memory is that of the other operand."""
    x = builder.input("x", (1, 4, 4, 4))
    first = builder.op("relu", conv(builder, x, 4, 4, padding=1))
    second = conv(builder, first, 4, 4, padding=1)
    builder.op("relu", builder.op("sub", first, second))
    graph = fix(builder.build())
    plan = planned(graph)
    one, two = plan.design.layers
    assert two.residual.tensor == one.tensor
    assert plan.design.placement.places[two.tensor] != plan.design.placement.places[one.tensor]
    run_engine(plan, graph)


def test_a_sum_of_tensors_that_others_read(builder, fix, run_engine):
    x = builder.input("x", (1, 3, 3, 4))
    first = builder.op("relu", conv(builder, x, 3, 3, padding=1))
    second = builder.op("relu", conv(builder, first, 3, 3, padding=1))
    total = builder.op("add", first, second)
    builder.op("add", total, second)
    graph = fix(builder.build())
    plan = planned(graph)
    assert [layer.label for layer in plan.design.layers] == ["conv", "conv", *["depthwise"] * 2]
    run_engine(plan, graph)


def test_functions_are_looked_up(builder, fix, run_engine):
    """Behind sums of the layer that computes their operand, or alone; equal ones share a table."""
    x = builder.input("x", (1, 3, 3, 3))
    first = builder.op("tanh", conv(builder, x, 5, 3, padding=1))
    second = conv(builder, first, 5, 5, padding=1)
    total = builder.op("sigmoid", builder.op("add", first, second))
    builder.op("add", builder.op("abs", first), total)
    graph = fix(builder.build(), activation_bits=7)
    plan = planned(graph)
    labels = [(layer.label, layer.table is not None) for layer in plan.design.layers]
    assert labels[:3] == [("conv", True), ("conv", True), ("depthwise", True)]
    assert plan.design.layers[1].residual is not None
    run_engine(plan, graph)


def test_an_output_moved_behind_a_softmax(builder, fix, run_engine):
    x = builder.input("x", (1, 4, 3, 5))
    end = builder.op("softmax", conv(builder, x, 6, 4), axes=[1])
    shape = [1, *builder.build(end).tensor(end).shape[2:], 6]
    builder.op("transpose", end, axes=[0, 2, 3, 1], shape=shape)
    graph = fix(builder.build())
    run_engine(planned(graph), graph, frames=3)


@pytest.mark.parametrize(("channels", "lanes", "beat"), [(3, 3, "beat"), (1, 1, "code")])
def test_reports_say_what_inputs_carry(builder, fix, channels, lanes, beat):
    x = builder.input("x", (1, channels, 5, 5))
    conv(builder, x, 6, channels)
    graph = fix(builder.build())
    board = find_board("icebreaker")
    plan = planned(graph, board=board)
    report = report_plan(plan, graph, board)
    assert (plan.inputs[0].lanes, report.beat) == (lanes, beat)
    assert report.roofs.input == plan.macs / (25 + plan.outputs[0].beats)


@pytest.mark.parametrize("end", ["softmax", "argmax_reduce", "argmin_reduce"])
def test_tails(builder, fix, run_engine, end):
    x = builder.input("x", (1, 5))
    scores = builder.op("linear", x, filters(builder, 7, 5), filters(builder, 1, 7))
    builder.op(end, scores, axes=[1])
    graph = fix(builder.build())
    run_engine(planned(graph), graph, frames=3)
    run_engine(planned(graph, 8, 4), graph, stall=0.4)


def test_weights_pass_as_a_stream(builder, fix, run_engine):
    """Parts of layers run on what is there, and the next ones come while they do."""
    x = builder.input("x", (1, 6, 5, 4))
    x = builder.op("relu", conv(builder, x, 9, 6, size=2))
    x = conv(builder, x, 9, 1, groups=9, padding=1)
    x = builder.pool("max_pool", x, 2)
    x = builder.pool("avg_pool", x, 2, stride=1, padding=1)
    builder.conv(x, filters(builder, 5, 9, 1, 1))
    graph = fix(builder.build())
    plan = planned(graph, ring_words=16)
    assert len(plan.design.instructions) > 2 + len(plan.design.layers)
    assert max(len(part.weights) for parts in plan.design.program.parts for part in parts) <= 8
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


def test_a_pass_may_fill_the_ring(builder, fix, run_engine):
    """Then the next weights come when it has ended: not the stream but room sets the interval."""
    x = builder.input("x", (1, 15, 4, 4))
    conv(builder, x, 5, 15, size=2)
    graph = fix(builder.build())
    plan = planned(graph, ring_words=16)
    assert [len(part.weights) for part in plan.design.program.parts[0]] == [16, 16]
    assert plan.interval > plan.design.packets.image_words
    run_engine(plan, graph)


def test_a_ring_is_full_in_the_middle_of_a_part(builder, fix, run_engine):
    """The next beat comes in the cycle after the last word that has room."""
    x = builder.input("x", (1, 4, 5, 6))
    builder.conv(x, filters(builder, 24, 4, 1, 3))
    graph = fix(builder.build())
    plan = planned(graph, ring_words=16)
    assert [len(part.weights) for part in plan.design.program.parts[0]] == [6, 6, 6]
    run_engine(plan, graph)


@pytest.mark.parametrize("rows", few([4, 8], [4]))
def test_an_engine_waits_for_weights(builder, fix, run_engine, rows):
    """Of linear layers every weight is used once: the stream sets the interval."""
    x = builder.input("x", (1, 11))
    for outputs, inputs in ((24, 11), (9, 24)):
        x = builder.op("linear", x, filters(builder, outputs, inputs), filters(builder, 1, outputs))
    graph = fix(builder.build())
    plan = planned(graph, rows=rows, ring_words=32)
    beats = plan.design.packets.image_words
    assert sum(span.stalled for span in plan.spans) > 0
    assert plan.interval == beats == sum(span.cycles for span in plan.spans)
    run_engine(plan, graph, frames=3)


@pytest.mark.parametrize("seed", few([1, 2, 3, 8, 21], [1, 3]))
def test_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng(seed)
    network = grown(rng, 4)
    scheme = {"activation_bits": int(rng.integers(4, 9)), "weight_bits": int(rng.integers(2, 9))}
    graph = fix(network, symmetric=bool(rng.integers(2)), calibration="minmax", **scheme)
    plan = planned(graph, *[(4, 4), (8, 4), (8, 8)][int(rng.integers(3))])
    assert plan.latency < 10_000
    run_engine(plan, graph)


def test_tables_come_with_the_program(builder, fix, run_engine):
    """In front of it, once."""
    x = builder.input("x", (1, 3, 3, 4))
    first = builder.op("tanh", conv(builder, x, 5, 3, padding=1))
    builder.op("sigmoid", conv(builder, first, 5, 5, padding=1))
    graph = fix(builder.build())
    plan = planned(graph, ring_words=32)
    assert plan.design.engine.find(Tables).count == 2
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


@pytest.mark.parametrize("rounding", [None, "tflite"])
def test_tables_of_softmax_come_with_the_program(builder, fix, run_engine, rounding):
    """Behind functions by table, an entry in one beat or in two; of two outputs."""
    x = builder.input("x", (1, 5))
    first = builder.op("linear", x, filters(builder, 6, 5), filters(builder, 1, 6))
    second = builder.op("linear", builder.op("tanh", first), filters(builder, 3, 6), [[0.0] * 3])
    ends = [builder.op("softmax", scores, axes=[1]) for scores in (first, second)]
    graph = fix(builder.build(*ends).replaced(rounding=rounding))
    plan = planned(graph, ring_words=32)
    engine = plan.design.engine
    tail_beats = 2 * 256 * (2 if rounding else 1)
    assert (engine.find(Tables).count, engine.ring.tail_beats) == (1, tail_beats)
    assert (
        plan.design.packets.table_words == 2 + engine.table_beats == plan.design.packets.fill_words
    )
    run_engine(plan, graph, frames=3)


@pytest.mark.parametrize("ring_words", [0, 32])
def test_several_inputs_and_outputs(builder, fix, run_engine, ring_words):
    """Of different formats and sizes; an output is read on, or has a last node of its own."""
    x, y = builder.input("x", (1, 3, 4, 4)), builder.input("y", (1, 5))
    first = builder.op("relu", conv(builder, x, 6, 3, padding=1))
    scores = builder.op("linear", y, filters(builder, 6, 5), filters(builder, 1, 6))
    second = builder.op("tanh", builder.pool("avg_pool", first, 4))
    flat = builder.reshape(second, [1, 6])
    total = builder.op("add", flat, scores, name="total")
    graph = builder.build(first, builder.op("softmax", total, axes=[1]), scores)
    graph = fix(graph, symmetric=True)
    plan = planned(graph, ring_words=ring_words)
    assert len(plan.design.instructions) >= 2 + 4 + 3
    run_engine(plan, graph, frames=3)
    if ring_words:
        run_engine(plan, graph, frames=3, stall=0.3)


def test_an_input_without_rows(builder, fix, run_engine):
    """The host sends a flat tensor; in memory it is the image that a layer reads."""
    x = builder.input("x", (1, 5 * 4 * 3))
    image = builder.op("transpose", builder.reshape(x, [1, 5, 4, 3]), axes=[0, 3, 1, 2])
    conv(builder, image, 4, 3, padding=1)
    graph = fix(builder.build())
    plan = planned(graph)
    assert plan.inputs[0].image == (1, 1, 60)
    run_engine(plan, graph)


@pytest.mark.parametrize(
    ("lanes", "ring_words", "frames"), few([(4, 0, 1), (8, 32, 2)], [(8, 32, 2)])
)
def test_codes_change_their_places(builder, fix, run_engine, lanes, ring_words, frames):
    """Single codes are read, of any lane: parts, repetitions, borders, other orders."""
    x = builder.input("x", (1, 8, 2, 3))
    y = builder.op("slice", x, axes=[1], begin=[3], end=[6], stride=[1])
    y = builder.op("nearest_upsample", y, factor=[2, 2])
    y = builder.op("tanh", conv(builder, y, 8, 3, 1))
    y = builder.op("slice", y, axes=[2], begin=[1], end=[3], stride=[1])
    z = builder.op("concat", y, conv(builder, y, 4, 8, 1), axis=1, shape=[1, 12, 2, 6])
    z = builder.op("slice", z, axes=[3], begin=[1], end=[4], stride=[1])
    z = builder.op("transpose", builder.op("relu", conv(builder, z, 8, 12, 1)), axes=[0, 3, 2, 1])
    conv(builder, z, 4, 3, 1)
    graph = fix(builder.build())
    plan = planned(graph, 8, lanes, ring_words)
    assert plan.design.engine.has(Gather)
    assert sum(layer.gathers(plan.design.shape) for layer in plan.design.layers) == 6
    run_engine(plan, graph, frames=frames)


@pytest.mark.parametrize("ring_words", few([0, 32], [0]))
def test_words_follow_one_another(builder, fix, run_engine, ring_words):
    """Six codes of a pixel are one word and half of the next one, which the next pixel fills."""
    x = builder.input("x", (1, 3, 2, 2))
    x = builder.op("relu", conv(builder, x, 6, 3, padding=1))
    x = builder.op("transpose", x, axes=[0, 2, 3, 1])
    y = builder.op("tanh", builder.reshape(x, [1, 24]))
    z = builder.op("concat", y, builder.op("sigmoid", y), axis=1, shape=[1, 48])
    builder.op("linear", z, filters(builder, 5, 48), filters(builder, 1, 5))
    graph = fix(builder.build())
    plan = planned(graph, ring_words=ring_words)
    assert plan.design.engine.find(Gather).packs
    run_engine(plan, graph)
