"""Layers that pass a unit: softmax and normalization between others."""

from dataclasses import replace

import numpy as np
import pytest
from engine_graphs import planned
from sweeps import covering, few

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.layers.unit import UnitLayer
from nnef_hw.engine.layers.unit_functions import NormalizeLayer, SoftmaxLayer
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.retrained import fit_shifts, retrained
from nnef_hw.errors import UsageError
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.engine.units import StreamUnits
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


@pytest.fixture
def builder(rng):
    builder = GraphBuilder()
    builder.rng = rng
    return builder


def conv(builder, x, outputs, channels, size=1, **options):
    weights = builder.rng.normal(size=(outputs, channels, size, size))
    return builder.conv(x, weights, builder.rng.normal(size=(1, outputs)), **options)


def normalized(builder, x, channels, centered=True, epsilon=1e-3):
    gamma, beta = builder.rng.normal(size=(2, 1, channels, 1, 1))
    return builder.op("normalize", x, gamma, beta, axes=[1], epsilon=epsilon, centered=centered)


def units(plan):
    found = plan.design.engine.find(StreamUnits)
    return [] if found is None else [unit.part.label for unit in found.units]


def streamed(plan):
    return [x for x in plan.design.instructions if x.kind == Kind.STREAM]


@pytest.mark.parametrize(("channels", "ring_words"), covering([8, 6, 3], [0, 32]))
def test_a_softmax_between_convolutions(builder, fix, run_engine, channels, ring_words):
    x = builder.input("x", (1, 4, 3, 3))
    x = builder.op("softmax", conv(builder, x, channels, 4), axes=[1])
    conv(builder, x, 5, channels, 3)
    graph = fix(builder.build())
    plan = planned(graph, ring_words=ring_words)
    assert units(plan) == ["softmax"]
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


@pytest.mark.parametrize(("centered", "ring_words"), covering([True, False], [0, 32]))
def test_normalizations_share_a_unit(builder, fix, run_engine, centered, ring_words):
    x = builder.input("x", (1, 6, 3, 3))
    for _ in range(3):
        builder.rng = np.random.default_rng(3)
        y = normalized(builder, conv(builder, x, 6, 6), 6, centered)
        x = builder.op("add", x, conv(builder, y, 6, 6))
    graph = fix(builder.build())
    plan = planned(graph, ring_words=ring_words)
    assert units(plan) == ["normalize"]
    assert len(streamed(plan)) == 3
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


@pytest.mark.parametrize("channels", [129, 192, 320])
def test_constants_of_many_channels_fit_the_ring(builder, fix, run_engine, channels):
    """More constants of one instruction than a block RAM has beside those still in use."""
    x = builder.input("x", (1, 4, 2, 2))
    for _ in range(2):
        x = normalized(builder, conv(builder, x, channels, 4), channels)
        x = conv(builder, x, 4, channels)
    graph = fix(builder.build())
    plan = planned(graph, ring_words=256, board=find_board("icebreaker"))
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=2, stall=0.3)


@pytest.mark.parametrize(("pace", "ring_words"), covering([3, 16], [0, 32]))
def test_units_of_several_kinds(builder, fix, run_engine, pace, ring_words):
    """Two softmaxes with a table each, two normalizations of different sizes, and a tail."""
    x = builder.input("x", (1, 5, 2, 3))
    first = builder.op("softmax", conv(builder, x, 4, 5), axes=[1])
    x = builder.op("tanh", conv(builder, first, 4, 4))
    x = builder.op("softmax", builder.op("mul", x, 3.0), axes=[1])
    x = normalized(builder, conv(builder, x, 7, 4), 7)
    x = normalized(builder, conv(builder, x, 5, 7), 5, centered=False)
    x = conv(builder, x, 3, 5)
    builder.op("softmax", x, axes=[1])
    graph = fix(builder.build())
    plan = planned(graph, ring_words=ring_words, unit_pace=pace)
    assert units(plan) == ["softmax", "normalize", "normalize"]
    assert plan.design.engine.units.units[0].part.tables == 2
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


@pytest.mark.parametrize(
    ("lanes", "results", "ring_words"), few([(4, 2, 0), (8, 4, 32), (8, 8, 0)], [(8, 4, 32)])
)
def test_results_that_leave_together(builder, fix, run_engine, lanes, results, ring_words):
    """Constants of several channels are in a word then."""
    x = builder.input("x", (1, 4, 3, 3))
    x = normalized(builder, conv(builder, x, 13, 4), 13)
    x = builder.op("softmax", conv(builder, x, 10, 13), axes=[1])
    conv(builder, x, 4, 10)
    graph = fix(builder.build())
    plan = planned(graph, 8, lanes, results=results, ring_words=ring_words)
    run_engine(plan, graph, frames=2)
    run_engine(plan, graph, frames=2, stall=0.3)


