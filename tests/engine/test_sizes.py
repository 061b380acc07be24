"""Arrays of any number of rows, whose multipliers are in DSP blocks and in logic."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from engine_graphs import board_with, planned
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.memory.store import SdramStore
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.sizes import sizes
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.program.design import Design
from nnef_hw.flow.emit import emit
from nnef_hw.flow.options import BuildOptions
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulate import simulate
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

BOARD = find_board("ulx3s_85f")
CLOCK_MHZ = 25.0


@pytest.fixture
def graph(rng, fix):
    """Sums, windows that slide, and channels in more than one pass."""
    builder = GraphBuilder("mixed")
    x = builder.input("x", (1, 7, 3, 4))
    y = builder.conv(x, rng.normal(size=(19, 7, 3, 3)), rng.normal(size=(1, 19)), padding=1)
    z = builder.conv(y, rng.normal(size=(19, 1, 3, 3)), padding=1, groups=19)
    z = builder.conv(z, rng.normal(size=(19, 19, 1, 1)), rng.normal(size=(1, 19)))
    builder.op("add", y, z)
    return fix(builder.build())


@pytest.mark.parametrize(
    ("rows", "lanes", "ring_words"),
    few([(12, 4, 0), (20, 4, 128), (24, 8, 256)], [(12, 4, 0), (20, 4, 128)]),
)
def test_any_multiple_of_the_lanes(graph, run_engine, rows, lanes, ring_words):
    run_engine(planned(graph, rows, lanes, ring_words), graph)


@pytest.mark.verilator
def test_words_of_many_beats(rng, tmp_path):
    """More than seven bits can count."""
    samples = {"x": rng.normal(size=(3, 8, 2, 2))}
    fixed = quantize(simplify(conv_layers(rng, 8, 40, 52)), samples, Scheme())
    [store] = SdramStore.ways(BOARD, CLOCK_MHZ)
    design = Design(lower(fixed, BOARD.device), Shape(40, 8), BOARD.device, 128, store)
    assert design.engine.weight_beats(40) == 160
    plan = EnginePlan.of(design, BOARD, CLOCK_MHZ)
    options = BuildOptions(model=Path("wide.nnef"), board=BOARD.name, out=tmp_path)
    emit(tmp_path, fixed, None, plan, None, BOARD, options)
    np.savez(tmp_path / "samples.npz", inputs=samples["x"])
    found = simulate(BuildFolder.open(tmp_path), tmp_path / "samples.npz")
    assert found.bit_exact
    assert found.latency_cycles == plan.latency


def test_rows_in_whole_words(graph):
    with pytest.raises(ValueError, match="multiple of the lanes, not 12"):
        assert planned(graph, 12, 8).design.engine
    with pytest.raises(ValueError, match="power of two, at least 2, not 6"):
        assert planned(graph, 12, 6).design.engine


def test_two_beats_in_a_block_ram(graph):
    """Where it is wide enough for both: half as many; others are as wide as a beat."""
    wide = planned(graph, 8, 8, 512).design.engine
    assert [(x.width, x.count) for x in wide.supply.weight_memories(wide)] == [(32, 1)] * 16
    deep = planned(graph, 8, 8, 1024).design.engine
    assert [(x.width, x.count) for x in deep.supply.weight_memories(deep)] == [(16, 1)] * 32
    narrow = planned(graph, 4, 4, 256, find_board("icebreaker")).design.engine
    assert [(x.width, x.count) for x in narrow.supply.weight_memories(narrow)] == [(16, 1)] * 8
    for engine in (wide, deep, narrow):
        # Constants of a ring are as many as a block RAM of beats holds.
        assert engine.supply.constants == engine.ram.deepest(16)
        bits = sum(x.width for x in engine.supply.constant_memories(engine))
        assert 0 <= bits - engine.constant_bits < 16


def conv_layers(rng, *channels):
    builder = GraphBuilder("wide")
    x = builder.input("x", (1, channels[0], 2, 2))
    for inputs, outputs in pairwise(channels):
        x = builder.conv(x, rng.normal(size=(outputs, inputs, 1, 1)))
    return builder.build()


def test_what_a_network_is_offered(rng, fix):
    """Rows for all its channels, where multipliers may be in logic; nothing that is no faster."""
    network = lower(fix(conv_layers(rng, 8, 40, 80)), BOARD.device)
    offered = sizes(network, BOARD.device)
    assert {Shape(4, 4), Shape(16, 16), Shape(40, 8)} <= set(offered)
    usual = {size for size in offered if not {size.rows, size.lanes} - {4, 8, 16}}
    assert len(usual) == 6
    assert len(offered) <= 10
    assert Shape(36, 4) not in offered
    ice = sizes(network, find_board("icebreaker").device)
    assert set(ice) == usual


def test_what_the_dsp_blocks_do_not_take_is_in_logic(rng, fix):
    """Multipliers make two products each then, but those of the rows that may be used alone."""
    graph = fix(conv_layers(rng, 8, 40, 80))
    engine = planned(graph, 40, 8).design.engine
    assert engine.array.runs == (8, 39 * 4, 4)
    assert (engine.array.in_dsp, engine.array.in_logic) == (156, 12)
    used = planned(graph, 40, 8).resources
    more = planned(graph, 40, 8, board=board_with(168)).resources
    assert (used.dsp, more.dsp) == (156, 168)
    # Eight pairs of factors of nine bits, and four of eight.
    own, share = BOARD.device.lut_multiplier, BOARD.device.family.product_share(9, 9)
    assert share > 1
    assert used.lut - more.lut == round((8 * share + 4) * own)
    assert planned(graph, 40, 8, board=board_with(320)).design.engine.array.runs == (320, 0, 0)
    ice = planned(graph, 8, 4, board=find_board("icebreaker")).design.engine
    assert not ice.array.fast
    assert (ice.array.in_dsp, ice.array.in_logic) == (0, 32)


@pytest.mark.parametrize(
    ("rows", "lanes", "dsp", "ring_words"),
    few(
        [(12, 4, 20, 256), (8, 8, 30, 0), (24, 8, 100, 256), (16, 16, 150, 0), (16, 16, 30, 512)],
        [(8, 8, 30, 0), (12, 4, 20, 256), (16, 16, 150, 0)],
    ),
)
def test_two_products_in_a_multiplier(graph, run_engine, rows, lanes, dsp, ring_words):
    """Of rows whose sums do not move; in trees of every height, in DSP blocks and in logic."""
    plan = planned(graph, rows, lanes, ring_words, board=board_with(dsp))
    engine = plan.design.engine
    assert engine.array.fast
    assert 1 <= engine.array.plain_rows == engine.array.slide_rows <= 3
    assert engine.array.in_dsp == min(dsp, engine.array.multipliers)
    run_engine(plan, graph)


def test_few_multipliers_in_logic(rng, fix):
    """Of arrays that are nearly as fast, that which takes the fewest."""
    plan = schedule_engine(fix(conv_layers(rng, 8, 40, 80)), BOARD)
    assert plan.design.engine.array.in_logic <= 12


@pytest.mark.parametrize("size", [(2, 2), (4, 2)])
def test_words_of_two_codes(rng, fix, run_engine, size):
    """Results lane by lane leave before a register would hold where they go."""
    builder = GraphBuilder("two")
    x = builder.input("x", (1, 6, 5, 3))
    y = builder.conv(x, rng.normal(size=(6, 1, 3, 3)), padding=1, groups=6)
    z = builder.conv(y, rng.normal(size=(7, 6, 1, 1)), rng.normal(size=(1, 7)))
    z = builder.conv(z, rng.normal(size=(6, 7, 1, 1)))
    builder.op("add", y, z)
    graph = fix(builder.build())
    board = find_board("icebreaker")
    for ring_words in (0, 32):
        plan = planned(graph, *size, ring_words, board)
        assert plan.resources.spram == 2
        run_engine(plan, graph, stall=0.2 * (ring_words > 0))


def test_small_arrays_are_for_a_rate(rng, fix):
    """The fastest engine never has one; of those that are fast enough the smallest is taken."""
    graph = fix(conv_layers(rng, 8, 40, 80))
    board = find_board("icebreaker")
    network = lower(graph, board.device)
    assert not {Shape(2, 2), Shape(4, 2)} & set(sizes(network, board.device))
    assert {Shape(2, 2), Shape(4, 2)} <= set(sizes(network, board.device, small=True))
    assert sizes(network, BOARD.device) == sizes(network, BOARD.device, small=True)
    fast, slow = (schedule_engine(graph, board, target_fps=fps) for fps in (None, 31.25))
    assert slow.design.shape[:2] == (2, 2)
    assert slow.resources.lut < fast.resources.lut - 300
    assert slow.interval < slow.clock_mhz * 1e6 / 31.25
    assert not slow.design.resident
