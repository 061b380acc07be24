"""Front ends of audio in front of an engine: codes, cycles, where numbers lie, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from audio import sounds
from engine_graphs import planned

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.layer import Shape
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.frontend.audio_front import LogMelFront, put_in_front
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

SMALL = LogMelFront(rate=8_000, window=60, hop=30, points=64, bands=5, high=4_000.0)
FRAMES = 6
ICEBREAKER, ULX3S = (find_board(name) for name in ("icebreaker", "ulx3s_85f"))


def hearing(rng, front=SMALL):
    """Two convolutions behind a front end."""
    g = GraphBuilder("net")
    x = g.input("x", (1, front.features, FRAMES, 1))
    x = g.conv(x, rng.normal(size=(3, front.features, 2, 1)), np.zeros((1, 3)))
    g.conv(g.op("relu", x), rng.normal(size=(2, 3, 3, 1)), np.zeros((1, 2)), name="y")
    return put_in_front(g.build("y"), front)


def fixed_of(graph, rng):
    samples = graph.tensor("audio").shape[2]
    noise = sounds(rng, samples)["swelling"] / 32_768
    return quantize(simplify(graph), {"audio": np.tile(noise[None, None, :, None], (4, 1, 1, 1))})


def step_of(fixed):
    step, _ = StreamTime(2).steps(*StreamTime(2).window(fixed))
    return step


@pytest.mark.parametrize(
    ("board", "size", "ring_words"), [(ULX3S, (4, 4), 0), (ICEBREAKER, (2, 2), 32)]
)
def test_steps_of_a_stream(rng, run_engine, board, size, ring_words):
    """States of samples are in the part; those of features are the engine's."""
    graph = step_of(fixed_of(hearing(rng), rng))
    plan = planned(graph, *size, ring_words, board)
    network = plan.design.network
    [source] = network.sources
    assert plan.inputs[0].image == (SMALL.hop, 1, 1)
    assert (source.image.channels, source.port.bits) == (SMALL.bands, 8)
    assert len(network.states) == len(graph.states) - 1
    assert next(station.name for station in plan.stations) == source.head.name
    assert (source.head.part.spram > 0) is (board is ICEBREAKER)
    run_engine(plan, graph, frames=5)
    run_engine(plan, graph, frames=4, stall=0.3)


@pytest.mark.parametrize("board", [ULX3S, ICEBREAKER])
def test_frames_of_an_inference(rng, run_engine, board):
    graph = fixed_of(hearing(rng), rng)
    plan = planned(graph, 4, 4, board=board)
    assert plan.inputs[0].beats == SMALL.window + (FRAMES - 1) * SMALL.hop
    run_engine(plan, graph, frames=3)


def test_a_head_leaves_room_for_small_arrays(rng):
    """Two of four single-port RAMs, and two of eight DSP blocks."""
    graph = step_of(fixed_of(hearing(rng), rng))
    plan = schedule_engine(graph, ICEBREAKER)
    assert plan.design.shape.lanes == Shape(2, 2).lanes
    assert (plan.resources.spram, plan.resources.dsp) == (
        4,
        plan.design.engine.array.in_dsp // 2 + 2,
    )


def test_samples_that_something_else_reads(rng):
    graph = fixed_of(hearing(rng), rng)
    twice = replace(graph, outputs=(*graph.outputs, "audio"))
    texts = [str(error) for error in check_engine(twice)]
    assert any("but of all samples of an input" in text for text in texts), texts