@pytest.mark.parametrize(
    ("channels", "ring_words", "words"), [(6, 0, False), (6, 32, False), (8, 32, True)]
)
def test_batches(builder, fix, run_engine, channels, ring_words, words):
    x = builder.input("x", (1, 4, 2, 2))
    x = normalized(builder, conv(builder, x, channels, 4), channels)
    x = builder.op("softmax", conv(builder, x, 5, channels), axes=[1])
    conv(builder, x, 4, 5)
    graph = fix(builder.build())
    plan = planned(graph, ring_words=ring_words, batch=3, unit_words=words)
    run_engine(plan, graph, frames=2)
    run_engine(plan, graph, frames=2, stall=0.3)


@pytest.mark.parametrize(
    ("ways", "batch", "function"),
    covering([(1, 1), (4, 1), (2, 3)], ["softmax", "normalize"]),
)
def test_results_take_the_place_of_codes(builder, fix, run_engine, ways, batch, function):
    x = conv(builder, builder.input("x", (1, 4, 3, 5)), 30, 4)
    softmax = function == "softmax"
    x = builder.op("softmax", x, axes=[1]) if softmax else normalized(builder, x, 30)
    conv(builder, x, 4, 30)
    graph = fix(builder.build())
    plan = planned(graph, unit_ways=ways, batch=batch)
    placement = plan.design.placement
    [unit] = (x for x in plan.design.layers if isinstance(x, UnitLayer))
    assert placement.places[unit.tensor] == placement.places[unit.operand]
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


def test_results_leave_codes_that_are_added_later(builder, fix, run_engine):
    x = conv(builder, builder.input("x", (1, 4, 3, 5)), 30, 4)
    y = builder.op("softmax", x, axes=[1])
    builder.op("add", x, conv(builder, y, 30, 30))
    graph = fix(builder.build())
    plan = planned(graph)
    [unit] = (x for x in plan.design.layers if isinstance(x, UnitLayer))
    assert plan.design.placement.places[unit.tensor] != plan.design.placement.places[unit.operand]
    run_engine(plan, graph, frames=3)


@pytest.mark.parametrize(
    ("channels", "lanes", "ring_words", "words"),
    [(6, 4, 0, False), (6, 4, 32, False), (8, 4, 32, True), (6, 2, 0, True)],
)
def test_banks(builder, fix, run_engine, channels, lanes, ring_words, words):
    """In single-port RAM a unit's results are in the bank that is not read."""
    x = builder.input("x", (1, 4, 3, 3))
    for _ in range(2):
        y = normalized(builder, conv(builder, x, channels, 4), channels)
        x = builder.op("add", x, conv(builder, y, 4, channels))
    x = builder.op("softmax", x, axes=[1])
    conv(builder, x, 4, 4)
    graph = fix(builder.build())
    board = find_board("icebreaker")
    plan = planned(graph, lanes, lanes, ring_words, board, unit_words=words)
    assert plan.design.engine.codes.single_port
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


@pytest.mark.parametrize(
    ("ways", "lanes", "image", "ring_words", "results"),
    [
        (2, 4, (3, 3), 0, 1),
        (4, 4, (1, 3), 32, 2),
        pytest.param(8, 8, (4, 5), 32, 4, marks=pytest.mark.nightly),
        pytest.param(16, 16, (5, 7), 0, 1, marks=pytest.mark.nightly),
    ],
)
def test_pixels_that_pass_at_once(
    builder, fix, run_engine, ways, lanes, image, ring_words, results
):
    """Each has its copy of a part: of the last ones some have none, and of a few no other."""
    x = builder.input("x", (1, 4, *image))
    x = normalized(builder, conv(builder, x, 13, 4), 13)
    x = builder.op("softmax", conv(builder, x, 10, 13), axes=[1])
    conv(builder, x, 4, 10)
    graph = fix(builder.build())
    options = {"ring_words": ring_words, "results": results}
    alone = planned(graph, lanes, lanes, **options)
    plan = planned(graph, lanes, lanes, unit_ways=ways, **options)
    assert plan.interval < alone.interval
    assert len(plan.design.engine.find(StreamUnits).parts) == 2 * min(ways, np.prod(image))
    run_engine(plan, graph, frames=2)
    run_engine(plan, graph, frames=2, stall=0.3)


