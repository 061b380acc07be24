"""Operators of several activations against Python integers."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Node, Stage, Tensor
from nnef_hw.passes import simplify
from nnef_hw.quantize import FixedParams, LayerParams, build_fixed
from nnef_hw.reference import run_fixed
from nnef_hw.testing import GraphBuilder

SHAPES = [(1, 5), (1, 3, 2, 4)]


def random_qtype(rng, bits=8):
    signed = bool(rng.integers(2))
    lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    zero_point = int(rng.choice([lo, hi, rng.integers(lo, hi + 1)]))
    return QType(bits, signed, float(rng.uniform(0.01, 0.1)), zero_point)


def random_codes(rng, qtype, shape):
    return rng.integers(qtype.lo, qtype.hi + 1, (7, *shape[1:]))


def binary(op, shape, formats, *, relu=False, constant=None):
    """A fixed graph of one operator on x and y, or on x and a constant y."""
    builder = GraphBuilder()
    builder.input("x", shape)
    if constant is None:
        builder.input("y", shape)
    else:
        builder.constant("y", np.asarray(constant))
    builder.op(op, "x", "y", name="z")
    graph = builder.build()
    if constant is None:
        if relu:
            builder.op("relu", "z", name="r")
            graph = builder.build()
        graph = simplify(graph)
        formats = {"r" if name == "z" and relu else name: q for name, q in formats.items()}
    else:
        graph = replace(graph, stage=Stage.CANONICAL)
    return build_fixed(graph, FixedParams(formats, {}))


def clipped(value, requant):
    return min(max(value + requant.zero_point, requant.lo), requant.hi)


def scaled_sum(a, b, requant):
    acc = a * requant.mult[0] + b * requant.mult[1]
    return clipped((acc + (1 << (requant.shift - 1))) >> requant.shift, requant)


def scaled_product(a, b, requant):
    acc = a * b * requant.mult[0]
    return clipped((acc + (1 << (requant.shift - 1))) >> requant.shift, requant)


FORMULAS = {"add": scaled_sum, "sub": scaled_sum, "mul": scaled_product}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("relu", [False, True], ids=["linear", "relu"])
@pytest.mark.parametrize("shape", SHAPES, ids=["vector", "image"])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_sums_are_bit_exact(op, shape, relu, bits, rng):
    formats = {name: random_qtype(rng, bits) for name in "xyz"}
    graph = binary(op, shape, formats, relu=relu)
    (node,) = graph.nodes
    requant = node.attrs["requant"]
    if relu:
        assert requant.lo == formats["z"].zero_point
    assert (requant.mult[1] < 0) is (op == "sub")
    _compare(graph, formats, scaled_sum, rng)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("shape", SHAPES, ids=["vector", "image"])
def test_products_are_bit_exact(shape, bits, rng):
    formats = {name: random_qtype(rng, bits) for name in "xy"}
    formats["z"] = replace(random_qtype(rng, bits), scale=0.5)
    _compare(binary("mul", shape, formats), formats, scaled_product, rng)


def _compare(graph, formats, formula, rng):
    (node,) = graph.nodes
    inputs = {name: random_codes(rng, formats[name], graph.tensor(name).shape) for name in "xy"}
    found = run_fixed(graph, inputs)[node.name]
    for index, code in np.ndenumerate(found):
        a, b = (int(inputs[name][index]) - formats[name].zero_point for name in "xy")
        assert code == formula(a, b, node.attrs["requant"])


@pytest.mark.parametrize("constant", [0.7, [[-0.5, 0.2, 0.9]]], ids=["number", "channels"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "max", "min"])
def test_constants_have_codes(op, constant, rng):
    x = QType(8, False, 0.02, zero_point=100)
    y = x if op in {"max", "min"} else QType(8, True, 0.01, zero_point=-7)
    formats = {"x": x, "y": y, "z": x if y is x else QType(8, False, 0.04, zero_point=128)}
    graph = binary(op, (1, 3, 2, 4), formats, constant=constant)
    (node,) = graph.nodes
    assert graph.tensor(node.inputs[1]).qtype == y
    codes = graph.constant(node.inputs[1])
    np.testing.assert_array_equal(codes, y.quantize(constant))
    inputs = {"x": random_codes(rng, x, (1, 3, 2, 4))}
    found = run_fixed(graph, inputs)["z"]
    for index, code in np.ndenumerate(found):
        a, b = int(inputs["x"][index]), int(np.broadcast_to(codes, (1, 3))[0, index[1]])
        if op in {"max", "min"}:
            assert code == {"max": max, "min": min}[op](a, b)
        else:
            assert code == FORMULAS[op](a - x.zero_point, b - y.zero_point, node.attrs["requant"])


@pytest.mark.parametrize("shape", SHAPES, ids=["vector", "image"])
@pytest.mark.parametrize("op", ["max", "min", "concat"])
def test_codes_of_other_formats_are_mapped_first(op, shape, rng):
    formats = {name: random_qtype(rng) for name in "xyz"}
    formats["z"] = formats["y"]
    builder = GraphBuilder()
    builder.input("x", shape)
    builder.input("y", shape)
    joined = {"axis": 1, "shape": (1, 2 * shape[1], *shape[2:])} if op == "concat" else {}
    node = builder.op(op, "x", "y", name="z", **joined)
    if op == "concat":
        builder._nodes[-1] = Node("concat", ("x", "y"), (node,), {"axis": 1})
    graph = build_fixed(simplify(builder.build()), FixedParams(formats, {}))
    assert [node.op for node in graph.nodes] == ["requantize", op]
    inputs = {name: random_codes(rng, formats[name], shape) for name in "xy"}
    x, target = formats["x"], formats["z"]
    mapped = target.quantize(x.dequantize(inputs["x"]))
    combine = {"max": np.maximum, "min": np.minimum, "concat": lambda a, b: np.hstack([a, b])}
    np.testing.assert_array_equal(run_fixed(graph, inputs)["z"], combine[op](mapped, inputs["y"]))


def test_a_constant_may_be_joined():
    tensors = {
        "x": Tensor("x", (1, 2)),
        "k": Tensor("k", (1, 1), data=np.array([[0.5]])),
        "z": Tensor("z", (1, 5)),
    }
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.op("relu", "x")
    node = Node("concat", ("k", "x", "x"), ("z",), {"axis": 1})
    graph = replace(builder.build(), tensors=tensors, nodes=(node,), outputs=("z",))
    qtype = QType(8, False, 0.1, zero_point=3)
    graph = graph.replaced(stage=Stage.CANONICAL)
    fixed = build_fixed(graph, FixedParams({"x": qtype, "z": qtype}, {}))
    found = run_fixed(fixed, {"x": np.array([[1, 2], [3, 4], [5, 6]])})["z"]
    assert found.tolist() == [[8, 1, 2, 1, 2], [8, 3, 4, 3, 4], [8, 5, 6, 5, 6]]


@pytest.mark.parametrize("op", ["conv", "linear"])
def test_sums_beyond_single_precision_are_exact(op, rng):
    """Odd sums above 2^24, which float32 has not; the bias brings them back into 16 bits."""
    builder = GraphBuilder()
    if op == "conv":
        builder.conv(builder.input("x", (1, 600, 2, 1)), np.ones((2, 600, 1, 1)), name="y")
    else:
        builder.op("linear", builder.input("x", (1, 600)), np.ones((2, 600)), 0.0, name="y")
    canonical = simplify(builder.build())
    shape = canonical.tensor(canonical.nodes[0].inputs[1]).shape
    bias = np.array([-127 * 254 * 600, 1 - 127 * 254 * 600])
    layer = LayerParams(np.full(shape, 127), bias, QType(8, True, 1.0))
    formats = {"x": QType(8, False, 1.0), "y": QType(16, False, 1.0)}
    graph = build_fixed(canonical, FixedParams(formats, {"y": layer}))
    x = 254 + rng.integers(0, 2, (50, *canonical.tensor("x").shape[1:]))
    total = 127 * (x - 254).sum(axis=1)
    expected = np.stack([total, total + 1], axis=1)
    np.testing.assert_array_equal(run_fixed(graph, {"x": x})["y"], expected)
