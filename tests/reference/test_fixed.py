import logging
import re
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.softmax import SOFTMAX_QTYPE
from nnef_hw.errors import SampleError
from nnef_hw.passes import simplify
from nnef_hw.quantize import FixedParams, LayerParams, build_fixed, quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, trace_fixed
from nnef_hw.testing import GraphBuilder


def random_qtype(rng, *, signed=None):
    """An 8-bit format with a zero point anywhere, its limits included."""
    signed = bool(rng.integers(2)) if signed is None else signed
    lo, hi = (-128, 127) if signed else (0, 255)
    zero_point = int(rng.choice([lo, hi, rng.integers(lo, hi + 1)]))
    return QType(8, signed, float(rng.uniform(0.01, 0.1)), zero_point)


def naive_requantize(acc, requant, channel):
    mult = requant.mult[channel % len(requant.mult)]
    scaled = (acc * mult + (1 << (requant.shift - 1))) >> requant.shift
    return min(max(scaled + requant.zero_point, requant.lo), requant.hi)


def naive_conv(x, w, b, zero_point, attrs):
    """Fixed convolution in Python integers: differences of codes, zeros outside."""
    (pt, pb), (pl, pr) = attrs["padding"]
    (sy, sx), (dy, dx) = attrs["stride"], attrs["dilation"]
    out_channels, depth, kh, kw = w.shape
    count, _, height, width = x.shape
    rows = (pt + height + pb - (kh - 1) * dy - 1) // sy + 1
    columns = (pl + width + pr - (kw - 1) * dx - 1) // sx + 1
    y = np.zeros((count, out_channels, rows, columns), np.int64)
    for n, k, i, j in np.ndindex(*y.shape):
        acc = int(b[k])
        for c, u, v in np.ndindex(depth, kh, kw):
            r, s = i * sy + u * dy - pt, j * sx + v * dx - pl
            if 0 <= r < height and 0 <= s < width:
                channel = k // (out_channels // attrs["groups"]) * depth + c
                acc += (int(x[n, channel, r, s]) - zero_point) * int(w[k, c, u, v])
        y[n, k, i, j] = naive_requantize(acc, attrs["requant"], k)
    return y


def fixed_layer(graph, source, target, weight_qtype, rng):
    """A fixed graph of one conv or linear with random integers."""
    canonical = simplify(graph)
    (node,) = canonical.nodes
    shape = canonical.tensor(node.inputs[1]).shape
    layer = LayerParams(
        rng.integers(weight_qtype.lo, weight_qtype.hi + 1, shape),
        rng.integers(-5000, 5000, shape[0]),
        weight_qtype,
    )
    params = FixedParams({"x": source, node.name: target}, {node.name: layer})
    return build_fixed(canonical, params)


