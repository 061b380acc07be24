"""Residual, dilated and multi-branch networks: common formats, results near the real ones."""

import dataclasses

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import AddRequant, QType
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import (
    dequantize_outputs,
    quantize_inputs,
    run_fixed,
    run_float,
)
from nnef_hw.testing import GraphBuilder

SHAPE = (1, 4, 6, 6)


def samples(graph, rng, count=64):
    return {
        name: rng.standard_normal((count, *graph.tensor(name).shape[1:])) for name in graph.inputs
    }


def sqnr_db(real, fixed):
    return 10 * np.log10((real**2).mean() / ((real - fixed) ** 2).mean())


def compare(graph, scheme, rng):
    """Signal to noise of each result of a float graph, and its fixed graph."""
    canonical = simplify(graph)
    x = samples(graph, rng)
    fixed = quantize(canonical, x, scheme)
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))
    return {name: sqnr_db(y, found[name]) for name, y in run_float(graph, x).items()}, fixed


def random_network(rng, operations=7):
    """Random operators on random earlier results, two inputs and two results."""
    builder = GraphBuilder()
    pool = [builder.input(name, SHAPE) for name in "xy"]

    def pick():
        return pool[int(rng.integers(len(pool)))]

    def conv(channels=4, **window):
        weights = rng.standard_normal((4, channels, 3, 3)) / (3 * channels**0.5)
        return builder.conv(pick(), weights, rng.standard_normal((1, 4)) / 4, padding=1, **window)

    def concat():
        width = int(rng.integers(2, 4))
        builder.op("relu", pick())
        parts = [pick() for _ in range(width)]
        name = f"concat{len(builder._nodes)}"
        node = dataclasses.replace(
            builder._nodes[-1], op="concat", inputs=tuple(parts), outputs=(name,), attrs={"axis": 1}
        )
        builder._nodes[-1] = node
        like = builder._tensors[parts[0]]
        shape = (1, 4 * width, *SHAPE[2:])
        builder._tensors[name] = dataclasses.replace(like, name=name, shape=shape)
        weights = rng.standard_normal((4, 4 * width, 1, 1)) / (2 * width)
        return builder.conv(name, weights, 0.0)

    def dilated():
        weights = rng.standard_normal((4, 4, 3, 3)) / 6
        return builder.conv(pick(), weights, 0.0, padding=2, dilation=2)

    makers = [
        conv,
        lambda: conv(1, groups=4),
        dilated,
        concat,
        lambda: builder.op("relu", builder.op("add", pick(), pick())),
        lambda: builder.op(str(rng.choice(["add", "sub", "max", "min"])), pick(), pick()),
        lambda: builder.op("mul", builder.op("sigmoid", pick()), pick()),
        lambda: builder.op("max", pick(), rng.standard_normal((1, 4))),
        lambda: builder.op(str(rng.choice(["tanh", "relu", "abs"])), pick()),
    ]
    pool.extend(makers[int(rng.integers(len(makers)))]() for _ in range(operations))
    return builder.build(*pool[-2:])


@pytest.mark.parametrize("seed", range(25))
def test_random_branches_are_close_to_the_real_network(seed, rng, tmp_path):
    noise, fixed = compare(random_network(rng), Scheme(), rng)
    assert min(noise.values()) > 20
    save(fixed, tmp_path / "net.nnef.tgz")
    again = load(tmp_path / "net.nnef.tgz")
    assert graph_hash(again) == graph_hash(fixed)
    codes = quantize_inputs(fixed, samples(fixed, rng, 3))
    for name, expected in run_fixed(fixed, codes).items():
        np.testing.assert_array_equal(run_fixed(again, codes)[name], expected)


def residual(rng, shape=SHAPE, kernel=(3, 3)):
    builder = GraphBuilder()
    builder.input("x", shape)
    channels = shape[1]
    weights = rng.standard_normal((channels, channels, *kernel)) / 6
    y = builder.conv("x", weights, rng.standard_normal((1, channels)), padding=1)
    builder.op("relu", builder.op("add", y, "x"), name="r")
    return builder.build()


@pytest.mark.parametrize(
    ("bits", "least"), [((8, 8), 35), ((8, 12), 40), ((8, 16), 40), ((4, 4), 8)], ids=str
)
def test_residual_blocks_of_several_widths(bits, least, rng):
    noise, fixed = compare(residual(rng), Scheme(*bits), rng)
    assert noise["r"] > least
    requant = fixed.nodes[-1].attrs["requant"]
    assert isinstance(requant, AddRequant)
    assert (requant.lo, fixed.tensor("r").qtype.zero_point) == (0, 0)


def test_one_dimensional_residual_blocks(rng):
    noise, fixed = compare(residual(rng, (1, 3, 20), (3,)), Scheme(), rng)
    assert noise["r"] > 35
    assert [node.op for node in fixed.nodes if node.op != "reshape"] == ["conv", "add"]


