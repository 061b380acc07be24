"""Layers of integer networks: exact, under stalls, in the cycles that are predicted."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.arithmetic.integer_functions import integer_exponentials, shift_exponentials
from nnef_hw.boards import find_board
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend import load, save
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import quantize_inputs, run_fixed, run_float
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 4


def of_integers(g, **bits):
    """Return a graph of which some tensors are integers of so many bits, negative if signed."""
    graph = g.build()
    tensors = dict(graph.tensors)
    for name, count in bits.items():
        args = {
            "zero_point": 0, "scale": 1.0, "bits": abs(count), "signed": count < 0,
            "symmetric": False,
        }  # fmt: skip
        tensors[name] = replace(
            tensors[name], quant=Quantization("zero_point_linear_quantize", args)
        )
    return graph.replaced(tensors=tensors)


def normalized(rng):
    """Of the last axis, with a scale and an offset for each place."""
    g = GraphBuilder()
    x = g.input("x", [1, 3, 6])
    scale, offset = rng.integers(-1 << 20, 1 << 20, (2, 1, 1, 6)).astype(float)
    attrs = {"axes": [2], "shift": 14, "centered": True}
    g.op("integer_normalize", x, scale, offset, name="y", **attrs)
    return of_integers(g, x=-8, y=-8)


def mean_square(rng):
    """Without the mean, of unsigned codes, with one scale for all."""
    g = GraphBuilder()
    attrs = {"axes": [1], "shift": 10, "centered": False}
    g.op("integer_normalize", g.input("x", [1, 9]), 70000.0, 0.0, name="y", **attrs)
    return of_integers(g, x=8, y=-8)


def shares(rng):
    g = GraphBuilder()
    e = shift_exponentials().astype(float).reshape(1, -1)
    g.op("integer_softmax", g.input("x", [1, 4, 5]), e, name="y", axes=[2], levels=256)
    return of_integers(g, x=-8, y=8)


def parabolas(rng):
    g = GraphBuilder()
    e = integer_exponentials(64, 1, 86, 3888).astype(float).reshape(1, -1)
    g.op("integer_softmax", g.input("x", [1, 5, 2, 2]), e, name="y", axes=[1], levels=16)
    return of_integers(g, x=-8, y=4)


def parts_of_sums(rng):
    """Sums of codes times 515 / 2**14, and what is no whole number of them."""
    g = GraphBuilder()
    x, w = g.input("x", [1, 3, 4, 4]), rng.integers(-8, 8, (5, 3, 3, 3)).astype(float)
    added = (rng.integers(-(1 << 20), 1 << 20, (1, 5)) + 0.25) / 2**14
    y = g.op("mul", g.conv(x, g.constant("w", w, label="w")), np.array(515 / 2**14))
    g.op("add", y, added, name="y")
    return of_integers(g, x=-8, w=-8, y=-8)


def requantized_sum(rng):
    """A sum that gets its codes at once, in steps of 3 / 2, and a function of these."""
    g = GraphBuilder()
    x = g.input("x", [1, 3, 4])
    y = g.op("rescale", x, name="f", factor=0.75, offset=-3.0)
    g.op("rescale", g.op("add", x, y, name="s"), name="y", factor=2 / 3, offset=0.5)
    graph = of_integers(g, x=-8, f=-8, s=-8, y=-8)
    quant = graph.tensor("s").quant
    tensors = dict(graph.tensors)
    tensors["s"] = replace(tensors["s"], quant=replace(quant, args={**quant.args, "scale": 1.5}))
    return graph.replaced(tensors=tensors)


def average(rng):
    """A count that is no power of two, and codes of both signs."""
    g = GraphBuilder()
    g.op("mean_reduce", g.input("x", [1, 2, 6, 7]), name="y", axes=[2, 3])
    return of_integers(g, x=-8, y=-8)


NETWORKS = [normalized, mean_square, shares, parabolas, parts_of_sums, requantized_sum, average]


def samples(graph, rng):
    lo = -128 if graph.tensor("x").quant.args["signed"] else 0
    return {"x": rng.integers(lo, lo + 256, (20, *graph.tensor("x").shape[1:])).astype(float)}


@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("board", ["ice40", "ecp5"])
def test_hardware_is_exact_in_the_cycles_that_are_predicted(network, board, simulate, rng):
    graph = network(rng)
    given = samples(graph, rng)
    fixed = quantize(simplify(graph), given)
    real, found = run_float(graph, given), run_fixed(fixed, quantize_inputs(fixed, given))
    qtype = fixed.tensor("y").qtype
    exact = np.floor(real["y"] + 0.5).clip(qtype.lo, qtype.hi)
    np.testing.assert_array_equal(found["y"].reshape(exact.shape), exact)
    assert len(np.unique(exact)) > 3
    plan = schedule(fixed, find_board(board))
    simulate(plan, fixed).check(FRAMES)


@pytest.mark.parametrize("network", [normalized, shares, parts_of_sums], ids=lambda f: f.__name__)
def test_the_engine_refuses_them(network, rng):
    graph = network(rng)
    fixed = quantize(simplify(graph), samples(graph, rng))
    errors = check_engine(fixed)
    assert errors
    assert {error.remedy for error in errors} == {"use --arch streaming"}


@pytest.mark.parametrize("name", ["x", "y"])
def test_formats_of_other_steps_are_refused(name, rng):
    graph = normalized(rng)
    tensors = dict(graph.tensors)
    args = {**tensors[name].quant.args, "scale": 0.5}
    tensors[name] = replace(tensors[name], quant=replace(tensors[name].quant, args=args))
    graph = graph.replaced(tensors=tensors)
    with pytest.raises(UnsupportedError, match="is no integer in steps of 1"):
        quantize(simplify(graph), samples(graph, rng))


@pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
def test_they_are_saved(network, tmp_path, rng):
    graph = network(rng)
    given = samples(graph, rng)
    fixed = quantize(simplify(graph), given)
    for number, one in enumerate((graph, fixed)):
        save(one, tmp_path / f"{number}.nnef.tgz")
    again = load(tmp_path / "0.nnef.tgz")
    np.testing.assert_array_equal(run_float(again, given)["y"], run_float(graph, given)["y"])
    codes = quantize_inputs(fixed, given)
    again = load(tmp_path / "1.nnef.tgz")
    np.testing.assert_array_equal(run_fixed(again, codes)["y"], run_fixed(fixed, codes)["y"])


def test_the_same_codes_in_other_steps_take_no_hardware(rng):
    graph = requantized_sum(rng)
    fixed = quantize(simplify(graph), samples(graph, rng))
    assert [node.op for node in fixed.nodes if node.op != "reshape"] == ["rescale", "add"]
    assert fixed.tensor("y").qtype.scale == 1


@pytest.mark.verilator
@pytest.mark.nightly
def test_the_end_of_a_published_transformer(attention, simulate):
    """Deeploy's ICCT from its last residual sum on: normalization, mean, classes."""
    folder = attention / "deeploy" / "ICCT"
    begin = "__QL_REPLACED__INTEGERIZE_SIGNED_ACT_PASS_12_RequantShift_output_0"
    graph = load(folder / "network.onnx", inputs=[begin])
    with np.load(folder / "activations.npz") as golden:
        given = golden["_ql_op_tree_replace_addition_1__ql_replaced__integerize_signed_act_pass_12"]
        expected = golden["classifier__ql_replaced__integerize_unsigned_act_pass_1"]
    x = {graph.inputs[0]: given.astype(float)}
    fixed = quantize(simplify(graph), x)
    [found] = run_fixed(fixed, quantize_inputs(fixed, x)).values()
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    plan = schedule(fixed, find_board("ulx3s_85f"))
    simulate(plan, fixed, "verilator").check(2)
