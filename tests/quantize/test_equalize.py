"""Scales moved between layers: the same network, easier to quantize."""

import dataclasses

import numpy as np
import pytest

from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, equalize, quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float, trace_float
from nnef_hw.testing import GraphBuilder

SPREAD = 10.0 ** np.linspace(-1.5, 1.5, 8)


def uneven(rng, between=("relu",), *, depthwise=True):
    """Two or three layers with channels of very different ranges between the first two."""
    builder = GraphBuilder()
    builder.input("x", (1, 3, 8, 8))
    weights = rng.standard_normal((8, 3, 3, 3)) * SPREAD.reshape(-1, 1, 1, 1)
    y = builder.conv("x", weights, rng.standard_normal(8) * SPREAD, padding=1, name="c1")
    for op in between:
        y = builder.pool(op, y, 2) if op.endswith("pool") else builder.op(op, y)
    if depthwise:
        weights = rng.standard_normal((8, 1, 3, 3)) / SPREAD.reshape(-1, 1, 1, 1)
        y = builder.conv(y, weights, groups=8, name="c2")
    else:
        weights = rng.standard_normal((8, 8, 1, 1)) / SPREAD.reshape(1, -1, 1, 1)
        y = builder.conv(y, weights, name="c2")
    y = builder.op("relu", y, name="r2")
    y = builder.conv(y, rng.standard_normal((5, 8, 1, 1)), name="c3")
    return simplify(builder.build())


def sqnr_db(real, fixed):
    return 10 * np.log10((real**2).mean() / ((real - fixed) ** 2).mean())


@pytest.mark.parametrize("depthwise", [True, False])
@pytest.mark.parametrize(
    "between", [(), ("relu",), ("relu", "max_pool"), ("relu", "avg_pool")], ids=str
)
def test_results_are_the_same_and_ranges_more_equal(between, depthwise, rng):
    graph = uneven(rng, between, depthwise=depthwise)
    better = equalize(graph)
    x = {"x": rng.standard_normal((20, 3, 8, 8))}
    name = graph.outputs[0]
    np.testing.assert_allclose(run_float(better, x)[name], run_float(graph, x)[name], rtol=1e-9)

    def spread(network):
        ranges = np.abs(trace_float(network, x)[network.nodes[0].name]).max(axis=(0, 2, 3))
        return ranges.max() / ranges.min()

    assert spread(better) < spread(graph) / 20


def test_one_scale_for_all_weights_needs_equal_ranges(rng):
    graph = uneven(rng)
    x = {"x": rng.standard_normal((100, 3, 8, 8))}
    name = graph.outputs[0]
    noise = {}
    for equalized in (False, True):
        scheme = Scheme(per_channel=False, equalize=equalized)
        fixed = quantize(graph, x, scheme)
        found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))
        noise[equalized] = sqnr_db(run_float(graph, x)[name], found[name])
    assert noise[True] > noise[False] + 10


def test_channels_that_nobody_reads_or_writes_stay(rng):
    graph = uneven(rng)
    tensors = dict(graph.tensors)
    for node, channel in ((graph.nodes[0], 1), (graph.nodes[1], 2)):
        data = np.array(graph.constant(node.inputs[1]))
        data[channel] = 0.0
        tensors[node.inputs[1]] = dataclasses.replace(tensors[node.inputs[1]], data=data)
    graph = graph.replaced(tensors=tensors)
    filters = [
        equalize(graph).constant(graph.nodes[0].inputs[1]),
        graph.constant(graph.nodes[0].inputs[1]),
    ]
    np.testing.assert_array_equal(filters[0][1:3], filters[1][1:3])
    assert not np.array_equal(filters[0][3:], filters[1][3:])


@pytest.mark.parametrize("case", ["another reader", "result", "quantized", "tanh"])
def test_layers_whose_scale_others_see_stay(case, rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4, 1, 1))
    builder.conv("x", rng.standard_normal((4, 4, 1, 1)) * SPREAD[:4].reshape(-1, 1, 1, 1), name="a")
    y = builder.op("tanh" if case == "tanh" else "relu", "a", name="f")
    builder.conv(y, rng.standard_normal((2, 4, 1, 1)), name="b")
    outputs = ["b"]
    if case == "another reader":
        outputs.append(builder.op("sigmoid", y))
    if case == "result":
        outputs.append(y)
    graph = simplify(builder.build(*outputs))
    if case == "quantized":
        quant = Quantization("linear_quantize", {"min": 0.0, "max": 3.0, "bits": 8})
        tensors = {**graph.tensors, "f": dataclasses.replace(graph.tensor("f"), quant=quant)}
        graph = graph.replaced(tensors=tensors)
    assert equalize(graph) is graph
