"""Front ends of audio in front of an engine: codes, cycles, where numbers lie, refusals."""

from dataclasses import replace

import pytest
from engine_graphs import planned
from hearing_graphs import FRAMES, fixed_of, hearing, small_front, step_of
from spectrogram_models import spectrogram

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.frontend import load

pytestmark = pytest.mark.system

SMALL = small_front(bands=5)
ICEBREAKER, ULX3S = (find_board(name) for name in ("icebreaker", "ulx3s_85f"))


@pytest.mark.parametrize(
    ("board", "size", "ring_words"), [(ULX3S, (4, 4), 0), (ICEBREAKER, (2, 2), 32)]
)
def test_steps_of_a_stream(rng, run_engine, board, size, ring_words):
    """States of samples are in the part; those of features are the engine's."""
    graph = step_of(fixed_of(hearing(rng, SMALL), rng))
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
    graph = fixed_of(hearing(rng, SMALL), rng)
    plan = planned(graph, 4, 4, board=board)
    assert plan.inputs[0].beats == SMALL.window + (FRAMES - 1) * SMALL.hop
    run_engine(plan, graph, frames=3)


@pytest.mark.parametrize("magnitude", [False, True])
def test_a_spectrogram_of_the_network_itself(magnitude, rng, run_engine, tmp_path):
    """Its samples are one row of channels in the model."""
    model = spectrogram(tmp_path / "net.onnx", magnitude=magnitude, samples=184)
    plan = planned(graph := fixed_of(load(model), rng, axis=1), 4, 4, board=ULX3S)
    [source] = plan.design.network.sources
    assert source.head.node.op == "log_bands"
    run_engine(plan, graph, frames=3)


def test_a_head_leaves_room_for_small_arrays(rng):
    """Two of four single-port RAMs, and two of eight DSP blocks."""
    graph = step_of(fixed_of(hearing(rng, SMALL), rng))
    plan = schedule_engine(graph, ICEBREAKER)
    assert plan.design.shape.lanes == Shape(2, 2).lanes
    assert (plan.resources.spram, plan.resources.dsp) == (
        4,
        plan.design.engine.array.in_dsp // 2 + 2,
    )


def test_samples_that_something_else_reads(rng):
    graph = fixed_of(hearing(rng, SMALL), rng)
    twice = replace(graph, outputs=(*graph.outputs, "audio"))
    texts = [str(error) for error in check_engine(twice)]
    assert any("but of all samples of an input" in text for text in texts), texts
