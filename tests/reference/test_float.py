import math
import re

import numpy as np
import pytest

from nnef_hw.errors import SampleError, UnsupportedError
from nnef_hw.reference import run_float, trace_float
from nnef_hw.testing import GraphBuilder


def run_op(op, x, *args, shape=None, **attrs):
    """Result of one operator on a batch [N, ...]."""
    builder = GraphBuilder()
    builder.input("x", (1, *x.shape[1:]))
    builder.op(op, "x", *args, name="y", shape=shape, **attrs)
    return run_float(builder.build(), {"x": x})["y"]


UNARY = {
    "relu": (lambda x: max(x, 0.0), {}),
    "leaky_relu": (lambda x: x if x > 0 else 0.1 * x, {"alpha": 0.1}),
    "elu": (lambda x: x if x > 0 else 2.0 * (math.exp(x) - 1), {"alpha": 2.0}),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), {}),
    "silu": (lambda x: x / (1 + math.exp(-x)), {}),
    "gelu": (lambda x: x / (1 + math.exp(-1.702 * x)), {}),
    "softplus": (lambda x: math.log(math.exp(x) + 1), {}),
    "tanh": (math.tanh, {}),
    "hard_sigmoid": (lambda x: min(max(0.2 * x + 0.5, 0), 1), {}),
    "hard_swish": (lambda x: x * min(max(x / 6 + 0.5, 0), 1), {}),
    "round": (lambda x: math.floor(x + 0.5), {}),
    "sign": (lambda x: (x > 0) - (x < 0), {}),
    "rcp": (lambda x: 1 / x, {}),
    "sqr": (lambda x: x * x, {}),
    "rsqr": (lambda x: 1 / (x * x), {}),
    "neg": (lambda x: -x, {}),
    "clamp": (lambda x: max(min(x, 1.5), -0.5), {"a": -0.5, "b": 1.5}),
    "selu": (lambda x: 1.05070102 * (x if x > 0 else 1.67326319 * (math.exp(x) - 1)), {}),
}


@pytest.mark.parametrize("op", UNARY)
def test_unary_function(op):
    function, attrs = UNARY[op]
    x = np.array([[-7.25, -2.5, -1.0, -0.5, 0.5, 1.0, 2.5, 6.75]])
    expected = [function(v) for v in x[0].tolist()]
    np.testing.assert_allclose(run_op(op, x, **attrs)[0], expected, rtol=1e-12, atol=1e-15)


def test_functions_do_not_overflow_far_out():
    x = np.array([[-1e4, 1e4]])
    assert run_op("sigmoid", x).tolist() == [[0.0, 1.0]]
    assert run_op("softplus", x).tolist() == [[0.0, 1e4]]