@pytest.mark.parametrize("seed", range(30))
def test_conv_is_bit_exact(seed, rng):
    groups = int(rng.choice([1, 1, 2, 4]))
    channels, outputs = groups * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
    height, width = (int(v) for v in rng.integers(5, 9, 2))
    kh, kw = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    builder = GraphBuilder()
    builder.input("x", (1, channels, height, width))
    padding = [tuple(int(v) for v in rng.integers(0, 3, 2)) for _ in range(2)]
    w = np.ones((outputs, channels // groups, kh, kw))
    window = {"stride": int(rng.integers(1, 4)), "dilation": int(rng.integers(1, 3))}
    y = builder.conv("x", w, name="y", padding=padding, groups=groups, **window)
    if rng.integers(2):
        builder.op("relu", y, name="r")
    bits = int(rng.integers(2, 9))
    scales = rng.uniform(0.001, 0.05, outputs).tolist()
    scale = tuple(scales) if rng.integers(2) else scales[0]
    weight_qtype = QType(bits, True, scale, narrow=bool(rng.integers(2)))
    source = random_qtype(rng)
    graph = fixed_layer(builder.build(), source, random_qtype(rng), weight_qtype, rng)
    (node,) = graph.nodes
    x = rng.integers(source.lo, source.hi + 1, (2, channels, height, width))
    weights, bias = graph.constant(node.inputs[1]), graph.constant(node.inputs[2])
    expected = naive_conv(x, weights, bias[0], source.zero_point, node.attrs)
    np.testing.assert_array_equal(run_fixed(graph, {"x": x})[node.name], expected)


@pytest.mark.parametrize("seed", range(5))
def test_linear_is_bit_exact(seed, rng):
    builder = GraphBuilder()
    builder.input("x", (1, 17))
    builder.op("linear", "x", np.ones((5, 17)), 0.0, name="y")
    source, weight_qtype = random_qtype(rng), QType(8, True, (0.01, 0.02, 0.05, 0.01, 0.03))
    graph = fixed_layer(builder.build(), source, random_qtype(rng), weight_qtype, rng)
    (node,) = graph.nodes
    x = rng.integers(source.lo, source.hi + 1, (40, 17))
    w, b = graph.constant(node.inputs[1]).tolist(), graph.constant(node.inputs[2])[0].tolist()
    found = run_fixed(graph, {"x": x})["y"]
    for n, k in np.ndindex(*found.shape):
        acc = b[k] + sum(
            (q - source.zero_point) * v for q, v in zip(x[n].tolist(), w[k], strict=True)
        )
        assert found[n, k] == naive_requantize(acc, node.attrs["requant"], k)


def test_weights_may_have_a_zero_point(rng):
    for op, weights in (("conv", (3, 2, 2, 2)), ("linear", (3, 8))):
        builder = GraphBuilder()
        x = builder.input("x", (1, 2, 4, 4) if op == "conv" else (1, 8))
        attrs = {"border": "constant", "padding": [(1, 1), (0, 1)], "stride": [1, 1],
                 "dilation": [1, 1], "groups": 1} if op == "conv" else {}  # fmt: skip
        name = builder.op(op, x, rng.normal(size=weights), rng.normal(size=(1, 3)), **attrs)
        graph = simplify(builder.build(name))
        fixed = quantize(graph, {"x": rng.normal(size=(8, *graph.tensor("x").shape[1:]))})
        tensor = fixed.tensor(fixed.nodes[0].inputs[1])
        shifted = replace(
            tensor,
            data=tensor.data + 5,
            qtype=replace(tensor.qtype, bits=9, narrow=False, zero_point=5),
        )
        moved = fixed.replaced(tensors={**fixed.tensors, tensor.name: shifted})
        codes = quantize_inputs(fixed, {"x": rng.normal(size=(4, *graph.tensor("x").shape[1:]))})
        expected = run_fixed(fixed, codes)
        for output, values in run_fixed(moved, codes).items():
            np.testing.assert_array_equal(values, expected[output])


def fixed_graph(builder, activations):
    return build_fixed(simplify(builder.build()), FixedParams(activations, {}))


def test_relu_in_a_layer_is_a_higher_lower_limit(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    y = builder.op("linear", "x", np.ones((3, 4)), 0.0)
    builder.op("relu", y, name="y")
    target = QType(8, False, 0.05, zero_point=30)
    graph = fixed_layer(builder.build(), random_qtype(rng), target, QType(8, True, 0.01), rng)
    found = run_fixed(graph, {"x": rng.integers(0, 100, (50, 4))})["y"]
    assert found.min() == 30
    assert graph.nodes[0].attrs["requant"].lo == 30


@pytest.mark.parametrize(
    ("border", "inserted"), [("ignore", -128), ("constant", 5)], ids=["ignore", "constant"]
)
def test_max_pool_pads_with_the_lowest_code_or_the_code_of_zero(border, inserted, rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    builder.pool("max_pool", "x", 3, name="y", padding=1, stride=2, border=border)
    graph = fixed_graph(builder, {"x": QType(8, True, 0.1, zero_point=5)})
    x = rng.integers(-128, 128, (20, 2, 4, 4))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=inserted)
    expected = np.array([
        [padded[..., i : i + 3, j : j + 3].max(axis=(2, 3)) for j in (0, 2)] for i in (0, 2)
    ])
    np.testing.assert_array_equal(run_fixed(graph, {"x": x})["y"], expected.transpose(2, 3, 0, 1))
    assert graph.tensor("y").qtype == graph.tensor("x").qtype


def test_avg_pool_is_bit_exact(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 5, 5))
    builder.pool("avg_pool", "x", 3, name="y", padding=1, stride=2)
    source, target = QType(8, False, 0.1, zero_point=40), QType(8, False, 0.07, zero_point=9)
    graph = fixed_graph(builder, {"x": source, "y": target})
    x = rng.integers(0, 256, (3, 2, 5, 5))
    found = run_fixed(graph, {"x": x})["y"]
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=40)
    for n, c, i, j in np.ndindex(*found.shape):
        acc = int(padded[n, c, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].sum()) - 9 * 40
        assert found[n, c, i, j] == naive_requantize(acc, graph.nodes[0].attrs["requant"], 0)
    real = target.dequantize(found)
    exact = (0.1 * (padded - 40.0))[:, :, :3, :3].mean(axis=(2, 3))
    assert np.abs(real[:, :, 0, 0] - np.clip(exact, -0.63, 17.22)).max() <= 0.036


def test_avg_pool_divides_by_the_pixels_that_count(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 5, 4))
    builder.pool("avg_pool", "x", 3, name="y", padding=1, stride=1, border="ignore")
    source, target = QType(8, False, 0.1, zero_point=40), QType(8, False, 0.07, zero_point=9)
    graph = fixed_graph(builder, {"x": source, "y": target})
    assert len(graph.nodes[0].attrs["requant"].mult) == 3  # of 4, 6 and 9 pixels
    x = rng.integers(0, 100, (3, 2, 5, 4))
    found = run_fixed(graph, {"x": x})["y"]
    for n, c, i, j in np.ndindex(*found.shape):
        inside = x[n, c, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
        exact = 0.1 * (inside.mean() - 40) / 0.07 + 9
        assert abs(found[n, c, i, j] - min(max(exact, 0), 255)) <= 0.501


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
def test_tables_are_indexed_from_the_lowest_code(signed):
    builder = GraphBuilder()
    builder.input("x", (1, 256))
    builder.op("tanh", "x", name="y")
    source = QType(8, signed, 0.02, zero_point=0 if signed else 128)
    target = QType(8, False, 2 / 255, zero_point=128)
    graph = fixed_graph(builder, {"x": source, "y": target})
    codes = np.arange(source.lo, source.hi + 1)[None]
    found = run_fixed(graph, {"x": codes})["y"]
    np.testing.assert_array_equal(found, target.quantize(np.tanh(source.dequantize(codes))))


def test_softmax_and_argmax(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 10))
    builder.op("softmax", "x", name="p", axes=[1])
    builder.op("argmax_reduce", "p", name="y", axes=[1])
    graph = fixed_graph(builder, {"x": QType(8, False, 0.1), "p": SOFTMAX_QTYPE})
    trace = trace_fixed(graph, {"x": rng.integers(0, 256, (70, 10))})
    assert graph.tensor("p").qtype == SOFTMAX_QTYPE
    assert graph.tensor("y").qtype == QType(4, False, 1.0)
    np.testing.assert_array_equal(trace["y"][:, 0], trace["p"].argmax(axis=1))
    real = dequantize_outputs(graph, trace)
    e = np.exp(real["x"] - real["x"].max(axis=1, keepdims=True))
    assert np.abs(real["p"] - e / e.sum(axis=1, keepdims=True)).max() < 1.5 / 256
    assert set(trace) == {"x", "p", "y"}


@pytest.fixture
def identity():
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.op("relu", "x", name="y")
    qtype = QType(8, False, 0.1)
    return fixed_graph(builder, {"x": qtype, "y": qtype})


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((1, 2)), "takes integer codes, not float64"),
        (np.array([[0, 256]]), "takes codes 0..255, not 0..256"),
        (np.array([[0, 1, 2]]), "has shape [1, 3], not [N, 2]"),
    ],
    ids=["float", "range", "shape"],
)
def test_wrong_codes_are_refused(identity, codes, message):
    with pytest.raises(SampleError, match=re.escape(message)):
        run_fixed(identity, {"x": codes})


def test_inputs_far_outside_of_the_calibrated_range_are_logged(identity, caplog):
    with caplog.at_level(logging.WARNING):
        quantize_inputs(identity, {"x": np.full((5, 2), 25.0)})
    assert not caplog.records
    codes = quantize_inputs(identity, {"x": np.array([[1.0, 99.0]])})
    assert codes["x"].tolist() == [[10, 255]]
    assert "input 'x': 50% of the values are outside of 0..25.5" in caplog.text
