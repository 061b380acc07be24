"""Networks that hear, from samples on: codes and cycles of accelerators, whole and step by step."""

from dataclasses import replace

import numpy as np
import pytest
from audio import sounds

from nnef_hw.boards import find_board
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.audio_front import LogMelFront, put_in_front
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.layers.log_mel import LogMelLayer
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

SMALL = LogMelFront(rate=8_000, window=60, hop=30, points=64, bands=4, high=4_000.0)
FRAMES = 6


def hearing(rng, front=SMALL):
    """A network of two layers, behind a front end."""
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


@pytest.mark.verilator
@pytest.mark.parametrize("board", ["icebreaker", "ulx3s_85f", "tang_nano_20k"])
def test_codes_and_cycles(board, simulate, rng):
    graph = fixed_of(hearing(rng), rng)
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(3)


@pytest.mark.verilator
@pytest.mark.parametrize("emphasis", [0.96875, 0.0])
def test_steps_of_a_stream(emphasis, simulate, rng):
    front = replace(SMALL, emphasis=emphasis)
    graph = step_of(fixed_of(hearing(rng, front), rng))
    [layer] = [one for one in lower(graph).layers if isinstance(one, LogMelLayer)]
    assert (layer.goes_on, layer.frames, layer.sources) == (True, 1, ("audio",))
    plan = schedule(graph, find_board("icebreaker"))
    assert plan.interval == layer.cycles(None, plan.blocks[0].device)
    simulate(plan, graph).check(9)


def test_samples_that_no_frame_reads_are_refused(rng):
    heard = hearing(rng)
    longer = replace(heard.tensor("audio"), shape=(1, 1, 215, 1))
    fixed = fixed_of(replace(heard, tensors={**heard.tensors, "audio": longer}), rng)
    with pytest.raises(UnsupportedError, match="215 samples are not 6 frames of 60 samples"):
        lower(fixed)
