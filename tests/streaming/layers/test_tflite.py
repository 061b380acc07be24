"""TensorFlow Lite's rounding in hardware: its codes, in the cycles of the Plan."""

import dataclasses

import numpy as np
import pytest
from sweeps import alternate

from nnef_hw.boards import find_board
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Quantization
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 3


def kept_formats(graph, **formats):
    """Give tensors a scale and a zero point of signed bytes: averages keep their input's."""
    tensors = dict(graph.tensors)
    for name, (scale, zero) in formats.items():
        args = {
            "bits": 8,
            "signed": True,
            "symmetric": zero == 0,
            "scale": scale,
            "zero_point": zero,
        }
        quant = Quantization("zero_point_linear_quantize", args)
        tensors[name] = dataclasses.replace(tensors[name], quant=quant)
    return graph.replaced(tensors=tensors)


def convolutions(rng):
    """Filters of very different sizes, so that channels have shifts of their own; depthwise too."""
    g = GraphBuilder()
    weights = rng.normal(size=[5, 2, 3, 3]) * 2.0 ** -np.arange(5).reshape(-1, 1, 1, 1)
    g.conv(g.input("x", [1, 2, 5, 6]), weights, rng.normal(size=5), padding=1, name="a")
    g.op("relu", "a", name="r")
    y = g.conv("r", rng.normal(size=[5, 1, 3, 3]), rng.normal(size=5), groups=5, stride=2)
    return g.build(y)


def residual(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 3, 5, 5])
    y = g.conv(x, rng.normal(size=[3, 3, 3, 3]), rng.normal(size=3), padding=1)
    return g.build(g.op("relu", g.op("add", x, y)))


def symmetric_operands(rng):
    """Codes from -127 to 127."""
    g = GraphBuilder()
    g.conv(g.input("x", [1, 3, 5, 5]), rng.normal(size=[3, 3, 1, 1]), name="c")
    return kept_formats(g.build(g.op("add", "x", "c")), x=(0.03, 0), c=(0.09, 0))


def constant_operand(rng):
    g = GraphBuilder()
    return g.build(g.op("add", rng.normal(size=[1, 4]), g.input("x", [1, 4, 2, 3])))


def averages(rng):
    g = GraphBuilder()
    g.pool("avg_pool", g.input("x", [1, 3, 5, 6]), 3, stride=1, padding=1, name="p")
    g.conv("p", rng.normal(size=[4, 3, 1, 1]), name="c")
    g.pool("avg_pool", "c", 2, name="q")
    return kept_formats(g.build(), x=(0.03, 5), p=(0.03, 5), c=(0.09, -70), q=(0.09, -70))


def averages_at_borders(rng):
    """TensorFlow Lite's own: padding does not count."""
    g = GraphBuilder()
    g.pool("avg_pool", g.input("x", [1, 3, 5, 6]), 3, stride=2, padding=1, name="p",
           border="ignore")  # fmt: skip
    return kept_formats(g.build(), x=(0.03, 5), p=(0.03, 5))


def global_average(rng):
    g = GraphBuilder()
    g.conv(g.input("x", [1, 2, 5, 5]), rng.normal(size=[3, 2, 1, 1]), name="c")
    return kept_formats(g.build(g.pool("avg_pool", "c", 5, name="p")), c=(0.1, 3), p=(0.1, 3))


def classifier(rng):
    g = GraphBuilder()
    x = g.op("linear", g.input("x", [1, 9]), rng.normal(size=[7, 9]), rng.normal(size=[1, 7]))
    x = g.op("linear", x, rng.normal(size=[5, 7]), rng.normal(size=[1, 5]))
    return g.build(g.op("softmax", x, axes=[1]))


def probabilities_of_pixels(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 2, 3]), 3 * rng.normal(size=[3, 2, 1, 1]))
    return g.build(g.op("softmax", x, axes=[1]))


def product_and_difference(rng):
    """A gate, and a difference whose first operand is a constant."""
    g = GraphBuilder()
    g.op("sigmoid", g.input("x", [1, 3, 4, 4]), name="s")
    g.op("mul", "x", "s", name="p")
    g.op("sub", rng.normal(size=[1, 3]), "p", name="d")
    graph = kept_formats(g.build(), p=(0.05, 3), d=(0.07, -20))
    return graph.replaced(rounding="tflite")


def mean(rng):
    """What MEAN is, and no pool: another format, and a quotient for a multiplier."""
    g = GraphBuilder()
    g.conv(g.input("x", [1, 2, 5, 3]), rng.normal(size=[3, 2, 1, 1]), name="c")
    g.op("mean_reduce", "c", name="m", axes=[2, 3])
    graph = kept_formats(g.build(), c=(0.1, 3), m=(0.03, -9))
    return graph.replaced(rounding="tflite")


def functions(rng):
    g = GraphBuilder()
    y = g.op("leaky_relu", g.input("x", [1, 3, 4, 2]), alpha=0.3, name="l")
    return g.build(g.op("tanh", y))


NETWORKS = (
    convolutions, residual, symmetric_operands, constant_operand, averages, averages_at_borders,
    global_average, classifier, probabilities_of_pixels, product_and_difference, mean, functions,
)  # fmt: skip


@pytest.mark.parametrize("network", alternate(NETWORKS), ids=lambda f: f.__name__)
def test_plan_of_the_solver(network, fix, simulate, rng):
    graph = fix(network(rng), rounding="tflite")
    plan = schedule(graph, find_board("ice40"))
    simulate(plan, graph).check(FRAMES)


@pytest.mark.parametrize("network", alternate(NETWORKS, 1), ids=lambda f: f.__name__)
def test_foldings_by_force(network, fix, force, simulate, rng):
    target = find_board("ecp5")
    graph = fix(network(rng), rounding="tflite")
    plan = force(schedule(graph, target), graph, target)
    simulate(plan, graph).check(FRAMES)


def wide_residual(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 3, 3])
    y = g.conv(x, rng.normal(size=[2, 2, 1, 1]))
    return g.build(g.op("add", x, y, name="s"))


def wide_sums(_):
    g = GraphBuilder()
    g.op("linear", g.input("x", [1, 2048]), np.ones([1, 2048]), 0.0, name="l")
    return g.build()


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (wide_residual, "add 's': operands of 16 bits need tables of 65536 entries; use activ"),
        (wide_sums, "linear 'l': sums of \\d\\d bits exceed the 32 of TensorFlow Lite; use activ"),
    ],
)
def test_what_has_no_hardware_is_refused(network, message, fix, rng):
    graph = fix(network(rng), rounding="tflite", activation_bits=16)
    with pytest.raises(UnsupportedError, match=message):
        schedule(graph, find_board("ecp5"))
