"""Products of a shared engine's array, and their sums over lanes, a word per cycle."""

import numpy as np
import pytest
from amaranth import Module, Signal
from engine_graphs import board_with, planned
from simulators import run_benches

from nnef_hw.parts.arrays.fast_array import fast_offsets
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.engine.products import add_products
from nnef_hw.testing import GraphBuilder

WORDS = 20


@pytest.mark.parametrize(
    ("rows", "lanes", "dsp"), [(8, 8, 64), (8, 8, 30), (12, 4, 20), (16, 16, 150)]
)
def test_every_word_has_its_own_sums(rng, fix, rows, lanes, dsp):
    """In trees of every height; what rows share comes with the products of the same word."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", (1, 7, 3, 4)), rng.normal(size=(19, 7, 3, 3)), padding=1)
    builder.conv(x, rng.normal(size=(19, 1, 3, 3)), padding=1, groups=19)
    part = planned(fix(builder.build()), rows, lanes, board=board_with(dsp)).design.engine
    assert part.array.fast == (rows * lanes > dsp)
    m = Module()
    given = Signal(lanes * CODE_BITS), Signal(rows * lanes * CODE_BITS)
    products, totals = add_products(m, part, *given)
    codes = rng.integers(0, 256, (WORDS, lanes))
    weights = rng.integers(-128, 128, (WORDS, rows, lanes))
    latency = 2 + part.pipeline.product_cycles
    cycles = WORDS + latency + part.array.tree_cycles
    alone = np.zeros((cycles, part.array.slide_rows, lanes), np.int64)
    sums = np.zeros((cycles, rows), np.int64)

    async def bench(ctx):
        for n in range(cycles):
            if n < WORDS:
                ctx.set(given[0], packed(codes[n]))
                ctx.set(given[1], packed(weights[n].ravel()))
            for row in range(part.array.slide_rows):
                alone[n, row] = [ctx.get(products[row][lane]) for lane in range(lanes)]
            sums[n] = [ctx.get(total) for total in totals]
            await ctx.tick()

    run_benches(m, bench)
    single = weights * codes[:, np.newaxis]
    assert (alone[latency:][:WORDS] == single[:, : part.array.slide_rows]).all()
    expected = single.sum(axis=2)
    for word, own in zip(weights, expected, strict=True):
        fast = word[part.array.plain_rows :, np.newaxis]
        own[part.array.plain_rows :] += fast_offsets(fast, x_bits=CODE_BITS, x_signed=False)
    found = sums[latency + part.array.tree_cycles :]
    assert ((found - expected) % (1 << part.array.acc_bits) == 0).all()


def packed(codes):
    """Return codes as one number, the first one lowest."""
    return sum((int(code) & 0xFF) << CODE_BITS * n for n, code in enumerate(codes))
