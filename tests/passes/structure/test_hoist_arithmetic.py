"""Reductions along any axes, before and behind a transpose: the same results, in a few rounds."""

from itertools import combinations

import numpy as np
import pytest
from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder


@pytest.mark.parametrize("op", ["mean_reduce", "max_reduce"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 3, 4, 5), None),
        ((1, 3, 4, 5), [0, 2, 3, 1]),
        ((1, 3, 1, 4), [0, 2, 3, 1]),
        ((1, 3, 4), [0, 2, 1]),
    ],
)
def test_no_pass_undoes_it(shape, axes, op, rng):
    rank = len(shape)
    for count in range(1, rank):
        for reduced in combinations(range(1, rank), count):
            g = GraphBuilder()
            x = g.op("tanh", g.input("x", shape))
            x = x if axes is None else g.op("transpose", x, axes=axes)
            y = g.op("sub", x, g.op(op, x, axes=list(reduced)))
            gains = rng.normal(size=(*[1] * (rank - 1), shape[axes[-1] if axes else -1]))
            assert canonical_ops(g.build(g.op("mul", y, gains)), rng)


def test_channels_that_were_put_last_are_channels(rng):
    g = GraphBuilder()
    x = g.conv(g.input("x", [1, 2, 3, 4]), np.ones((5, 2, 1, 1)))
    x = g.op("transpose", x, axes=[0, 2, 3, 1])
    x = g.op("sub", x, g.op("mean_reduce", x, axes=[3]))
    ops = canonical_ops(g.build(g.op("transpose", x, axes=[0, 3, 1, 2])), rng)
    assert [op for op in ops if op not in {"reshape", "nearest_upsample"}] == [
        "conv", "conv", "transpose", "sub",
    ]  # fmt: skip
