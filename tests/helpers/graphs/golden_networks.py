"""Small networks that take every kind of hardware; their numbers are the same everywhere.

Weights and samples are multiples of 1/16, so that no sum depends on how a machine adds.
"""

from dataclasses import dataclass, field

import numpy as np

from nnef_hw.ir import Graph
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.testing import GraphBuilder

__all__ = ["NETWORKS", "Golden", "outputs", "resampled", "signs", "wide"]


@dataclass(frozen=True)
class Golden:
    """A float graph and how it is quantized."""

    graph: Graph
    scheme: dict[str, object] = field(default_factory=dict)

    def fixed(self):
        """Quantize it on samples that are the same everywhere."""
        canonical = simplify(self.graph)
        samples = {
            name: _numbers(16, *canonical.tensor(name).shape[1:], seed=n)
            for n, name in enumerate(canonical.inputs)
        }
        return quantize(canonical, samples, Scheme(**self.scheme))


def _numbers(*shape, seed):
    return np.random.default_rng(seed).integers(-16, 17, shape) / 16


class _Net(GraphBuilder):
    """A graph whose weights follow from how many there were before."""

    def __init__(self):
        super().__init__()
        self.seed = 100

    def numbers(self, *shape):
        self.seed += 1
        return _numbers(*shape, seed=self.seed)

    def channels(self, x):
        return self.build(x).tensor(x).shape[1]

    def convolve(self, x, channels, kernel, *, groups=1, **more):
        weights = self.numbers(channels, self.channels(x) // groups, *kernel)
        return self.conv(x, weights, self.numbers(1, channels), groups=groups, **more)

    def depthwise(self, x, kernel, **more):
        return self.convolve(x, self.channels(x), kernel, groups=self.channels(x), **more)

    def linear(self, x, channels):
        weights = self.numbers(channels, self.channels(x))
        return self.op("linear", x, weights, self.numbers(1, channels))

    def relu(self, x):
        return self.op("relu", x)

    def slice(self, x, axis, begin, end):
        return self.op("slice", x, axes=[axis], begin=[begin], end=[end], stride=[1])


def lenet():
    g = _Net()
    x = g.convolve(g.input("x", [1, 1, 14, 14]), 4, [3, 3], padding=1)
    x = g.pool("max_pool", g.relu(x), 2)
    x = g.pool("avg_pool", g.relu(g.convolve(x, 8, [3, 3])), 2)
    x = g.relu(g.linear(g.reshape(x, [1, 32]), 10))
    return Golden(g.build(g.op("softmax", g.linear(x, 4), axes=[1])))


def residual():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 3, 6, 6]), 4, [3, 3], padding=1))
    y = g.relu(g.convolve(x, 4, [3, 3], padding=1))
    x = g.relu(g.op("add", x, g.convolve(y, 4, [3, 3], padding=1)))
    y = g.relu(g.convolve(x, 8, [3, 3], stride=2, padding=[(0, 1), (0, 1)]))
    x = g.op("sub", g.convolve(x, 8, [1, 1], stride=2), g.convolve(y, 8, [3, 3], padding=1))
    return Golden(g.build(g.linear(g.reshape(g.pool("avg_pool", x, 3), [1, 8]), 10)))


def separable():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 1, 10, 6]), 8, [5, 3], padding=[(2, 2), (1, 1)]))
    x = g.relu(g.depthwise(x, [3, 3], padding=1))
    x = g.relu(g.convolve(x, 12, [1, 1]))
    x = g.relu(g.depthwise(x, [3, 3], padding=1, stride=2))
    return Golden(g.build(g.op("mean_reduce", g.convolve(x, 6, [1, 1]), axes=[2, 3])))


def signal():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 3, 24]), 6, [5], padding=2))
    x = g.convolve(x, 8, [3], dilation=2, padding=[(4, 0)])
    return Golden(g.build(g.op("tanh", g.pool("max_pool", g.op("prelu", x, g.numbers(1, 8)), 2))))


