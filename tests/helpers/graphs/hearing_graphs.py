"""Networks that hear, from samples on: two convolutions behind a front end of log-mel features."""

import numpy as np
from audio import sounds

from nnef_hw.frontend.audio_front import LogMelFront, put_in_front
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.testing import GraphBuilder

FRAMES = 6


def small_front(bands):
    """A front end of few points."""
    return LogMelFront(rate=8_000, window=60, hop=30, points=64, bands=bands, high=4_000.0)


def hearing(rng, front):
    """A network of two layers, behind a front end."""
    g = GraphBuilder("net")
    x = g.input("x", (1, front.features, FRAMES, 1))
    x = g.conv(x, rng.normal(size=(3, front.features, 2, 1)), np.zeros((1, 3)))
    g.conv(g.op("relu", x), rng.normal(size=(2, 3, 3, 1)), np.zeros((1, 2)), name="y")
    return put_in_front(g.build("y"), front)


def fixed_of(graph, rng):
    """The fixed graph, calibrated with a sound that swells."""
    samples = graph.tensor("audio").shape[2]
    noise = sounds(rng, samples)["swelling"] / 32_768
    return quantize(simplify(graph), {"audio": np.tile(noise[None, None, :, None], (4, 1, 1, 1))})


def step_of(fixed):
    """One step of a stream in time."""
    step, _ = StreamTime(2).steps(*StreamTime(2).window(fixed))
    return step
