"""What reshapes and transpositions do to streams, against the order of elements."""

from itertools import permutations
from math import prod

import numpy as np
import pytest

from nnef_hw.ir import Node, find_reordering

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


def check(node, before, after, moved):
    tensor = np.arange(prod(before)).reshape(before)
    reordering = find_reordering(node, before, after)
    image = stream(tensor).reshape(reordering.extents)
    expected = stream(moved(tensor))
    np.testing.assert_array_equal(image.transpose(reordering.order).reshape(-1), expected)
    assert reordering.is_trivial == np.array_equal(stream(tensor), expected)


@pytest.mark.parametrize(("shape", "axes"), TRANSPOSED, ids=str)
def test_transpositions(shape, axes):
    node = Node("transpose", ("x",), ("y",), {"axes": list(axes)})
    after = tuple(shape[axis] for axis in axes)
    check(node, shape, after, lambda x: x.transpose(axes))


@pytest.mark.parametrize(("before", "after"), RESHAPED, ids=str)
def test_reshapes(before, after):
    node = Node("reshape", ("x",), ("y",), {"shape": list(after)})
    check(node, before, after, lambda x: x.reshape(after))


def test_more_than_a_transposition_is_none():
    node = Node("reshape", ("x",), ("y",), {"shape": [1, 4, 3, 2]})
    assert find_reordering(node, (1, 2, 3, 4), (1, 4, 3, 2)) is None