def branches():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 2, 6, 6]), 6, [1, 1]))
    left, right = g.slice(x, 1, 0, 2), g.slice(x, 1, 2, 6)
    joined = g.op("concat", g.convolve(left, 4, [3, 3], padding=1), right, axis=1)
    return Golden(g.build(g.slice(joined, 2, 1, 5)))


def elementwise():
    g = _Net()
    x, y = g.input("x", [1, 4, 5, 5]), g.input("y", [1, 4, 5, 5])
    x, y = g.convolve(x, 4, [1, 1]), g.op("sigmoid", y)
    product = g.op("mul", x, y)
    x = g.op("max", product, g.op("min", x, y))
    return Golden(g.build(g.op("mul", g.op("add", x, g.numbers(1, 4, 1, 1)), g.op("abs", product))))


def resampled():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 2, 4, 5]), 4, [3, 3], padding=1))
    x = g.op("nearest_upsample", x, factor=[2, 2], shape=[1, 4, 8, 10])
    attrs = {"padding": [(0, 0), (0, 0)], "stride": [2, 2], "dilation": [1, 1], "groups": 1}
    weights, shape = g.numbers(4, 3, 2, 2), [1, 3, 16, 20]
    x = g.op("deconv", x, weights, 0.0, border="constant", output_shape=shape, shape=shape, **attrs)
    padding, shape = [(0, 0), (0, 0), (1, 0), (2, 1)], [1, 3, 17, 23]
    return Golden(
        g.build(g.op("pad", x, padding=padding, border="constant", value=0.5, shape=shape))
    )


def moved():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 3, 4, 6]), 4, [2, 2]))
    x = g.op("transpose", x, axes=[0, 2, 1, 3])
    x = g.convolve(x, 5, [1, 2])
    return Golden(g.build(g.relu(g.reshape(x, [1, 20, 4]))))


def pools():
    g = _Net()
    x = g.convolve(g.input("x", [1, 2, 12, 10]), 3, [2, 2])
    x = g.pool("max_pool", x, 3, stride=2, padding=1, border="ignore")
    x = g.pool("avg_pool", x, 2, stride=1, padding=1, border="ignore")
    return Golden(g.build(g.pool("max_pool", g.pool("avg_pool", x, 2), 3)))


def outputs():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 3, 6, 6]), 6, [3, 3], stride=2, padding=1))
    winner = g.op("argmax_reduce", x, axes=[1])
    return Golden(g.build(winner, g.op("exp", g.convolve(x, 2, [3, 3]))))


def interpolated():
    g = _Net()
    x = g.op("tanh", g.convolve(g.input("x", [1, 3, 9]), 5, [3]))
    return Golden(g.build(g.op("sigmoid", g.convolve(x, 3, [1]))), {"activation_bits": 12})


def tflite():
    g = _Net()
    x = g.relu(g.convolve(g.input("x", [1, 3, 6, 6]), 4, [3, 3], padding=1))
    x = g.op("add", x, g.convolve(x, 4, [1, 1]))
    x = g.linear(g.reshape(g.pool("max_pool", x, 6), [1, 4]), 5)
    return Golden(g.build(g.op("softmax", x, axes=[1])), {"rounding": "tflite"})


def signs():
    g = _Net()
    x = g.relu(g.linear(g.input("x", [1, 20]), 16))
    return Golden(g.build(g.linear(x, 6)), {"weight_bits": 1})


def perceptron():
    g = _Net()
    x = g.relu(g.linear(g.input("x", [1, 64]), 48))
    return Golden(g.build(g.linear(g.relu(g.linear(x, 32)), 10)), {"weight_bits": 6})


def wide():
    """More weights than any of these chips holds: they come from flash or SDRAM."""
    g = _Net()
    x = g.relu(g.linear(g.input("x", [1, 512]), 1024))
    return Golden(g.build(g.linear(x, 64)), {"weight_rounding": "nearest", "correct_bias": False})


NETWORKS = (
    lenet, residual, separable, signal, branches, elementwise, resampled, moved, pools, outputs,
    interpolated, tflite, signs, perceptron,
)  # fmt: skip
