"""A clamp behind a sum costs nothing: the requantizer has its limits, as codes."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.ir import Quantization
from nnef_hw.ir.activation import activation_limits
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def limited(rng, lo, hi):
    """A convolution and a sum of two activations, both clamped."""
    g = GraphBuilder()
    x = g.input("x", [1, 2, 3, 4])
    y = g.op("clamp", g.conv(x, 3 * rng.normal(size=(2, 2, 1, 1)), rng.normal(size=2)), lo, hi)
    return g.build(g.op("clamp", g.op("add", x, y), lo, hi))


@pytest.mark.parametrize(("lo", "hi"), [(0.0, 6.0), (-1.0, 1.0), (0.25, 0.5)])
def test_codes_and_cycles(lo, hi, fix, simulate, rng):
    graph = fix(limited(rng, lo, hi))
    assert [node.op for node in graph.nodes] == ["conv", "add"]
    for node in graph.nodes:
        target, requant = graph.tensor(node.name).qtype, node.attrs["requant"]
        assert [requant.lo, requant.hi] == target.quantize([lo, hi]).tolist()
    plan = schedule(graph, find_board("ice40"))
    assert not any("table" in block.kind for block in plan.blocks)
    simulate(plan, graph).check(3)


def test_headroom_ends_at_the_limit(rng):
    graph = simplify(limited(rng, 0.0, 1.0))
    samples = {"x": rng.normal(size=(16, 2, 3, 4))}
    fixed = quantize(graph, samples, Scheme(calibration="minmax", headroom=0.5))
    for node in fixed.nodes:
        qtype = fixed.tensor(node.name).qtype
        assert qtype.dequantize([qtype.lo, qtype.hi]).tolist() == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("rounding", ["half_up", "tflite"])
def test_limits_within_the_format_of_the_author(rounding, rng):
    """Its codes beyond them are not used."""
    graph = simplify(limited(rng, -1.0, 0.5))
    args = {"bits": 8, "scale": 1 / 64, "zero_point": 3, "signed": True, "symmetric": False}
    quant = Quantization("zero_point_linear_quantize", args)
    tensors = {
        name: tensor if tensor.data is not None else replace(tensor, quant=quant)
        for name, tensor in graph.tensors.items()
    }
    samples = {"x": rng.normal(size=(16, 2, 3, 4))}
    fixed = quantize(graph.replaced(tensors=tensors), samples, Scheme(rounding=rounding))
    for node in fixed.nodes:
        requant = node.attrs["requant"]
        assert (requant.lo, requant.hi) == (3 - 64, 3 + 32)


def test_channels_in_front_of_limits_are_not_scaled(rng):
    """Equalization would move what the clamp leaves."""
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 4]), rng.normal(size=(3, 2, 1, 1)), rng.normal(size=3))
    x = g.op("clamp", x, 0.0, 0.5)
    graph = simplify(
        g.build(g.conv(x, rng.normal(size=(2, 3, 1, 1)) * [[[8.0]], [[1.0]], [[0.1]]]))
    )
    assert activation_limits(graph.nodes[0]) == (0.0, 0.5)
    samples = {"x": rng.normal(size=(16, 2, 3, 4))}
    plain, equalized = (quantize(graph, samples, Scheme(equalize=e)) for e in (False, True))
    for before, after in zip(plain.nodes, equalized.nodes, strict=True):
        np.testing.assert_array_equal(
            plain.constant(before.inputs[1]), equalized.constant(after.inputs[1])
        )
