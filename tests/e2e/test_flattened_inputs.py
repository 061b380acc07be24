"""Networks that flatten their input first: the hardware and the integers of one on the flat input.

Only the host knows that the input is an image.
"""

import numpy as np
import pytest

from nnef_hw.architectures import find_architecture
from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.host.manifest import TensorStream
from nnef_hw.host.streams import to_stream
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.testing import GraphBuilder

SHAPES = {"flat": (1, 108), "gray": (1, 1, 9, 12), "colours": (1, 3, 6, 6), "signal": (1, 4, 27)}
SAMPLES = 24


def network(shape, form, rng):
    """Return two linear layers of an input of a shape, of which the first may be a filter."""
    net = GraphBuilder("net")
    x, count = net.input("x", shape), int(np.prod(shape))
    weights, bias = rng.normal(size=(6, count)), rng.normal(size=(1, 6))
    if form == "filter":
        y = net.conv(x, weights.reshape(6, *shape[1:]), bias, name="first")
        y = net.reshape(net.op("relu", y, name="y"), (1, 6))
    else:
        y = x if len(shape) == 2 else net.reshape(x, (1, count))
        y = net.op("relu", net.op("linear", y, weights, bias, name="first"), name="y")
    net.op("linear", y, rng.normal(size=(3, 6)), rng.normal(size=(1, 3)), name="out")
    return net.build("out")


def fixed(shape, form, samples):
    graph = simplify(network(shape, form, np.random.default_rng(5)))
    return quantize(graph, {"x": samples.reshape(-1, *shape[1:])})


@pytest.fixture
def samples(rng):
    return rng.normal(size=(SAMPLES, 108))


@pytest.mark.parametrize("form", ["flatten", "filter"])
@pytest.mark.parametrize("name", ["gray", "colours", "signal"])
def test_integers_are_those_of_the_flat_input(name, form, samples):
    shape = SHAPES[name]
    if form == "filter" and len(shape) != 4:
        shape = (*shape[:2], 1, *shape[2:])
    graph, flat = fixed(shape, form, samples), fixed(SHAPES["flat"], "flatten", samples)
    assert graph.tensor("x").shape == shape
    assert graph.tensor("x").qtype == flat.tensor("x").qtype
    codes = flat.tensor("x").qtype.quantize(samples)
    found = run_fixed(graph, {"x": codes.reshape(-1, *shape[1:])})["out"]
    assert np.array_equal(found, run_fixed(flat, {"x": codes})["out"])


@pytest.mark.parametrize("architecture", ["streaming", "engine"])
@pytest.mark.parametrize("board", ["icebreaker", "tang_nano_20k"])
def test_hardware_is_that_of_the_flat_input(architecture, board, samples):
    plans, streams = [], []
    for name in ("flat", "colours"):
        graph = fixed(SHAPES[name], "flatten", samples)
        found = find_architecture(architecture)
        plan = found.plan(graph, find_board(board))
        manifest = make_manifest(graph, plan, generator="test", link=DEFAULT_LINK)
        [entry] = manifest["inputs"]
        assert entry["shape"] == list(SHAPES[name])
        source = TensorStream.from_json(entry)
        codes = source.qtype.quantize(samples.reshape(-1, *SHAPES[name][1:]))
        plans.append((
            plan.interval,
            plan.latency,
            plan.multipliers,
            plan.resources,
            entry["image"],
        ))
        streams.append(to_stream(codes, source))
    assert plans[0] == plans[1]
    assert np.array_equal(*streams)
