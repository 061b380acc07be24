"""Passes must keep what a network computes, and leave only what hardware exists for."""

import numpy as np
import pytest
from quantized_graphs import COARSE, FINE, SCALES, assert_same_values, with_quants
from simplified import batch_norm, check

from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.reference.real.quantize import fake_quantize
from nnef_hw.testing import GraphBuilder


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_keep_their_results(seed, rng):
    builder = GraphBuilder()
    channels, extent = int(rng.integers(1, 4)), 12
    y = builder.input("x", (1, channels, extent, extent))
    for _ in range(int(rng.integers(2, 7))):
        match int(rng.integers(7)):
            case 0 | 1:
                outputs = int(rng.integers(1, 5))
                w = rng.standard_normal((outputs, channels, 3, 3))
                y, channels = builder.conv(y, w, rng.standard_normal(outputs), padding=1), outputs
            case 2:
                y = batch_norm(builder, y, channels, rng)
            case 3:
                y = builder.op(str(rng.choice(["relu", "tanh", "sigmoid"])), y)
            case 4 if extent % 2 == 0:
                y = builder.pool(str(rng.choice(["max_pool", "avg_pool"])), y, 2)
                extent //= 2
            case 5:
                y = builder.op("add", y, rng.standard_normal((1, channels)))
            case _:
                y = builder.op("copy", y)
    y = builder.reshape(y, [1, channels * extent**2])
    w = rng.standard_normal((3, channels * extent**2))
    y = builder.op("linear", y, w, rng.standard_normal((1, 3)))
    builder.op("softmax", y, axes=[1])
    check(builder.build(), rng)


def test_variables_keep_distinct_labels(image, rng):
    w = image.constant("w", rng.standard_normal((2, 108)), "shared")
    a = image.op("linear", image.reshape(image.op("sin", "x"), [1, 108]), w, 0.0)
    image.input("z", (1, 108))
    b = image.op("linear", "z", w, 0.0)
    graph = check(image.build(a, b), rng)
    labels = [t.label for t in graph.tensors.values() if t.label]
    assert len(labels) == 2
    assert len(set(labels)) == 2


def test_one_dimensional_and_transposed_filters_keep_their_codes(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 5))
    builder.constant("f", rng.integers(-9, 9, (3, 2, 3)) * SCALES[:, None, None], label="f")
    builder.conv("x", "f", np.zeros((1, 3)), name="c", padding=1)
    builder.reshape("c", [1, 15], name="r")
    builder.constant("m", rng.integers(-9, 9, (15, 4)) * 0.25, label="m")
    builder.op("matmul", "r", "m", name="y", transposeA=False, transposeB=False)
    per_channel = Quantization(COARSE.op, {**COARSE.args, "scale": SCALES})
    graph = with_quants(builder.build(), f=per_channel, m=COARSE, c=FINE, y=FINE)
    result = simplify(graph)

    filters = [result.tensor(node.inputs[1]) for node in result.nodes if node.op == "conv"]
    assert len(filters) == 2
    for tensor in filters:
        np.testing.assert_array_equal(fake_quantize(tensor.data, tensor.quant), tensor.data)
    assert_same_values(graph, result, rng)