def test_binary_broadcasts_from_the_left(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    b = rng.standard_normal((1, 3))
    np.testing.assert_array_equal(run_op("add", x, b), x + b.reshape(1, 3, 1, 1))
    np.testing.assert_array_equal(run_op("max", x, 0.25), np.maximum(x, 0.25))


def test_batch_normalization(rng):
    x = rng.standard_normal((2, 3, 4))
    m, v, o, s = rng.standard_normal((4, 1, 3))
    v = v**2
    expected = o[..., None] + s[..., None] * (x - m[..., None]) / np.sqrt(v[..., None] + 0.01)
    found = run_op("batch_normalization", x, m, v, o, s, epsilon=0.01)
    np.testing.assert_allclose(found, expected)


def test_reductions(rng):
    x = rng.standard_normal((3, 4, 2, 5))
    np.testing.assert_allclose(
        run_op("mean_reduce", x, axes=[2, 3]), x.mean(axis=(2, 3), keepdims=True)
    )
    np.testing.assert_allclose(
        run_op("sum_reduce", x, axes=[1], normalize=True), x.mean(axis=1, keepdims=True)
    )
    found = run_op("argmax_reduce", x, axes=[2, 3])
    assert (found.reshape(3, 4) == x.reshape(3, 4, 10).argmax(axis=-1)).all()


def test_argmax_takes_the_first_of_several():
    assert run_op("argmax_reduce", np.array([[1.0, 3.0, 3.0]]), axes=[1]).tolist() == [[1]]


def test_softmax_survives_large_numbers():
    np.testing.assert_allclose(
        run_op("softmax", np.array([[1000.0, 1000.0, -1000.0]]), axes=[1]), [[0.5, 0.5, 0.0]]
    )


def test_shape_operators(rng):
    x = rng.standard_normal((2, 3, 1, 4))
    assert (run_op("squeeze", x, axes=[2], shape=(1, 3, 4)) == x[:, :, 0]).all()
    assert (run_op("transpose", x, axes=[0, 3, 1, 2]) == x.transpose(0, 3, 1, 2)).all()
    assert (run_op("reshape", x, shape=(1, 12)) == x.reshape(2, 12)).all()
    assert (run_op("slice", x, axes=[3], begin=[-3], end=[0]) == x[..., 1:]).all()
    assert (run_op("slice", x, axes=[1], begin=[0], end=[3], stride=[2]) == x[:, ::2]).all()
    padded = run_op(
        "pad", x, padding=[(0, 0), (0, 0), (1, 0), (-1, 2)], border="constant", value=7.0
    )
    assert padded.shape == (2, 3, 2, 5)
    assert (padded[:, :, 1, :3] == x[:, :, 0, 1:]).all()
    assert (padded[:, :, 0] == 7).all()


def test_concat_and_split_are_inverse(rng):
    builder = GraphBuilder()
    builder.input("a", (1, 2, 3))
    builder.input("b", (1, 4, 3))
    builder.op("concat", "a", "b", name="y", axis=1)
    inputs = {"a": rng.standard_normal((5, 2, 3)), "b": rng.standard_normal((5, 4, 3))}
    found = run_float(builder.build(), inputs)["y"]
    np.testing.assert_array_equal(found, np.concatenate([inputs["a"], inputs["b"]], axis=1))


def test_matmul_and_linear_agree(rng):
    x, w = rng.standard_normal((6, 5)), rng.standard_normal((3, 5))
    expected = x @ w.T
    np.testing.assert_allclose(run_op("linear", x, w, 0.0), expected)
    np.testing.assert_allclose(run_op("matmul", x, w, transposeA=False, transposeB=True), expected)


def test_operators_that_move_the_batch_are_computed_one_sample_at_a_time(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3, 4))
    moved = builder.op("transpose", "x", axes=[1, 0, 2])
    product = builder.op("mul", moved, np.arange(3.0).reshape(3))
    builder.op("transpose", product, name="y", axes=[1, 0, 2])
    x = rng.standard_normal((5, 3, 4))
    found = run_float(builder.build(), {"x": x})["y"]
    np.testing.assert_allclose(found, x * np.arange(3.0).reshape(1, 3, 1))


def test_trace_has_every_activation_of_every_sample(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.op("relu", "x", name="r")
    builder.op("neg", "r", name="y")
    x = rng.standard_normal((150, 4))
    trace = trace_float(builder.build(), {"x": x})
    assert set(trace) == {"x", "r", "y"}
    np.testing.assert_array_equal(trace["r"], np.maximum(x, 0))


def test_operators_of_constants_are_computed_once(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3, 2, 2))
    bias = builder.op("unsqueeze", np.arange(3.0), axes=[0], shape=(1, 3))
    builder.op("add", "x", bias, name="y")
    x = rng.standard_normal((70, 3, 2, 2))
    found = run_float(builder.build(), {"x": x})["y"]
    np.testing.assert_allclose(found, x + np.arange(3.0).reshape(1, 3, 1, 1))


def test_unknown_operator_is_refused_with_its_location():
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    builder.op("fancy", "x", name="y", shape=(1, 3))
    with pytest.raises(UnsupportedError, match=r"net\.nnef:1: operator 'fancy' of 'y'"):
        run_float(builder.build(), {"x": np.zeros((1, 3))})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "no samples for input 'x'"),
        ({"x": np.zeros((2, 4))}, "input 'x' has shape [2, 4], not [N, 3]"),
        ({"x": np.zeros(3)}, "input 'x' has shape [3], not [N, 3]"),
        ({"x": np.zeros((0, 3))}, "there are no samples"),
    ],
    ids=["missing", "extent", "rank", "empty"],
)
def test_wrong_inputs_are_refused(inputs, message):
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    builder.op("relu", "x")
    with pytest.raises(SampleError, match=re.escape(message)):
        run_float(builder.build(), inputs)
