"""Builds of small networks, made once."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.ir import Graph
from nnef_hw.testing import GraphBuilder

FEATURES = np.array([200.0, 1e-3])
"""What the channels of the network ``features`` are multiplied with."""


def network(head):
    """Return a network on 2x5x5 images that ends in ``head``."""
    rng = np.random.default_rng(3)
    net = GraphBuilder(head)
    y = net.input("image", [1, 2, 5, 5])
    if head == "ports":
        return two_by_two(net, y, rng)
    if head == "features":
        y = net.op("mul", y, FEATURES.reshape(1, 2, 1, 1), name="scaled")
    y = net.conv(y, rng.normal(size=(4, 2, 3, 3)), rng.normal(size=(1, 4)), padding=1)
    if head == "conv":
        return net.build(net.op("relu", y, name="out"))
    y = net.pool("max_pool", net.op("relu", y), 3, stride=2)
    if head == "image":
        return net.build(net.op("tanh", y, name="out"))
    y = net.reshape(y, [1, 16])
    y = net.op("linear", y, rng.normal(size=(5, 16)) / 4, rng.normal(size=(1, 5)), name="scores")
    if head == "softmax":
        net.op("softmax", y, axes=[1], name="out")
    elif head == "argmax":
        net.op("argmax_reduce", y, axes=[1], name="out")
    return net.build()


def two_by_two(net, image, rng):
    """Return a network of two inputs, one of which is taken at once, and two outputs."""
    mask = net.input("mask", [1, 1, 5, 5])
    y = net.conv(image, rng.normal(size=(1, 2, 3, 3)), padding=1)
    out = net.op("mul", y, mask, name="out")
    joined = net.op("concat", out, mask, axis=1, shape=[1, 2, 5, 5])
    flat = net.reshape(net.pool("max_pool", joined, 2, stride=2), [1, 8])
    return net.build(net.op("linear", flat, rng.normal(size=(3, 8)), 0.0, name="scores"), out)


@dataclass(frozen=True)
class Built:
    """A float network, inputs for it, and its build."""

    graph: Graph
    inputs: dict[str, np.ndarray]
    path: Path

    @property
    def output(self):
        """Name of the first output."""
        return self.graph.outputs[0]


@pytest.fixture(scope="session")
def make_build(tmp_path_factory):
    """Return a function that builds the network of a head for a board, once."""
    made = {}

    def make(head, board="icebreaker", **settings):
        key = (head, board, *settings.items())
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{head}_{board}")
            graph = network(head)
            save(graph, folder / "float.nnef.tgz")
            noise = np.random.default_rng(4)
            inputs = {
                name: noise.uniform(-1, 1, (40, *graph.tensor(name).shape[1:]))
                / (FEATURES.reshape(2, 1, 1) if head == "features" else 1.0)
                for name in graph.inputs
            }
            lone = {"inputs": inputs["image"]} if len(inputs) == 1 else inputs
            np.savez(folder / "samples.npz", **lone)
            options = BuildOptions(
                folder / "float.nnef.tgz", board, folder / "build",
                calibrate=folder / "samples.npz", bitstream=False, frames="all",
                **settings,
            )  # fmt: skip
            build(options)
            made[key] = Built(graph, inputs, folder / "build")
        return made[key]

    return make
