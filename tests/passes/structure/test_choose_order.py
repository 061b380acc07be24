"""What a change of order saves is computed from the streams around it, and the work is linear."""

import numpy as np
import pytest

from nnef_hw.ir import StreamOrder, verify
from nnef_hw.passes.structure import choose_order as module
from nnef_hw.passes.structure.choose_order import ChooseOrder
from nnef_hw.passes.structure.stream_costs import Neighbourhoods, stream_costs
from nnef_hw.testing import GraphBuilder

LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def moved(g, x, rng):
    """Give a tensor other axes or another shape, or leave it as it is."""
    shape = g.build(x).tensor(x).shape
    match int(rng.integers(4)):
        case 0:
            return g.op("transpose", x, axes=[0, *(1 + rng.permutation(len(shape) - 1)).tolist()])
        case 1 if len(shape) == 4:
            return g.reshape(x, [1, shape[1] * shape[2], shape[3]])
        case 2 if len(shape) == 3:
            return g.reshape(x, [1, 2, shape[1] // 2, shape[2]] if shape[1] % 2 == 0 else shape)
        case _:
            return x


def movements(rng):
    """Make a graph of functions, sums, parts and joints between moves."""
    g = GraphBuilder()
    found = [g.input("a", [1, 4, 2, 6]), g.input("b", [1, 6, 4])]
    for _ in range(14):
        x = moved(g, found[int(rng.integers(len(found)))], rng)
        shape = g.build(x).tensor(x).shape
        match int(rng.integers(5)):
            case 0 | 1:
                x = g.op("tanh", x)
            case 2:
                x = g.op("add", x, g.op("sigmoid", x))
            case 3:
                x = g.op("concat", x, g.op("tanh", x), axis=int(rng.integers(1, len(shape))))
            case _:
                axis = int(rng.integers(1, len(shape)))
                end = max(1, shape[axis] - 1)
                x = g.op("slice", x, axes=[axis], begin=[0], end=[end], stride=[1])
        found.append(x)
    outputs = [moved(g, x, rng) for x in (found[-1], found[-3], found[4])]
    graph = g.build(*dict.fromkeys(outputs))
    verify(graph)
    return graph


def assert_savings_are_those_of_the_whole_graph(graph):
    order = StreamOrder(graph)
    costs = stream_costs(graph)
    neighbourhoods = Neighbourhoods(graph, order)
    candidates = list(module._candidates(graph, order))
    assert candidates
    for names in candidates:
        around = neighbourhoods.around(names)
        before = sum(costs.get(name, 0) for name in around.streams)
        after = sum(stream_costs(module._reordered(around.graph, names)).values())
        whole = sum(stream_costs(module._reordered(graph, names)).values())
        assert before - after == sum(costs.values()) - whole, names


@pytest.mark.parametrize("seed", range(12))
def test_what_a_change_saves_is_that_of_the_whole_graph(seed, rng):
    assert_savings_are_those_of_the_whole_graph(movements(rng))


def test_what_the_host_takes_behind_a_reshape_stays():
    g = GraphBuilder()
    x = g.op("transpose", g.op("tanh", g.input("x", [1, 4, 2, 3])), axes=[0, 2, 1, 3])
    graph = g.build(g.op("sigmoid", x), g.reshape(x, [1, 8, 3]))
    assert x in stream_costs(graph)
    assert_savings_are_those_of_the_whole_graph(graph)


def test_a_change_meets_those_of_its_readers():
    g = GraphBuilder()
    x = g.op("transpose", g.op("tanh", g.input("x", [1, 4, 2, 3])), axes=LAST)
    y = g.op("sigmoid", x)
    z = g.op("exp", y)
    graph = g.build(g.op("neg", z))
    neighbourhoods = Neighbourhoods(graph, StreamOrder(graph))
    first, second, other = (neighbourhoods.around({name}) for name in (y, z, graph.outputs[0]))
    assert first.meets(second.streams, second.sources)
    assert second.meets(first.streams, first.sources)
    assert not first.meets(other.streams, other.sources)


@pytest.mark.parametrize("seed", range(12))
def test_changes_made_together_save_what_each_of_them_saves(seed, rng):
    graph = movements(rng)
    order = StreamOrder(graph)
    costs = sum(stream_costs(graph).values())
    changes = module._chosen(graph, order, stream_costs(graph))
    after = sum(stream_costs(ChooseOrder()(graph)).values())
    assert costs - after == sum(change.saving for change in changes)


def test_work_is_in_proportion_to_the_nodes(monkeypatch):
    """Blocks that nothing but an image connects are all turned at once, each looked at alone."""
    analysed = []
    analyse = StreamOrder.__init__

    def counted(self, graph):
        analysed.append(len(graph.nodes))
        analyse(self, graph)

    monkeypatch.setattr(StreamOrder, "__init__", counted)
    work = []
    for blocks in (20, 80):
        graph = turned_blocks(blocks)
        analysed.clear()
        after = ChooseOrder()(graph)
        work.append(sum(analysed))
        assert len(analysed) <= 1 + 3 * blocks
        assert not stream_costs(after)
        assert ChooseOrder()(after) is after
    assert work[1] <= 4.1 * work[0]


def turned_blocks(count):
    """Make a row of convolutions with functions of images [1, H, W, C] between them."""
    g = GraphBuilder()
    x = g.input("x", [1, 3, 4, 5])
    for _ in range(count):
        x = g.conv(x, np.ones((3, 3, 1, 1)), 0.0)
        x = g.op("transpose", x, axes=LAST)
        x = g.op("add", g.op("sigmoid", x), x)
        x = g.op("transpose", x, axes=FIRST)
    return g.build(x)
