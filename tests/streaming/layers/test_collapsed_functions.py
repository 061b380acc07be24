"""Compositions of functions: one table each, with the codes of the composition itself."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.frontend import load, save
from nnef_hw.ir import Trait
from nnef_hw.ir.parser import parse_graph
from nnef_hw.ir.printer import format_graph
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_float
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def hard_swish(g, x):
    return g.op("mul", x, g.op("div", g.op("clamp", g.op("add", x, 3.0), 0.0, 6.0), 6.0))


def mish(g, x):
    return g.op("mul", x, g.op("tanh", g.op("softplus", x)))


def gelu_by_erf(g, x):
    bell = g.op("add", g.op("erf", g.op("div", x, np.sqrt(2.0))), 1.0)
    return g.op("mul", g.op("mul", x, 0.5), bell)


def gelu_by_tanh(g, x):
    inner = g.op("mul", g.op("add", x, g.op("mul", g.op("pow", x, 3.0), 0.044715)), 0.797885)
    return g.op("mul", g.op("mul", x, 0.5), g.op("add", g.op("tanh", inner), 1.0))


def soft_sign(g, x):
    return g.op("div", x, g.op("add", g.op("abs", x), 1.0))


def rounded(g, x):
    return g.op("round_even", x)


FUNCTIONS = {
    hard_swish: lambda x: x * np.clip(x + 3, 0, 6) / 6,
    mish: lambda x: x * np.tanh(np.log1p(np.exp(x))),
    gelu_by_erf: None,
    gelu_by_tanh: lambda x: x / 2 * (1 + np.tanh(0.797885 * (x + 0.044715 * x**3))),
    soft_sign: lambda x: x / (1 + np.abs(x)),
    rounded: np.rint,
}


def network(function, rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 2]), rng.normal(size=(2, 2, 1, 1)), rng.normal(size=2))
    return g.build(function(g, x))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_codes_and_cycles(function, fix, simulate, rng):
    graph = fix(network(function, rng))
    _, composed = graph.nodes
    source, target = (graph.tensor(name).qtype for name in (*composed.inputs, composed.name))
    formula = FUNCTIONS[function]
    if formula is not None:
        values = formula(source.dequantize(np.arange(source.lo, source.hi + 1)))
        assert composed.attrs["table"].tolist() == target.quantize(values).tolist()
    plan = schedule(graph, find_board("ice40"))
    assert [block.kind for block in plan.blocks][1:] == ["table"]
    simulate(plan, graph).check(3)


def test_more_than_8_bits_are_interpolated_except_of_steps(fix, rng):
    smooth = fix(network(mish, rng), activation_bits=12)
    assert [smooth.tensor(node.name).qtype.bits for node in smooth.nodes] == [12, 12]
    assert smooth.nodes[1].attrs["table"].size == 257
    steps = fix(network(rounded, rng), activation_bits=12)
    assert [steps.tensor(node.name).qtype.bits for node in steps.nodes] == [8, 12]


def test_a_function_is_printed_saved_and_written_out_for_others(fix, rng, tmp_path):
    fixed = fix(network(gelu_by_erf, rng))
    text = format_graph(fixed)
    assert format_graph(parse_graph(text)) == text
    save(fixed, tmp_path / "fixed.nnef.tgz")
    saved = load(tmp_path / "fixed.nnef.tgz")
    assert format_graph(saved).replace(" @()", "") == text.replace(" @()", "")

    canonical = simplify(network(gelu_by_erf, rng))
    save(canonical, tmp_path / "plain")
    (tmp_path / "plain" / "fixed.json").unlink()
    plain = load(tmp_path / "plain")
    assert not any(node.has(Trait.TABLE) for node in plain.nodes)
    x = {"x": rng.normal(size=(4, 2, 3, 2))}
    wanted, found = run_float(canonical, x), run_float(plain, x)
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6)


def test_peaks_and_choices(simulate, rng):
    """What compares two activations is a function of their difference; codes are equal in both."""
    net = GraphBuilder("peaks")
    heat = net.op("sigmoid", net.input("x", (1, 2, 4, 5)))
    window = {"size": [1, 1, 3, 3], "padding": [(0, 0), (0, 0), (1, 1), (1, 1)],
              "border": "ignore", "stride": [1, 1, 1, 1], "dilation": [1, 1, 1, 1]}  # fmt: skip
    highest = net.op("max_pool", heat, **window)
    peak = net.op("eq", highest, heat)
    net.op("select", peak, heat, net.constant("none", np.asarray(-0.5)), name="y")
    fixed = quantize(simplify(net.build("y")), {"x": rng.normal(size=(20, 2, 4, 5))})
    simulate(schedule(fixed, find_board("ulx3s_85f")), fixed).check(3)
