"""Caches on the engine that stay among the array's weights: a step writes a row of each."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from engine_graphs import planned
from simulators import run_benches
from step_graphs import step
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.memory.kept_matrices import MatrixFill
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.planning.feeding import held, streamed
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.shortage import misfit
from nnef_hw.engine.program.listing import list_program
from nnef_hw.engine.report import report_plan
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.host.streams import to_stream
from nnef_hw.parts.engine.contraction import KeptMatrices, Matrices
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed

ENGINES = {
    "more rows than lanes": {"rows": 8, "lanes": 4, "results": 4},
    "behind weights": {"dense": True},
    "single-port RAM": {"board": find_board("icebreaker")},
    "tables that are there": {"fills_tables": True, "rows": 8, "lanes": 8, "results": 2},
}
KEPT = {"keeps_matrices": True}


def fixed(rng, outputs=lambda graph: graph.outputs, **form):
    graph = simplify(step(rng, **form))
    graph = replace(graph, outputs=outputs(graph))
    positions = np.tile(np.arange(8), (6, 3))[..., None]
    samples = {"token": rng.integers(0, 11, positions.shape), "position": positions}
    return quantize(graph, samples)


def products(plan):
    return [x for x in plan.design.frame_layers if isinstance(x, ContractionLayer)]


def fills(plan):
    return [x for x in plan.design.layers if isinstance(x, MatrixFill)]


@pytest.mark.parametrize("engine", few([*ENGINES], ["single-port RAM", "tables that are there"]))
def test_codes_and_cycles(engine, run_engine, rng):
    graph = fixed(rng, heads=2, size=8)
    plan = planned(graph, **ENGINES[engine], **KEPT)
    assert [x.stays for x in products(plan)] == [True, True]
    run_engine(plan, graph, frames=6)
    run_engine(plan, graph, frames=6, stall=0.3)


@pytest.mark.parametrize("rows", few([4, 8], [4]))
def test_rows_that_are_not_written_yet_are_zero(rows, run_engine, rng):
    """Without a mask softmax reads all of them from the first step on."""
    graph = fixed(rng, heads=2, size=8, groups=2, mask=None)
    run_engine(planned(graph, rows=rows, **KEPT), graph, frames=4)


@pytest.mark.parametrize("kept", few([KEPT, {}], [KEPT]))
def test_a_row_of_padding_precedes_all_queries_of_a_matrix(kept, run_engine, rng):
    """One of each head of keys, not one of each query; none precedes probabilities."""
    graph = fixed(rng, heads=2, size=8, groups=2)
    plan = planned(graph, rows=8, **kept)
    scores, values = products(plan)
    own = scores.product
    assert (own.turns, own.repeats, own.matrices) == (1, 2, 2)
    assert scores.passes(plan.design.shape)[1] == own.rows + own.matrices
    assert values.passes(plan.design.shape)[1] == own.rows
    run_engine(plan, graph, frames=4)
    run_engine(plan, graph, frames=4, stall=0.3)


@pytest.mark.parametrize("cycles", few([1, 300], [300]))
def test_a_restart_empties_the_caches(cycles, rng):
    """Whatever row has been written by then, and while one is."""
    graph = fixed(rng, heads=2, size=8, mask=None)
    plan = planned(graph, **KEPT)
    dut = EngineAccelerator(plan, restartable=True)
    codes = {"token": rng.integers(0, 11, (1, 3, 1)), "position": np.arange(3).reshape(1, 3, 1)}
    ports = dict(zip(graph.inputs, plan.inputs, strict=True))
    beats = {name: to_stream(codes[name][0], port).tolist() for name, port in ports.items()}
    [scores, *_] = plan.outputs
    origin = getattr(dut, scores.name)
    found = []

    async def feed(count, context):
        for frame in range(count):
            for name, port in ports.items():
                target = getattr(dut, port.name)
                for lanes in beats[name][frame]:
                    context.set(target.payload, {"data": lanes, "last": 0})
                    context.set(target.valid, 1)
                    await context.tick().until(target.ready)
                context.set(target.valid, 0)

    async def bench(context):
        for port in plan.outputs:
            context.set(getattr(dut, port.name).ready, 1)
        await feed(2, context)
        await context.tick().repeat(cycles)
        context.set(dut.restart, 1)
        await context.tick().repeat(2)
        context.set(dut.restart, 0)
        found.clear()
        await feed(3, context)
        await context.tick().repeat(2 * plan.latency)

    async def watch(context):
        async for _, _, valid, data in context.tick().sample(origin.valid, origin.payload.data[0]):
            if valid:
                found.append(data)

    run_benches(dut, bench, watching=[watch])
    expected = run_fixed(graph, codes)[graph.outputs[0]][0]
    assert found == to_stream(expected, scores).ravel().tolist()


@pytest.mark.parametrize(
    "form",
    [
        {"heads": 1, "size": 4, "groups": 2, "write": "scatter", "mask": "add"},
        {"heads": 2, "size": 8, "groups": 2, "turn": "pairs", "tiled": True},
        {"heads": 4, "size": 4, "write": "opposite", "mask": "future"},
        pytest.param({"heads": 1, "size": 16, "groups": 3}, marks=pytest.mark.nightly),
    ],
)
def test_other_steps(form, run_engine, rng):
    graph = fixed(rng, **form)
    plan = planned(graph, **KEPT)
    assert len(fills(plan)) == 4  # of each cache all rows once, and one in every step
    run_engine(plan, graph, frames=6)


def test_a_step_is_shorter_and_caches_take_no_codes(rng, monkeypatch):
    """No cache is read as a whole any more: of each there is one word, its first contents."""
    monkeypatch.setattr("step_graphs.CONTEXT", 64)
    graph = fixed(rng, heads=2, size=8)
    usual, plan = planned(graph), planned(graph, **KEPT)
    assert plan.interval < usual.interval
    words = usual.design.placement.tensor_words
    assert (words["keys"], words["values"]) == (256, 256)
    found = plan.design.placement.tensor_words
    assert not {"keys", "values"} & found.keys()
    matrices = plan.design.engine.find(Matrices)
    assert isinstance(matrices, KeptMatrices)
    assert matrices.words == 128


def test_what_something_else_reads_is_no_matrix_that_stays(run_engine, rng):
    """The values leave the chip in every step: they stay codes, whose matrices are behind."""
    graph = fixed(rng, heads=2, size=8, leak=True)
    plan = planned(graph, **KEPT)
    keys, values = products(plan)
    assert (keys.stays, values.stays) == (True, False)
    assert values.first == 8
    assert "values" in plan.design.placement.tensor_words
    run_engine(plan, graph, frames=6)


def test_a_program_in_a_stream_keeps_no_matrices(rng):
    plan = planned(fixed(rng), ring_words=128, **KEPT)
    assert not any(x.stays for x in products(plan))


def test_a_plan_is_kept_and_reported(rng, monkeypatch):
    """A design that is read back is the same one; every instruction has its layer."""
    graph = fixed(rng, heads=2, size=8)
    plan = planned(graph, fills_tables=True, **KEPT)
    again = SharedArray().read_plan(json.loads(plan.dumps()), graph)
    assert again.design.keeps_matrices
    assert again.design.fills_tables
    names = [row["tensor"] for row in list_program(plan.design)]
    assert all(names.count(layer.name) == 2 for layer in fills(plan))
    monkeypatch.setattr("nnef_hw.engine.report.BOARDS", ())
    rows = report_plan(plan, graph, find_board("ulx3s_85f")).layers
    assert [row.kind for row in rows].count("row of a matrix") == 2


def test_arrays_of_other_sizes_keep_no_matrices(rng):
    """Rows of places are told by the lowest bits of an integer."""
    plan = planned(fixed(rng), rows=12, **KEPT)
    assert not any(x.stays for x in products(plan))


def test_the_solver_tries_both_and_no_memory_that_is_slower_alone(rng):
    board = find_board("ulx3s_85f")
    design = planned(fixed(rng, heads=2, size=8), rows=8, lanes=8, results=8).design
    alone = [EnginePlan.of(own, board, board.clock_mhz) for own in held(design)]
    assert [plan.design.keeps_matrices for plan in alone] == [False, True]
    in_lut_ram = [own.keeps_matrices for own in held(design.changed(lut_matrices=True))]
    assert in_lut_ram == [False, False]
    fast = min(plan.interval for plan in alone)
    [store] = stores(board, board.clock_mhz)
    packets = design.changed(ring_words=1024, store=store).packets
    assert packets.frame_words * packets.beat_cycles > fast, "SDRAM alone takes longer"
    assert not list(streamed(design, board, board.clock_mhz, fast))
    assert list(streamed(design, board, board.clock_mhz))


def test_a_refusal_tells_how_many_places_fit(rng, monkeypatch):
    """So many do, and not one more: shorter caches leave what is lacking, and no others."""
    monkeypatch.setattr("step_graphs.CONTEXT", 256)
    board = find_board("ulx3s_85f")
    design = planned(fixed(rng, heads=2, size=32)).design
    words = design.engine.codes.words
    taken = EnginePlan.of(design, board, None).resources.bram

    def left(places):
        return tile_memory(board.device.ram, words - 32 * (256 - places), 32).count

    def refused(lack):
        small = replace(board, device=replace(board.device, bram=taken - lack))
        return str(misfit([EnginePlan.of(design, small, None)], small))

    codes = left(256)
    for lack in (1, 5, codes - 1):
        found = re.search(
            r"caches take 32,768 bytes of them, 128 a place: (\d+) places would fit, not 256",
            refused(lack),
        )
        assert found is not None, refused(lack)
        longest = int(found[1])
        assert left(longest) <= codes - lack < left(longest + 1)
    assert "128 a place, and there is no room without them either" in refused(codes)
