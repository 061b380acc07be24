"""The quantization operators against the formulas of the specification, number by number."""

import math

import numpy as np
import pytest

from nnef_hw.ir import Graph, Node, Quantization, Tensor
from nnef_hw.reference import run_float
from nnef_hw.reference.real.quantize import code_range, decode, encode, fake_quantize

VALUES = [-9.0, -1.51, -1.0, -0.5, -0.25, -0.126, 0.0, 0.01, 0.126, 0.25, 0.5, 1.0, 1.51, 9.0]
FLAGS = [(False, False), (True, False), (True, True)]
LINEAR = [
    *((("zero_point_linear_quantize"), {"zero_point": 3, "scale": 0.1, "bits": 5,
       "signed": a, "symmetric": b}) for a, b in FLAGS),
    *((("min_max_linear_quantize"), {"min": -1.25, "max": 2.0, "bits": 5, "signed": a,
       "symmetric": b}) for a, b in FLAGS),
    ("linear_quantize", {"min": -1.25, "max": 2.0, "bits": 3}),
]  # fmt: skip
ALL = [*LINEAR, ("logarithmic_quantize", {"max": 1.75, "bits": 3})]
IDS = [f"{op}-{i}" for i, (op, _) in enumerate(ALL)]


def nearest(x):
    return math.floor(x + 0.5)


def clamp(x, lo, hi):
    return max(min(x, hi), lo)


def by_formula(op, x, bits, *, signed=False, symmetric=False, **args):
    """Return one value, as spec section 4.9.5 writes it."""
    if op == "zero_point_linear_quantize":
        r = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
        low = 0.0 if not signed else -r if symmetric else -r - 1.0
        s = nearest(x / args["scale"]) + args["zero_point"]
        return (clamp(s, low, r) - args["zero_point"]) * args["scale"]
    if op == "logarithmic_quantize":
        m, r = math.ceil(math.log2(args["max"])), 2**bits - 1
        q = nearest(clamp(math.log2(abs(x)) if x else -math.inf, m - r, m))
        return math.copysign(2.0**q, x) if x else 0.0
    low, high = args["min"], args["max"]
    r = 2**bits - 1 - int(signed and symmetric)
    p = 2 ** (bits - 1) - int(symmetric) if signed else 0
    q = nearest((clamp(x, low, high) - low) / (high - low) * r) - p
    return (q + p) / r * (high - low) + low


@pytest.mark.parametrize(("op", "args"), ALL, ids=IDS)
def test_values_are_those_of_the_formula(op, args):
    expected = [by_formula(op, x, **args) for x in VALUES]

    np.testing.assert_array_equal(fake_quantize(VALUES, Quantization(op, args)), expected)


@pytest.mark.parametrize(("op", "args"), LINEAR, ids=IDS[:-1])
def test_codes_fill_their_range_and_decode_to_the_values(op, args):
    quant = Quantization(op, args)
    x = np.linspace(-9, 9, 1001)
    codes = encode(x, quant)

    assert (codes.min(), codes.max()) == code_range(quant)
    np.testing.assert_array_equal(decode(codes, quant), fake_quantize(x, quant))


@pytest.mark.parametrize(
    ("sign_bit", "codes", "values"),
    [
        (False, [0, 1, 6, 7], [2.0**-6, 2.0**-5, 1.0, 2.0]),
        (True, [0, 3, 4, 7, -1], [0.25, 2.0, -0.25, -2.0, -2.0]),
    ],
)
def test_logarithmic_codes(sign_bit, codes, values):
    quant = Quantization("logarithmic_quantize", {"max": 1.75, "bits": 3})

    assert decode(np.array(codes), quant, sign_bit=sign_bit).tolist() == values


@pytest.mark.parametrize("shape", [(2,), (2, 1), (1, 3), (2, 3, 1)], ids=str)
def test_ranges_broadcast_from_the_first_dimension(rng, shape):
    x = rng.normal(size=(2, 3, 4))
    scale = rng.uniform(0.01, 0.5, shape)
    args = {"zero_point": 0, "bits": 8, "signed": True, "symmetric": True}
    result = fake_quantize(x, Quantization("zero_point_linear_quantize", {**args, "scale": scale}))

    aligned = np.broadcast_to(scale.reshape(shape + (1,) * (3 - len(shape))), x.shape)
    expected = [
        by_formula("zero_point_linear_quantize", value, **args, scale=step)
        for value, step in zip(x.flat, aligned.flat, strict=True)
    ]
    np.testing.assert_array_equal(result.flat, expected)


def test_a_range_may_be_computed_for_each_sample(rng):
    attrs = {"bits": 8, "signed": False, "symmetric": False}
    shapes = {"x": (1, 2, 4), "low": (1, 2, 1), "high": (1, 2, 1), "y": (1, 2, 4)}
    graph = Graph(
        "dynamic",
        ("x",),
        ("y",),
        {name: Tensor(name, shape) for name, shape in shapes.items()},
        (
            Node("min_reduce", ("x",), ("low",), {"axes": [2]}),
            Node("max_reduce", ("x",), ("high",), {"axes": [2]}),
            Node("min_max_linear_quantize", ("x", "low", "high"), ("y",), attrs),
        ),
    )
    x = rng.normal(size=(3, 2, 4))
    y = run_float(graph, {"x": x})["y"]

    for extreme in (np.min, np.max):
        np.testing.assert_allclose(extreme(y, 2), extreme(x, 2), rtol=1e-12)
    assert (np.abs(x - y) <= np.ptp(x, 2, keepdims=True) / 255).all()
