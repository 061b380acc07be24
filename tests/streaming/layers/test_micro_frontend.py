"""Networks behind TensorFlow Lite Micro's front end: codes and cycles of accelerators."""

from dataclasses import replace

import numpy as np
import pytest
from audio import sounds

from nnef_hw.boards import find_board
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.audio_front import MicroFront, put_in_front
from nnef_hw.ir import Node
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.layers.micro_frontend import MicroFrontendLayer
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 3


def hearing(rng, front):
    """A layer over all frames, behind a front end."""
    g = GraphBuilder("net")
    x = g.input("x", (1, front.features, FRAMES, 1))
    g.conv(x, rng.normal(size=(3, front.features, FRAMES, 1)), np.zeros((1, 3)), name="y")
    return put_in_front(g.build("y"), front)


def fixed_of(graph, rng):
    samples = graph.tensor("audio").shape[2]
    noise = sounds(rng, samples)["swelling"] / 32_768
    return quantize(simplify(graph), {"audio": np.tile(noise[None, None, :, None], (4, 1, 1, 1))})


@pytest.mark.verilator
@pytest.mark.parametrize(("board", "hop"), [("icebreaker", 160), ("tang_nano_20k", 320)])
def test_codes_and_cycles(board, hop, simulate, rng):
    graph = fixed_of(hearing(rng, MicroFront(hop=hop)), rng)
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(2)


def remembering(rng, front):
    """A network that adds its result to what it gave before, behind a front end."""
    g = GraphBuilder("net")
    past = g.state("past", np.zeros((1, 3, 1, 1)))
    x = g.input("x", (1, front.features, 2, 1))
    x = g.conv(x, rng.normal(size=(3, front.features, 2, 1)), np.zeros((1, 3)))
    y = g.op("tanh", g.op("add", x, past), name="y")
    g.update(past, y)
    return put_in_front(g.build("y"), front)


def steps_of(graph, rng):
    """The fixed network of one that runs step by step."""
    samples = graph.tensor("audio").shape[2]
    noise = sounds(rng, 4 * samples)["swelling"] / 32_768
    return quantize(simplify(graph), {"audio": noise.reshape(1, 4, 1, 1, samples, 1)})


@pytest.mark.verilator
def test_steps_of_a_stream(simulate, rng):
    """Samples that windows share, and estimates of noise, stay in the front end."""
    graph = steps_of(remembering(rng, MicroFront()), rng)
    [layer] = [one for one in lower(graph).layers if isinstance(one, MicroFrontendLayer)]
    assert (layer.goes_on, layer.frames, layer.sources) == (True, 2, ("audio",))
    plan = schedule(graph, find_board("tang_nano_20k"))
    simulate(plan, graph).check(3)


def test_noise_that_others_read_is_refused(rng):
    fixed = steps_of(remembering(rng, MicroFront()), rng)
    [front] = [node for node in fixed.nodes if node.op == "micro_frontend_step"]
    other = fixed.tensor(front.name)
    twice = Node("micro_frontend_step", front.inputs, ("again",), front.attrs)
    more = replace(
        fixed, nodes=(*fixed.nodes, twice), outputs=(*fixed.outputs, "again"),
        tensors={**fixed.tensors, "again": replace(other, name="again")},
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"micro_noise .* its samples and its noise are not"):
        lower(more)


def test_samples_that_no_frame_reads_are_refused(rng):
    heard = hearing(rng, MicroFront())
    longer = replace(heard.tensor("audio"), shape=(1, 1, 801, 1))
    fixed = fixed_of(replace(heard, tensors={**heard.tensors, "audio": longer}), rng)
    with pytest.raises(UnsupportedError, match="801 samples are not 3 frames of 480 samples"):
        lower(fixed)