@pytest.mark.parametrize(
    ("lanes", "ways", "pace", "ring_words", "results"),
    few(
        [(4, 1, 1, 0, 1), (4, 2, 1, 32, 4), (8, 1, 2, 0, 2), (8, 4, 1, 0, 8), (16, 1, 1, 32, 4)],
        [(4, 2, 1, 32, 4)],
    ),
)
def test_units_that_take_words(builder, fix, run_engine, lanes, ways, pace, ring_words, results):
    """Pixels that are normalized are whole words; those of a softmax may end within one."""
    x = builder.input("x", (1, 4, 3, 4))
    x = normalized(builder, conv(builder, x, 32, 4), 32)
    x = builder.op("softmax", conv(builder, x, 13, 32), axes=[1])
    x = normalized(builder, conv(builder, x, 16, 13), 16, centered=False)
    x = builder.op("softmax", conv(builder, x, 24, 16), axes=[1])
    conv(builder, x, 4, 24)
    graph = fix(builder.build())
    options = {"ring_words": ring_words, "results": results}
    alone = planned(graph, lanes, lanes, **options)
    plan = planned(graph, lanes, lanes, unit_words=True, unit_ways=ways, unit_pace=pace, **options)
    assert plan.interval < alone.interval
    parts = {unit.part for unit in plan.design.engine.units.units}
    assert {part.lanes for part in parts} == {lanes}
    run_engine(plan, graph, frames=2)
    run_engine(plan, graph, frames=2, stall=0.3)


@pytest.mark.parametrize(
    ("batch", "ring_words", "copies"), few([(1, 0, 1), (1, 32, 1), (3, 32, 3)], [(3, 32, 3)])
)
def test_a_part_has_no_more_copies_than_a_tensor_has_pixels(
    builder, fix, run_engine, batch, ring_words, copies
):
    """One pixel is normalized, of each frame of a batch; four pass a softmax at once."""
    x = normalized(builder, conv(builder, builder.input("x", (1, 4, 1, 1)), 16, 4), 16)
    x = builder.reshape(conv(builder, x, 16, 16), (1, 4, 2, 2))
    conv(builder, builder.op("softmax", x, axes=[1]), 4, 4)
    graph = fix(builder.build())
    plan = planned(graph, 8, 4, ring_words, unit_ways=4, results=2, batch=batch)
    assert units(plan) == ["normalize", "softmax"]
    feature = plan.design.engine.find(StreamUnits)
    assert [feature.copies(unit) for unit in feature.units] == [copies, 4]
    assert len(feature.parts) == copies + 4
    run_engine(plan, graph, frames=2 * batch)
    run_engine(plan, graph, frames=2 * batch, stall=0.3)


@pytest.mark.parametrize(("pace", "ring_words"), covering([1, 4, 20], [0, 32]))
def test_softmaxes_share_a_unit(fix, rng, run_engine, pace, ring_words):
    """One of scores behind a mask, of fine probabilities, and one of more channels, coarse."""
    graph = fix(attending(rng))
    plan = planned(graph, ring_words=ring_words, unit_pace=pace)
    layers = [x for x in plan.design.layers if isinstance(x, SoftmaxLayer)]
    assert len({x.places for x in layers}) == len({x.source.channels for x in layers}) == 2
    assert [x.is_masked for x in layers] == [True, False]
    assert units(plan) == ["softmax"]
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


def attending(rng):
    """Return attention of 5 tokens behind a mask, and a softmax of its 8 features."""
    g = GraphBuilder("attending")
    x = g.input("x", (1, 5, 8))
    unturned = {"transposeA": False, "transposeB": False}
    hidden = g.constant("mask", -50.0 * np.eye(5)[None])
    scores = g.op("mul", g.op("matmul", x, x, transposeA=False, transposeB=True), 0.02)
    weights = g.op("softmax", g.op("add", scores, hidden), axes=[2])
    x = g.op("softmax", g.op("mul", g.op("matmul", weights, x, **unturned), 9.0), axes=[2])
    last = g.constant("last", rng.normal(size=(1, 8, 4)))
    return g.build(g.op("matmul", x, last, **unturned))


