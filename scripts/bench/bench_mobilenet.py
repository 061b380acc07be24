"""MobileNetV2 of random weights, for images of 96 x 96: a network that no one has to fetch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnef_hw.ir import Graph
from nnef_hw.samples.samples import Samples
from nnef_hw.testing import GraphBuilder

__all__ = ["mobilenet_v2"]

# Of each group of bottlenecks: expansion, blocks, first stride.
BOTTLENECKS = ((1, 1, 1), (6, 2, 2), (6, 3, 2), (6, 4, 2), (6, 3, 1), (6, 3, 2), (6, 1, 1))


def mobilenet_v2(
    first: int, widths: Sequence[int], last: int, classes: int
) -> tuple[Graph, Samples]:
    """Return 52 convolutions, 10 sums, a pool and a linear layer, and four random images.

    Parameters
    ----------
    first, widths, last
        Channels of the first convolution, of every group of bottlenecks, and of the last one.
    classes
        Results.
    """
    rng = np.random.default_rng(1)
    net = GraphBuilder("mobilenetv2")

    def conv(x: str, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> str:
        shape = (outputs, inputs // groups, size, size)
        weights = rng.normal(size=shape) * (2 / np.prod(shape[1:])) ** 0.5
        bias = rng.normal(size=(1, outputs)) / 4
        return net.conv(x, weights, bias, padding=size // 2, stride=stride, groups=groups)

    x = net.op("relu", conv(net.input("image", [1, 3, 96, 96]), 3, first, 3, 2))
    channels = first
    for (expansion, blocks, first_stride), outputs in zip(BOTTLENECKS, widths, strict=True):
        for block in range(blocks):
            stride, inner, before = first_stride if block == 0 else 1, channels * expansion, x
            if expansion > 1:
                x = net.op("relu", conv(x, channels, inner, 1))
            x = net.op("relu", conv(x, inner, inner, 3, stride, inner))
            x = conv(x, inner, outputs, 1)
            if stride == 1 and channels == outputs:
                x = net.op("add", before, x)
            channels = outputs
    x = net.pool("avg_pool", net.op("relu", conv(x, channels, last, 1)), 3)
    weights = rng.normal(size=(classes, last)) / last**0.5
    net.op("linear", net.reshape(x, [1, last]), weights, 0.0)
    return net.build(), Samples({"image": rng.uniform(-1, 1, (4, 3, 96, 96))}, None)
