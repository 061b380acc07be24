# amaranth: UnusedElaboratable=no
"""Packed products, what an array of them refuses, and which layers have one."""

import itertools
import re
from collections import deque

import numpy as np
import pytest
from examples.arrays import packed
from simulators import run_benches

from nnef_hw import parts
from nnef_hw.boards import find_board
from nnef_hw.rtl.arrays.packed_product import PackedProduct

FIELD = 1 << 14
ENDS = [-128, 0, 127], [-7, 1, 7]


def cases_of(rng, count):
    """Codes and weights (x0, x1, w0, w1, v0, v1): all at their ends, and others."""
    codes, weights = ENDS
    yield from itertools.product(codes, codes, *[weights] * 4)
    for _ in range(count):
        yield (*rng.integers(-128, 128, 2).tolist(), *rng.integers(-7, 8, 4).tolist())


@pytest.mark.parametrize("width", [36, 20])
def test_products_are_exact(width, rng):
    unit = PackedProduct(width=width)
    ports = unit.x0, unit.x1, unit.w0, unit.w1, unit.v0, unit.v1
    half = 1 << width - 1

    async def bench(ctx):
        expected = deque()
        for case in cases_of(rng, 200):
            for port, value in zip(ports, case, strict=True):
                ctx.set(port, value)
            x0, x1, w0, w1, v0, v1 = case
            product = (x0 + w1 + FIELD * v1) * (x1 + w0 + FIELD * v0)
            expected.append((product + half) % (2 * half) - half)
            await ctx.tick()
            if len(expected) == unit.latency:
                assert ctx.get(unit.p) == expected.popleft()

    run_benches(unit, bench)


def test_sums_of_four_units_are_separated_exactly(rng):
    """The identity of the component's docstring, for all ends and at random."""
    x0, x1, w0, w1, v0, v1 = np.array([*cases_of(rng, 20000)], np.int64).T
    product = (x0 + w1 + FIELD * v1) * (x1 + w0 + FIELD * v0) - x0 * x1
    below = x0 * w0 + x1 * w1 + w0 * w1
    assert (below.min(), below.max()) == (-1834, 1841)
    above = x0 * v0 + x1 * v1 + w1 * v0 + w0 * v1 + FIELD * v0 * v1
    for order in (np.argsort(below), rng.permutation(len(below))):
        fours = [values[order][: len(order) // 4 * 4].reshape(-1, 4).sum(axis=1)
                 for values in (product, below, above)]  # fmt: skip
        total = fours[0] + FIELD // 2
        assert (total % FIELD - FIELD // 2).tolist() == fours[1].tolist()
        assert (total // FIELD).tolist() == fours[2].tolist()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rows": 3, "group_rows": 2}, "must be even and lanes at least 2, not 3, 2 and 2"),
        ({"rows": 6, "group_rows": 3}, "must be even and lanes at least 2, not 6, 3 and 2"),
        ({"rows": 2, "group_rows": 2, "lanes": 1}, "lanes at least 2, not 2, 2 and 1"),
        ({"rows": 2, "group_rows": 2, "x_bits": 9}, "at most 8 bits and weights of 2 to 4, not 9"),
        ({"rows": 2, "group_rows": 2, "w_bits": 5}, "of 2 to 4, not 8 and 5"),
        ({"rows": 2, "group_rows": 2, "w_bits": 1}, "of 2 to 4, not 8 and 1"),
        ({"rows": 2, "group_rows": 2, "common_in_dsp": -1}, "at least the 1 multipliers"),
    ],
)
def test_what_no_multiplier_packs_is_refused(fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        packed(6, 4, **fields)


def test_weights_of_minus_eight_are_refused():
    part = packed(4, 3, rows=2, group_rows=2).part
    weights = np.zeros((4, 3, 2), np.int64)
    weights[2, 1, 1] = -8
    with pytest.raises(ValueError, match="takes weights of -7 to 7"):
        part.build(weights=weights)


@pytest.mark.parametrize(
    ("board", "bits", "lowest", "suits"),
    [
        ("ulx3s_85f", 4, -7, True), ("ulx3s_85f", 3, -4, True), ("ulx3s_85f", 4, -8, False),
        ("ulx3s_85f", 5, -7, False), ("ulx3s_85f", 1, -1, False), ("arty_a7_100", 4, -7, True),
        ("icebreaker", 4, -7, False), ("tang_nano_20k", 4, -7, False),
        ("tang_primer_25k", 4, -7, False),
    ],
)  # fmt: skip
def test_layers_that_multipliers_are_packed_for(board, bits, lowest, suits):
    """Where weights have both ends of -7 to 7 at most, and the family's blocks 18 bits."""
    weights = np.array([[[lowest, 1]]])
    device = find_board(board).device
    found = parts.PackedArray.suits(device, x_bits=8, w_bits=bits, weights=weights)
    assert found == suits
