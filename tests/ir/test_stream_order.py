"""What reshapes and transpositions do to streams, against the order of elements."""

from itertools import permutations
from math import prod

import numpy as np
import pytest

from nnef_hw.host.streams import from_stream, to_stream
from nnef_hw.ir import StreamOrder
from nnef_hw.streaming.foldings.plan import Port
from nnef_hw.testing import GraphBuilder

TRANSPOSED = [
    (shape, axes)
    for shape in [(1, 2, 3, 4), (1, 1, 3, 4), (1, 2, 1, 4), (1, 3, 4), (1, 5)]
    for axes in permutations(range(len(shape)))
    if shape[axes[0]] == 1
]
RESHAPED = [
    ((1, 2, 3, 4), (1, 24)),
    ((1, 24), (1, 2, 3, 4)),
    ((1, 24), (1, 4, 6)),
    ((1, 2, 3, 4), (1, 2, 12)),
    ((1, 2, 3, 4), (1, 2, 12, 1)),
    ((1, 2, 12), (1, 2, 3, 4)),
    ((1, 2, 1, 3), (1, 1, 2, 3)),
    ((1, 1, 4, 6), (1, 24)),
    ((1, 24, 1, 1), (1, 24)),
]


def stream(x):
    """Elements in the order of beats: channels innermost."""
    return np.moveaxis(x, 1, -1).reshape(-1)


CHAINS = {
    "shuffle of channels": [
        (1, 6, 4, 5), ("reshape", (1, 2, 3, 4, 5)), ("transpose", (0, 2, 1, 3, 4)),
        ("reshape", (1, 6, 4, 5)),
    ],
    "head of a detector": [
        (1, 6, 4, 5), ("transpose", (0, 2, 3, 1)), ("reshape", (1, 60, 2)),
        ("transpose", (0, 2, 1)),
    ],
    "batch in between": [(1, 6, 4), ("reshape", (6, 4, 1)), ("transpose", (1, 2, 0)),
                         ("reshape", (1, 24))],
    "no axes in between": [(1, 1, 1, 1), ("reshape", ()), ("reshape", (1, 1))],
    "axes taken apart": [(1, 6, 4), ("reshape", (1, 4, 6))],
    "five axes": [
        (1, 4, 6, 4), ("reshape", (1, 2, 2, 6, 2, 2)), ("transpose", (0, 4, 2, 3, 1, 5)),
        ("reshape", (1, 4, 6, 4)),
    ],
}  # fmt: skip


def graph_of(shape, *moves):
    g = GraphBuilder()
    name = g.op("neg", g.input("x", shape))
    for op, value in moves:
        name = g.reshape(name, value) if op == "reshape" else g.op(op, name, axes=list(value))
    g.op("neg", name)
    return g.build(), name


def check(shape, *moves):
    """Compare with the elements themselves; return what was found."""
    graph, name = graph_of(shape, *moves)
    tensor = np.arange(prod(shape)).reshape(shape)
    moved = tensor
    for op, value in moves:
        moved = moved.reshape(value) if op == "reshape" else moved.transpose(value)
    order = StreamOrder(graph)
    assert order.moved == ((name,) if moves else ())
    reordering = order.reordering(name)
    if reordering is not None:
        image = stream(tensor).reshape(reordering.extents)
        reordered = image.transpose(reordering.order).reshape(-1)
        np.testing.assert_array_equal(reordered, stream(moved))
        assert reordering.is_trivial == np.array_equal(stream(tensor), stream(moved))
    return reordering


@pytest.mark.parametrize(("shape", "axes"), TRANSPOSED, ids=str)
def test_transpositions(shape, axes):
    assert check(shape, ("transpose", axes)) is not None


@pytest.mark.parametrize(("before", "after"), RESHAPED, ids=str)
def test_reshapes(before, after):
    assert check(before, ("reshape", after)) is not None


@pytest.mark.parametrize("name", CHAINS)
def test_moves_in_a_row_are_one(name):
    assert (check(*CHAINS[name]) is None) == (name == "axes taken apart")


@pytest.mark.parametrize("name", [name for name in CHAINS if name != "axes taken apart"])
def test_axes_that_stay_outermost_are_turns(name):
    reordering = check(*CHAINS[name])
    turns, inner = reordering.turns
    assert turns * inner.volume == reordering.volume
    assert inner.is_trivial == reordering.is_trivial
    wanted = np.arange(reordering.volume).reshape(reordering.extents).transpose(reordering.order)
    found = np.stack(np.split(np.arange(reordering.volume), turns)).reshape(turns, *inner.extents)
    found = np.stack([image.transpose(inner.order) for image in found])
    np.testing.assert_array_equal(found.reshape(-1), wanted.reshape(-1))


def test_channels_are_shuffled_pixel_by_pixel():
    turns, inner = check(*CHAINS["shuffle of channels"]).turns
    assert (turns, inner.extents, inner.order) == (20, (1, 2, 3), (0, 2, 1))


