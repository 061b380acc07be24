"""Functions of 9 to 16 bits in hardware: the fixed model's codes, in the cycles of the Plan."""

import dataclasses

import numpy as np
import pytest
from sweeps import covering

from nnef_hw.boards import find_board
from nnef_hw.frontend import load, save
from nnef_hw.ir import Quantization
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

FRAMES = 4


def functions_of_layers(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 5, 4]), rng.normal(size=[3, 2, 2, 2]), rng.normal(size=3))
    x = g.conv(g.op("silu", x), rng.normal(size=[3, 3, 2, 2]), rng.normal(size=3))
    return g.build(g.op("sigmoid", g.pool("avg_pool", g.op("tanh", x), 2)))


def gate(rng):
    """Branches whose delays differ, and the product of what comes out of them."""
    g = GraphBuilder()
    x = g.input("x", [1, 2, 3, 4])
    y = g.op("sigmoid", g.conv(x, rng.normal(size=[2, 2, 1, 1]), rng.normal(size=2)))
    return g.build(g.op("mul", g.op("tanh", x), y))


def operands_of_other_formats(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 3, 4])
    y = g.conv(x, 4 * rng.normal(size=[2, 2, 1, 1]))
    g.op("concat", x, y, axis=1, name="both")
    return g.build("both", y)


NETWORKS = (functions_of_layers, gate, operands_of_other_formats)


@pytest.mark.parametrize(
    ("network", "bits"),
    covering(NETWORKS, [9, 16]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_codes_and_cycles(network, bits, fix, simulate, rng):
    graph = fix(network(rng), activation_bits=bits)
    plan = schedule(graph, find_board("ecp5"))
    assert "interpolated_table" in {block.kind for block in plan.blocks}
    assert "table" not in {block.kind for block in plan.blocks}
    simulate(plan, graph).check(FRAMES)


@pytest.mark.verilator
def test_verilog_with_stalls_on_an_ice40(fix, simulate, rng, tmp_path):
    """Of a fixed network that was saved and loaded."""
    saved = fix(functions_of_layers(rng), activation_bits=16)
    save(saved, tmp_path / "fixed.nnef.tgz")
    graph = load(tmp_path / "fixed.nnef.tgz")
    for before, after in zip(saved.nodes, graph.nodes, strict=True):
        np.testing.assert_array_equal(before.attrs.get("table"), after.attrs.get("table"))
    plan = schedule(graph, find_board("ice40"))
    simulate(plan, graph, "verilator").check(30)


def test_given_formats(fix, simulate, rng):
    """Signed, symmetric and wide, as other tools give them."""
    g = GraphBuilder()
    g.op("tanh", g.input("x", [1, 3, 4]), name="y")
    graph = g.build()
    args = {"bits": 16, "signed": True, "symmetric": True, "zero_point": 0}
    for name, scale in (("x", 1e-4), ("y", 2.0**-15)):
        quant = Quantization("zero_point_linear_quantize", {**args, "scale": scale})
        tensor = dataclasses.replace(graph.tensor(name), quant=quant)
        graph = graph.replaced(tensors={**graph.tensors, name: tensor})
    fixed = fix(graph)
    plan = schedule(fixed, find_board("ice40"))
    assert [(b.kind, b.layer.source.bits) for b in plan.blocks] == [("interpolated_table", 16)]
    simulate(plan, fixed).check(FRAMES)


@pytest.mark.usefixtures("one_code_per_beat")
@pytest.mark.parametrize(("board", "brams"), [("ice40", 2), ("ecp5", 1)])
def test_memory_holds_differences_of_the_width_they_have(board, brams, fix, rng):
    graph = fix(gate(rng), activation_bits=16)
    blocks = schedule(graph, find_board(board)).blocks
    tables = [block for block in blocks if block.kind == "interpolated_table"]
    assert [block.resources.bram for block in tables] == [brams, brams]
    assert all(block.parts[0].rise_bits <= 12 for block in tables)
