"""Engines over many frames: every code, and the cycle of every border beat of each of them."""

import numpy as np
import pytest
from engine_graphs import BOARD, board_with, first_that_fits, grown, planned

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.program.image import fill_beats, frame_beats
from nnef_hw.engine.timing.timing import simulate_frames
from nnef_hw.host.streams import from_stream
from nnef_hw.ir.batch import sample_extents
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.reference import run_fixed
from nnef_hw.run.rtl import payloads
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import unpack_frames

pytestmark = [pytest.mark.system, pytest.mark.verilator]

FRAMES = 70
SIZES = [(4, 4, 1), (8, 4, 1), (8, 8, 1), (4, 4, 4), (8, 4, 2), (8, 8, 4), (16, 8, 8)]
RINGS = [0, 0, 64, 256]
BOARDS = [BOARD, board_with(12)]


def network(rng, fix):
    """Return a plan and a graph of several outputs, of random operators, sizes and streams."""

    def attempt():
        graph = fix(grown(rng, (2, 6), ("mul", "max", "min")), calibration="minmax")
        rows, lanes, results = SIZES[rng.integers(len(SIZES))]
        ring_words = RINGS[rng.integers(len(RINGS))]
        if not lower(graph, BOARD.device).fits(lanes):
            return None
        board = BOARDS[rng.integers(len(BOARDS))]
        plan = planned(graph, rows, lanes, ring_words, board, results)
        # whose passes have room in the ring
        assert plan.design.program.parts
        return (plan, graph) if len(graph.outputs) > 1 else None

    return first_that_fits(attempt)


def compiled(plan):
    """Compile the engine of a plan."""
    inputs = [port.name for port in plan.inputs] + ["feed"] * bool(plan.design.ring_words)
    verilog = to_verilog(EngineAccelerator(plan))
    return FastRunner(verilog, inputs=inputs, outputs=[port.name for port in plan.outputs])


def check(runner, plan, graph, rng, stall=0.0):
    """Run frames back to back through the Verilog; without stalls the cycles are predicted."""
    design = plan.design
    codes = {
        name: rng.integers(
            graph.tensor(name).qtype.lo, graph.tensor(name).qtype.hi + 1,
            (FRAMES, *sample_extents(graph.tensor(name).shape)),
        )
        for name in graph.inputs
    }  # fmt: skip
    fed = payloads(graph.inputs, plan.inputs, codes)
    if design.ring_words:
        fed["feed"] = np.array([*fill_beats(design), *[*frame_beats(design)] * FRAMES], np.uint64)
        assert fed["feed"].max() < 1 << BEAT_BITS
    run = runner.run_streams(
        fed, {port.name: FRAMES * port.beats for port in plan.outputs}, stall=stall
    )
    expected = run_fixed(graph, codes)
    for name, port in zip(graph.outputs, plan.outputs, strict=True):
        beats = unpack_frames(
            run.payloads[port.name], port.lanes, port.bits, signed=port.signed, beats=port.beats
        )
        found = from_stream(beats, port, graph.tensor(name).shape)
        np.testing.assert_array_equal(found, expected[name], err_msg=name)
    if stall:
        return
    predicted = simulate_frames(design, FRAMES)
    [first, *_] = plan.inputs
    begins = run.in_cycles[first.name][:: first.beats].astype(int)

    origin = int(begins[0]) - predicted.first_inputs[0]
    assert begins.tolist() == [origin + cycle for cycle in predicted.first_inputs]
    for port, results in zip(plan.outputs, predicted.results, strict=True):
        ends = run.out_cycles[port.name][port.beats - 1 :: port.beats]
        assert ends.tolist() == [origin + cycle for cycle in results], port.name
    spacings = np.diff(predicted.last_outputs)
    assert len(spacings) == FRAMES - 1
    assert (spacings[plan.settling - 1 :] == plan.interval).all()


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 60))]
)
def test_random_networks_of_several_outputs(seed, fix, rng):
    chosen = np.random.default_rng([seed, 9])
    plan, graph = network(chosen, fix)
    runner = compiled(plan)
    check(runner, plan, graph, rng)
    check(runner, plan, graph, rng, stall=0.2)
