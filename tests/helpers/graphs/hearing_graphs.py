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


def fixed_of(graph, rng, axis=2):
    """The fixed graph of one input, calibrated with a sound that swells along an axis."""
    [name] = graph.inputs
    shape = graph.tensor(name).shape
    noise = sounds(rng, shape[axis])["swelling"] / 32_768
    return quantize(
        simplify(graph), {name: np.tile(noise.reshape(shape), (4, *[1] * (len(shape) - 1)))}
    )


def step_of(fixed, axis=2):
    """One step of a stream in time."""
    step, _ = StreamTime(axis).steps(*StreamTime(axis).window(fixed))
    return step