def joined(rng, *, other_reader=False):
    """Two convolutions of very different ranges, one through a pool, and their concat."""
    builder = GraphBuilder()
    builder.input("x", SHAPE)
    small = builder.conv("x", rng.standard_normal((2, 4, 1, 1)) / 50, name="small")
    large = builder.conv("x", rng.standard_normal((2, 4, 1, 1)), name="large")
    parts = [builder.pool("max_pool", part, 2, name=f"{part}_pool") for part in (small, large)]
    builder.op("relu", parts[0], name="both")
    builder._nodes[-1] = dataclasses.replace(
        builder._nodes[-1], op="concat", inputs=tuple(parts), attrs={"axis": 1}
    )
    builder._tensors["both"] = dataclasses.replace(builder._tensors["both"], shape=(1, 4, 3, 3))
    return builder.build("both", *(["small_pool"] if other_reader else []))


def test_operands_that_nobody_else_reads_are_computed_in_the_common_format(rng):
    noise, fixed = compare(joined(rng), Scheme(), rng)
    assert noise["both"] > 35
    assert [node.op for node in fixed.nodes if node.op == "requantize"] == []
    assert len({fixed.tensor(name).qtype for name in ("small", "large", "both")}) == 1


def test_operands_with_other_readers_keep_their_format(rng):
    noise, fixed = compare(joined(rng, other_reader=True), Scheme(), rng)
    assert min(noise.values()) > 35
    assert [node.inputs for node in fixed.nodes if node.op == "requantize"] == [("small_pool",)]
    formats = {name: fixed.tensor(name).qtype for name in ("small", "large", "both")}
    assert formats["large"] == formats["both"]
    assert formats["small"].scale < formats["both"].scale / 5


def quantized(graph, **formats):
    tensors = dict(graph.tensors)
    for name, (scale, zero_point) in formats.items():
        args = {"zero_point": zero_point, "scale": scale, "bits": 8, "signed": True,
                "symmetric": False}  # fmt: skip
        quant = Quantization("zero_point_linear_quantize", args)
        tensors[name] = dataclasses.replace(tensors[name], quant=quant)
    return graph.replaced(tensors=tensors)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "max", "min"])
@pytest.mark.parametrize("has_format", [True, False], ids=["quantized", "derived"])
def test_models_that_their_author_quantized_need_no_samples(op, has_format, rng):
    builder = GraphBuilder()
    for name in "xy":
        builder.input(name, (1, 4))
    builder.op(op, "x", "y", name="z")
    formats = {"x": (0.05, 3), "y": (0.1, -20), **({"z": (0.2, 1)} if has_format else {})}
    graph = simplify(quantized(builder.build(), **formats))
    fixed = quantize(graph, None)
    if has_format:
        assert fixed.tensor("z").qtype == QType(8, True, 0.2, 1)
    x = {"x": rng.uniform(-5, 5, (50, 4)), "y": rng.uniform(-9, 9, (50, 4))}
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))["z"]
    step = fixed.tensor("z").qtype.scale
    assert np.abs(found - run_float(graph, x)["z"]).max() <= (0.5 if op == "mul" else 0.1) + step


def test_equal_formats_meet_without_a_table(rng):
    builder = GraphBuilder()
    for name in "xy":
        builder.input(name, (1, 4))
    builder.op("max", "x", "y", name="z")
    fixed = quantize(simplify(quantized(builder.build(), x=(0.05, 3), y=(0.05, 3))), None)
    assert [node.op for node in fixed.nodes] == ["max"]
    assert fixed.tensor("z").qtype == QType(8, True, 0.05, 3)


def test_a_difference_of_nothing_does_not_crash(rng):
    builder = GraphBuilder()
    builder.op("sub", builder.input("x", (1, 4)), "x", name="z")
    graph = simplify(builder.build())
    x = samples(graph, rng)
    fixed = quantize(graph, x)
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))
    assert not found["z"].any()


def padded(value, source="relu"):
    builder = GraphBuilder()
    builder.op(source, builder.input("x", SHAPE), name="y")
    padding = [(0, 0), (0, 0), (1, 0), (0, 2)]
    return builder.build(builder.op("pad", "y", padding=padding, border="constant", value=value))


@pytest.mark.parametrize("value", [-9.0, 0.3, 25.0])
def test_formats_have_the_value_that_is_put_around(value, rng):
    graph = simplify(padded(value))
    fixed = quantize(graph, samples(graph, rng))
    qtype = fixed.tensor("y").qtype
    code = int(qtype.quantize(value))
    assert abs(qtype.dequantize(code) - value) <= qtype.scale / 2
    found = run_fixed(fixed, {"x": np.zeros(SHAPE, np.int64)})[fixed.outputs[0]]
    assert (found[:, :, 0] == code).all()
    assert (found[..., -2:] == code).all()


def test_values_beyond_a_given_format_are_refused(rng):
    graph = simplify(padded(3.0))
    args = {"scale": 0.01, "zero_point": 0, "bits": 8, "signed": False, "symmetric": False}
    quantized_result = dataclasses.replace(
        graph.tensor("y"), quant=Quantization("zero_point_linear_quantize", args)
    )
    graph = graph.replaced(tensors={**graph.tensors, "y": quantized_result})
    with pytest.raises(UnsupportedError, match=r"pad 'pad\d': its value 3 lies outside of 0..2.55"):
        quantize(graph, samples(graph, rng))