@pytest.mark.parametrize("ring_words", [0, 32])
def test_normalizations_to_codes_of_other_formats_share_a_unit(
    builder, fix, run_engine, ring_words
):
    """Behind one stands a ReLU, and codes of the other one have signs, and fewer bits."""
    x = conv(builder, builder.input("x", (1, 5, 2, 3)), 6, 5)
    x = conv(builder, builder.op("relu", normalized(builder, x, 6)), 6, 6)
    x = normalized(builder, x, 6)
    conv(builder, x, 3, 6)
    graph = fix(builder.build(), layers={x: {"activation_bits": 6}})
    plan = planned(graph, ring_words=ring_words)
    layers = [x for x in plan.design.layers if isinstance(x, NormalizeLayer)]
    assert len({(x.behind.bits, x.behind.signed) for x in layers}) == 2
    assert units(plan) == ["normalize"]
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, frames=3, stall=0.3)


def gated(rng, channels=6, epsilon=1e-3):
    """Return a network with two normalizations and a softmax, of some weights."""
    builder = GraphBuilder("net")
    builder.rng = rng
    x = builder.input("x", (1, 4, 3, 3))
    for _ in range(2):
        y = conv(builder, x, channels, 4)
        y = normalized(builder, y, channels, epsilon=epsilon)
        x = builder.op("add", x, conv(builder, y, 4, channels))
    conv(builder, builder.op("softmax", x, axes=[1]), 4, 4)
    return builder.build()


@pytest.mark.parametrize("seed", few([1, 2, 3, 5], [1, 2]))
def test_other_weights_run_on_the_units_of_a_bitstream(fix, rng, run_engine, seed):
    """Scales, offsets, tables, and what else normalizations have, come with the program."""
    board = find_board("icebreaker")
    built = planned(fix(gated(rng)), ring_words=128, board=board)
    graph = fit_shifts(fix(gated(np.random.default_rng(seed))), built.design)
    plan = replace(built, design=retrained(graph, built.design))
    assert plan.design.engine is built.design.engine
    run_engine(plan, graph)
    stored = plan.design.changed(store=next(iter(stores(board, board.clock_mhz))))
    text = EnginePlan.of(stored, board, None).to_json()
    assert SharedArray().read_plan(text, graph).design.engine.units == built.design.engine.units


def test_units_of_another_size_are_refused(fix, rng):
    built = planned(fix(gated(rng)), ring_words=64)
    own = planned(fix(gated(rng, channels=8)), ring_words=64)
    found = list(own.design.engine.differences(built.design.engine))
    assert "its normalize unit has another size or format" in found


def test_normalizations_that_need_more_are_refused(fix, rng):
    """An epsilon that is far greater than that of the bitstream."""
    built = planned(fix(gated(rng)), ring_words=64)
    graph = fix(gated(rng, epsilon=9.0))
    with pytest.raises(
        UsageError, match=r"layer 'normalize\d+' takes an epsilon of up to \d+ bits"
    ):
        retrained(graph, built.design)


def test_as_many_pixels_pass_at_once_as_save_cycles(builder, fix):
    """Where LUTs are short, codes take several cycles instead."""
    x = conv(builder, builder.input("x", (1, 4, 3, 3)), 6, 4)
    y = conv(builder, normalized(builder, x, 6), 7, 6)
    conv(builder, normalized(builder, y, 7), 4, 7)
    graph = fix(builder.build())
    large, small = (
        schedule_engine(graph, find_board(name)).design for name in ("ulx3s_85f", "icebreaker")
    )
    assert large.unit_ways > 1 == large.unit_pace
    assert small.unit_ways == 1 < small.unit_pace


def test_units_take_words_where_that_saves_cycles(builder, fix):
    """One pixel of many channels; where LUTs are short it passes code by code."""
    x = conv(builder, builder.input("x", (1, 4, 1, 1)), 64, 4)
    x = builder.op("softmax", conv(builder, normalized(builder, x, 64), 50, 64), axes=[1])
    conv(builder, x, 4, 50)
    graph = fix(builder.build())
    large, small = (
        schedule_engine(graph, find_board(name)).design for name in ("ulx3s_85f", "icebreaker")
    )
    assert large.unit_words
    assert not small.unit_words
    assert {x.part.lanes for x in large.engine.units.units} == {large.shape.lanes}


def test_a_function_of_what_is_moved_as_well(builder, fix, run_engine):
    """The move comes later, and reads the codes without the function."""
    x = builder.input("x", (1, 8, 4, 2))
    y = builder.op("slice", x, axes=[2], begin=[1], end=[3], stride=[1])
    first = conv(builder, builder.op("sqr", y), 8, 8)
    moved = conv(builder, builder.op("transpose", y, axes=[0, 2, 1, 3]), 4, 2)
    graph = fix(builder.build(first, moved))
    plan = planned(graph)
    run_engine(plan, graph)
