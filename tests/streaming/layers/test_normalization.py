"""Normalizations and divisions in hardware: the fixed model's codes, in the cycles of the Plan."""

import pytest
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed, run_float
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def convolved(g, rng, shape=(1, 2, 3, 4), channels=3):
    x = g.input("x", shape)
    return g.conv(x, rng.normal(size=(channels, shape[1], 1, 1)), rng.normal(size=channels))


def moments(g, x, axes):
    mean = g.op("mean_reduce", x, axes=axes)
    return mean, g.op("mean_reduce", g.op("sqr", g.op("sub", x, mean)), axes=axes)


def instance_norm(rng):
    g = GraphBuilder()
    x = convolved(g, rng)
    mean, variance = moments(g, x, [2, 3])
    offset, scale = rng.normal(size=(2, 1, 3))
    return g.build(g.op("batch_normalization", x, mean, variance, offset, scale, epsilon=1e-3))


def layer_norm(rng):
    """Of rows, along the last axis, with a gain for each place."""
    g = GraphBuilder()
    x = g.op("matmul", g.input("x", [1, 3, 4]), rng.normal(size=(1, 4, 5)),
             transposeA=False, transposeB=False)  # fmt: skip
    mean, variance = moments(g, x, [2])
    factor = g.op("rsqrt", g.op("add", variance, 1e-3))
    x = g.op("mul", g.op("sub", x, mean), factor)
    return g.build(g.op("mul", x, rng.normal(size=(1, 1, 5))))


def channels_last(rng):
    """Of channels that an exporter has put last, and back: the image is not moved at all."""
    g = GraphBuilder()
    x = g.op("transpose", convolved(g, rng, channels=6), axes=[0, 2, 3, 1])
    mean, variance = moments(g, x, [3])
    factor = g.op("rsqrt", g.op("add", variance, 0.1))
    x = g.op("mul", g.op("mul", g.op("sub", x, mean), factor), rng.normal(size=(1, 1, 1, 6)))
    return g.build(g.op("transpose", x, axes=[0, 3, 1, 2]))


def rms_norm(rng):
    g = GraphBuilder()
    x = g.op("linear", g.input("x", [1, 4]), rng.normal(size=(6, 4)), 0.0)
    power = g.op("mean_reduce", g.op("sqr", x), axes=[1])
    return g.build(g.op("div", x, g.op("sqrt", g.op("add", power, 1e-3))))


def local_response(rng):
    g = GraphBuilder()
    attrs = {"size": [1, 3, 1, 1], "alpha": 2.0, "beta": 0.75, "bias": 1.0}
    return g.build(g.op("local_response_normalization", convolved(g, rng, channels=5), **attrs))


def unit_vectors(rng):
    g = GraphBuilder()
    return g.build(g.op("l2_normalization", convolved(g, rng), axes=[1], bias=0.0, epsilon=1e-3))


def contrast(rng):
    g = GraphBuilder()
    attrs = {"size": [1, 1, 3, 3], "bias": 0.0, "epsilon": 0.1}
    return g.build(g.op("local_contrast_normalization", convolved(g, rng), **attrs))


def quotient(rng):
    g = GraphBuilder()
    x = convolved(g, rng)
    other = g.op("abs", g.conv("x", rng.normal(size=(3, 2, 1, 1)), name="other"))
    return g.build(g.op("div", x, g.op("add", other, 1.0)))


NETWORKS = {
    instance_norm: ["conv", "avg_pool", "sub", "sqr", "avg_pool", "pointwise", "mul", "conv"],
    layer_norm: ["conv", "normalize"],
    channels_last: ["conv", "normalize"],
    rms_norm: ["linear", "normalize"],
    local_response: ["conv", "sqr", "avg_pool", "pointwise", "mul"],
    unit_vectors: ["conv", "sqr", "conv", "pointwise", "mul"],
    contrast: ["conv", "avg_pool", "sub", "sqr", "avg_pool", "pointwise", "mul"],
    quotient: ["conv", "conv", "pointwise", "mul"],
}  # fmt: skip
"""Operators of each, beside those that move and repeat."""


# The others are made of the same operators.
@pytest.mark.parametrize(
    "network",
    few(list(NETWORKS), [instance_norm, layer_norm, channels_last, local_response]),
    ids=lambda f: f.__name__,
)
def test_codes_and_cycles(network, fix, simulate, rng):
    graph = fix(network(rng))
    moving = {"reshape", "transpose", "nearest_upsample"}
    assert [node.op for node in graph.nodes if node.op not in moving] == NETWORKS[network]
    plan = schedule(graph, find_board("ecp5"))
    simulate(plan, graph).check(3)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
def test_codes_are_near_the_real_numbers(network, rng):
    """In 12 bits: tables and products of quantized factors lose little."""
    graph = simplify(network(rng))
    samples = {name: rng.normal(size=(64, *graph.tensor(name).shape[1:])) for name in graph.inputs}
    fixed = quantize(graph, samples, Scheme(activation_bits=12))
    ((name, real),) = run_float(graph, samples).items()
    codes = {key: fixed.tensor(key).qtype.quantize(values) for key, values in samples.items()}
    found = fixed.tensor(name).qtype.dequantize(run_fixed(fixed, codes)[name])
    assert (real**2).sum() > 10**3.5 * ((found - real) ** 2).sum()