def test_what_the_stream_has_already_needs_nothing():
    head = check(*CHAINS["head of a detector"])
    assert head.is_trivial
    assert check((1, 1, 4, 6), ("reshape", (1, 24))).is_trivial


@pytest.mark.parametrize("shape", [(2, 1, 2, 2), (16,), (), (1, 2, 3, 4, 5)], ids=str)
def test_what_is_no_image_streams_in_the_order_of_its_elements(shape):
    """A first extent that is no batch of 1 is not taken for one."""
    graph, name = graph_of(shape, ("reshape", (1, prod(shape))))
    assert StreamOrder(graph).reordering(name).is_trivial


BORDERS = {
    "channels last": ((1, 4, 5, 3), [("transpose", (0, 3, 1, 2))], True),
    "channels last, flat": (
        (1, 60), [("reshape", (1, 4, 5, 3)), ("transpose", (0, 3, 1, 2))], True
    ),
    "anchors": ((1, 6, 4, 5), [("transpose", (0, 2, 3, 1)), ("reshape", (1, 60, 2))], True),
    "rows of anchors": (
        (1, 6, 4, 5), [("reshape", (1, 3, 2, 4, 5)), ("transpose", (0, 1, 3, 4, 2))], False
    ),
    "rows and columns": ((1, 3, 4, 5), [("transpose", (0, 1, 3, 2))], False),
    "flattened": ((1, 3, 4, 5), [("reshape", (1, 60))], True),
    "flat": ((1, 60), [("reshape", (1, 3, 4, 5))], True),
    "without batch": ((4, 5, 3), [("transpose", (2, 0, 1)), ("reshape", (1, 3, 4, 5))], True),
    "nothing": ((1, 3, 4, 5), [], True),
}  # fmt: skip


def moved_by(g, name, moves):
    for op, value in moves:
        name = g.reshape(name, value) if op == "reshape" else g.op(op, name, axes=list(value))
    return name


def moved_array(x, moves):
    for op, value in moves:
        x = x.reshape(value) if op == "reshape" else x.transpose(value)
    return x


def port_of(stream):
    return Port("p", stream.tensor, stream.image, 8, True)


@pytest.mark.parametrize("case", BORDERS)
def test_the_host_sends_an_input_as_its_reader_wants_it(case):
    shape, moves, is_free = BORDERS[case]
    g = GraphBuilder()
    name = moved_by(g, g.input("x", shape), moves)
    g.op("neg", name)
    order = StreamOrder(g.build())
    x = np.arange(prod(shape)).reshape(shape)
    sent = to_stream(x.reshape(1, *shape), port_of(order.inputs["x"])).reshape(-1)
    reordering = order.reordering(name)
    assert reordering.is_trivial == is_free
    read = sent.reshape(reordering.extents).transpose(reordering.order).reshape(-1)
    moved = moved_array(x, moves)
    # A row of one channel for each element; what is no image is read in the order of its elements.
    wanted = stream(moved) if moved.shape[0] == 1 and moved.ndim <= 4 else moved.reshape(-1)
    np.testing.assert_array_equal(read, wanted)


@pytest.mark.parametrize("case", BORDERS)
def test_the_host_takes_an_output_as_it_comes(case):
    shape, moves, is_free = BORDERS[case]
    g = GraphBuilder()
    computed = g.op("neg", g.input("x", shape))
    name = moved_by(g, computed, moves)
    graph = g.build(name)
    order = StreamOrder(graph)
    x = np.arange(prod(shape)).reshape(shape)
    given = stream(x) if shape[0] == 1 else x.reshape(-1)
    if not is_free:
        reordering = order.reordering(order.outputs[name].tensor)
        given = given.reshape(reordering.extents).transpose(reordering.order).reshape(-1)
    assert bool(order.moved) != is_free
    taken = from_stream(given.reshape(1, -1, 1), port_of(order.outputs[name]), (prod(shape),))
    np.testing.assert_array_equal(taken.reshape(-1), moved_array(x, moves).reshape(-1))


def test_an_input_is_sent_as_most_of_its_readers_want_it():
    g = GraphBuilder()
    x = g.input("x", (1, 4, 5, 3))
    names = [g.op("transpose", x, axes=[0, 3, 1, 2]) for _ in range(2)]
    for name in (*names, x):
        g.op("neg", name)
    order = StreamOrder(g.build())
    assert [order.reordering(name).is_trivial for name in (*names, x)] == [True, True, False]
    assert order.inputs["x"].image == (1, 1, 60)


def test_an_image_of_several_readers_keeps_its_order():
    g = GraphBuilder()
    x = g.input("x", (1, 3, 4, 5))
    flat = g.reshape(x, (1, 60))
    for name in (x, flat):
        g.op("neg", name)
    order = StreamOrder(g.build())
    assert order.inputs["x"].image == (4, 5, 3)
    assert not order.reordering(flat).is_trivial
