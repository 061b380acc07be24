"""What reshapes and transpositions do to streams, against the order of elements."""

from itertools import permutations
from math import prod

import numpy as np
import pytest

from nnef_hw.ir import find_reordering, reordered_streams
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
    "more than an exchange of three axes": [
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
    assert reordered_streams(graph) == ((name,) if moves else ())
    reordering = find_reordering(graph, name)
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
    assert (check(*CHAINS[name]) is None) == name.startswith("more than")


def test_what_the_stream_has_already_needs_nothing():
    head = check(*CHAINS["head of a detector"])
    assert head.is_trivial
    assert check((1, 1, 4, 6), ("reshape", (1, 24))).is_trivial


@pytest.mark.parametrize("shape", [(2, 1, 2, 2), (16,), (), (1, 2, 3, 4, 5)], ids=str)
def test_what_is_no_image_streams_in_the_order_of_its_elements(shape):
    """A first extent that is no batch of 1 is not taken for one."""
    graph, name = graph_of(shape, ("reshape", (1, prod(shape))))
    assert find_reordering(graph, name).is_trivial
