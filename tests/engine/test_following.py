"""Layers that begin while results of the one before leave."""

from itertools import pairwise

import pytest
from engine_graphs import planned
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.testing import GraphBuilder

ARRAYS = [(4, 4, 1), (8, 4, 1), (8, 4, 4), (8, 8, 2), (16, 4, 1), (16, 8, 8)]


def early(plan):
    """Return the layers that do so."""
    names = plan.design.program.names
    numbers = sorted(plan.design.program.followers)
    return [names[n] for n in numbers if names[n] != names[n - 1]]


@pytest.mark.parametrize(
    ("rows", "lanes", "results"), few(ARRAYS, [(4, 4, 1), (8, 8, 2), (16, 8, 8)])
)
def test_short_layers_beside_one_another(rows, lanes, results, run_engine, rng):
    """Bit-exact, in as many cycles as predicted, also of an array with many rows."""
    net = GraphBuilder()
    x = net.input("x", (1, 16))
    y = [net.op("linear", x, net.constant(f"w{n}", rng.normal(size=(16, 16))), 0.0,
                name=f"y{n}") for n in range(5)]  # fmt: skip
    heads = [net.reshape(part, (1, 4, 4)) for part in y[:3]]
    scores = net.op("matmul", heads[0], heads[1], transposeA=False, transposeB=True)
    seen = net.op("matmul", scores, heads[2], transposeA=False, transposeB=False)
    # Each reads what comes just before, and is as large as the others.
    for n in range(3):
        y.append(net.op("linear", y[-1], net.constant(f"v{n}", rng.normal(size=(16, 16))), 0.0))
    total = net.op("add", net.reshape(seen, (1, 16)), net.op("add", y[3], y[7]))
    graph = simplify(net.build(total))
    graph = quantize(graph, {"x": rng.normal(size=(24, 1, 16))}, Scheme(symmetric=True))
    plan = planned(graph, rows=rows, lanes=lanes, results=results)
    found = early(plan)
    assert len(found) >= (2 if rows <= 8 else 0), plan.design.program.names
    for before, layer in pairwise(plan.design.frame_layers):
        assert layer.tensor not in found or before.tensor not in layer.operands
    run_engine(plan, graph, frames=6)
    run_engine(plan, graph, frames=6, stall=0.3)


def test_a_stream_and_banks_wait(rng):
    net = GraphBuilder()
    x = net.input("x", (1, 16))
    y = [net.op("linear", x, net.constant(f"w{n}", rng.normal(size=(16, 16))), 0.0)
         for n in range(3)]  # fmt: skip
    graph = quantize(simplify(net.build(*y)), {"x": rng.normal(size=(8, 1, 16))})
    assert not early(planned(graph, ring_words=128))
    assert not early(planned(graph, board=find_board("icebreaker")))
