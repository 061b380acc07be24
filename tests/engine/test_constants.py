"""Constant operands on the engine: a layer of their own writes them to the memory of codes."""

import pytest
from engine_graphs import planned
from sweeps import covering

from nnef_hw.boards import find_board
from nnef_hw.engine.layers.constant import ConstantLayer
from nnef_hw.testing import GraphBuilder

WHOLE, PIXELS, ROW = (1, 5, 3, 4), (1, 1, 3, 4), (1, 1, 1, 4)


def constants(plan):
    return [layer for layer in plan.design.layers if isinstance(layer, ConstantLayer)]


@pytest.mark.parametrize(
    ("op", "shape", "size"),
    covering(["add", "sub", "mul", "max"], [[WHOLE], [PIXELS], [ROW]], [[(4, 4, 32)], [(8, 8, 0)]]),
)
def test_functions_of_a_constant(fix, run_engine, rng, op, shape, size):
    """Of all of the tensor's shape, or repeated for each channel or row."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", WHOLE), rng.normal(size=(5, 5, 3, 3)), padding=1)
    builder.op(op, x, builder.constant("c", rng.normal(size=shape[0])))
    graph = fix(builder.build())
    plan = planned(graph, *size[0])
    assert len(constants(plan)) == 1
    run_engine(plan, graph)


def test_sums_cost_no_pass(fix, run_engine, rng):
    """The layer in front adds the constant, which is written before."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", WHOLE), rng.normal(size=(5, 5, 1, 1)))
    builder.op("add", builder.constant("c", rng.normal(size=WHOLE)), x)
    graph = fix(builder.build())
    plan = planned(graph)
    assert [layer.label for layer in plan.design.layers] == ["constant", "conv"]
    assert plan.design.layers[1].residual is not None
    run_engine(plan, graph)


def test_position_embeddings(fix, run_engine, rng):
    """Of tokens that are the pixels of a pool, as in a compact transformer: no channel for each."""
    g = GraphBuilder()
    x = g.pool("max_pool", g.conv(g.input("x", (1, 3, 4, 6)), rng.normal(size=(4, 3, 1, 1))), 2)
    tokens = g.op("transpose", g.reshape(x, [1, 4, 6]), axes=[0, 2, 1])
    y = g.op("add", tokens, g.constant("places", rng.normal(size=(1, 6, 4))))
    g.op("matmul", y, g.constant("w", rng.normal(size=(1, 4, 8)), label="w"),
         transposeA=False, transposeB=False)  # fmt: skip
    graph = fix(g.build())
    for board in (None, find_board("icebreaker")):
        plan = planned(graph, **({} if board is None else {"board": board}))
        labels = [layer.label for layer in plan.design.layers]
        assert labels == ["conv", "constant", "max_pool", "conv"]
        assert plan.design.layers[2].residual is not None
        run_engine(plan, graph)


@pytest.mark.parametrize("axis", [2, 3])
def test_concatenations(fix, run_engine, rng, axis):
    """As the class token of a vision transformer."""
    builder = GraphBuilder()
    shape = [1, 8, 3, 4]
    shape[axis] = 4
    constant = builder.constant("c", rng.uniform(-1, 1, size=shape))
    x = builder.op("tanh", builder.input("x", (1, 8, 3, 4)))
    y = builder.op("concat", constant, x, axis=axis)
    builder.conv(y, rng.normal(size=(5, 8, 3, 3)), padding=1)
    graph = fix(builder.build())
    plan = planned(graph, results={2: 1, 3: 4}[axis])
    assert len(constants(plan)) == 1
    run_engine(plan, graph, stall=0.3)


def test_in_single_port_ram(fix, run_engine, rng):
    """It reads the bank that it does not write."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", WHOLE), rng.normal(size=(5, 5, 1, 1)))
    x = builder.op("add", x, builder.constant("c", rng.normal(size=WHOLE)))
    builder.op("mul", x, builder.constant("d", rng.normal(size=WHOLE)))
    graph = fix(builder.build())
    plan = planned(graph, board=find_board("icebreaker"))
    assert plan.design.engine.codes.single_port
    run_engine(plan, graph)


def test_a_batch(fix, run_engine, rng):
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", WHOLE), rng.normal(size=(5, 5, 1, 1)))
    builder.op("add", x, builder.constant("c", rng.normal(size=WHOLE)))
    graph = fix(builder.build())
    plan = planned(graph, ring_words=32, batch=3)
    run_engine(plan, graph)
