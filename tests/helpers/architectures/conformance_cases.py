"""Architectures, and small networks that they run: rows of the conformance tests.

A further architecture is another row of ``ARCHITECTURES``. The third one here is the tests' own.
"""

from functools import cache

import numpy as np
import pytest
from sweeps import covering
from table_architecture import OneTable

from nnef_hw import architectures
from nnef_hw.boards import find_board
from nnef_hw.errors import ErrorGroup, NnefHwError
from nnef_hw.host.streams import to_stream
from nnef_hw.ir.batch import sample_extents
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed
from nnef_hw.testing import GraphBuilder

__all__ = [
    "ARCHITECTURES", "BOARDS", "EACH", "FRAMES", "NETWORKS", "ONE_BOARD_EACH", "PAIRS",
    "SCHEMES", "beats_of", "codes_of", "fixed", "image", "kinds", "planned", "several", "vector",
]  # fmt: skip

ARCHITECTURES = {found.name: found for found in (*architectures.ARCHITECTURES, OneTable())}
BOARDS = ("icebreaker", "ulx3s_85f")
FRAMES = 5


def vector(rng):
    """Few bits of a frame."""
    net = GraphBuilder("vector")
    x = net.op("linear", net.input("x", (1, 4)), rng.normal(size=(3, 4)), rng.normal(size=(1, 3)))
    return net.build(net.op("tanh", x))


def image(rng):
    """An image of four pixels, whose codes do not leave in the order of elements."""
    net = GraphBuilder("image")
    x = net.conv(net.input("x", (1, 1, 2, 2)), rng.normal(size=(4, 1, 3, 3)), padding=1)
    return net.build(net.op("relu", x))


def shortcut(rng):
    """A branch that is added, then averages, then the greatest."""
    net = GraphBuilder("shortcut")
    x = net.conv(net.input("x", (1, 2, 4, 4)), rng.normal(size=(4, 2, 3, 3)), padding=1)
    y = net.op("add", x, net.conv(x, rng.normal(size=(4, 4, 1, 1))))
    y = net.pool("avg_pool", net.op("relu", y), 4)
    return net.build(net.op("argmax_reduce", y, axes=[1]))


def several(rng):
    """Two inputs and two outputs."""
    net = GraphBuilder("several")
    x, y = net.input("x", (1, 4, 3, 3)), net.input("y", (1, 4, 3, 3))
    both = net.op("max", x, y)
    filtered = net.conv(both, rng.normal(size=(4, 1, 3, 3)), groups=4, name="filtered")
    return net.build(net.op("sigmoid", both, name="both"), filtered)


def kinds(rng):
    """A layer of every kind that streaming has a folding for, in a row."""
    net = GraphBuilder("kinds")
    x = net.input("x", (1, 2, 7, 7))
    x = net.conv(x, rng.normal(size=(3, 2, 3, 3)), padding=[(0, 1), (2, 0)])
    x = net.pool("avg_pool", net.pool("max_pool", net.op("tanh", x), 2), 2, stride=1)
    x = net.op("softmax", net.pool("max_pool", x, 2, stride=1), axes=[1])
    return net.build(net.op("argmax_reduce", x, axes=[1]))


SCHEMES = {
    vector: {"activation_bits": 3},
    image: {"activation_bits": 2},
    shortcut: {},
    several: {},
    kinds: {},
}


@cache
def fixed(network):
    """Quantize a network on noise, once."""
    rng = np.random.default_rng(0)
    canonical = simplify(network(rng))
    samples = {
        name: rng.normal(size=(16, *sample_extents(canonical.tensor(name).shape)))
        for name in canonical.inputs
    }
    return quantize(canonical, samples, Scheme(**SCHEMES[network]))


@cache
def planned(architecture, network, board):
    return ARCHITECTURES[architecture].plan(fixed(network), find_board(board))


def _runs(architecture, network):
    try:
        planned(architecture, network, BOARDS[0])
    except (NnefHwError, ErrorGroup):
        return False
    return True


PAIRS = [(name, network) for name in ARCHITECTURES for network in SCHEMES if _runs(name, network)]
NETWORKS = pytest.mark.parametrize(
    ("name", "network"), PAIRS, ids=[f"{name}-{network.__name__}" for name, network in PAIRS]
)
ONE_BOARD_EACH = pytest.mark.parametrize(
    ("name", "network", "board"),
    covering(PAIRS, BOARDS),
    ids=lambda value: getattr(value, "__name__", value),
)
"""Networks of each architecture on one of the boards in turn, and on the other one at night."""
EACH = pytest.mark.parametrize("name", ARCHITECTURES)


def codes_of(graph, rng, frames=FRAMES):
    codes = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        shape = (frames, *sample_extents(tensor.shape))
        codes[name] = rng.integers(tensor.qtype.lo, tensor.qtype.hi + 1, shape)
    return codes


def beats_of(graph, plan, codes):
    """Return the payloads of every input, and the codes that every output must give."""
    fed, expected, results = {}, {}, run_fixed(graph, codes)
    for name, port in zip(graph.inputs, plan.inputs, strict=True):
        fed[port.name] = [
            {"data": lanes, "last": n == port.beats - 1}
            for frame in to_stream(codes[name], port).tolist()
            for n, lanes in enumerate(frame)
        ]
    for name, port in zip(graph.outputs, plan.outputs, strict=True):
        expected[port.name] = to_stream(results[name], port).ravel().tolist()
    return fed, expected
