# amaranth: UnusedElaboratable=no
"""Products of many bits, in DSP blocks or in LUTs."""

import numpy as np
import pytest
from simulators import run_benches

from nnef_hw.rtl.arrays.wide_product import WideProduct


@pytest.mark.parametrize(("a_bits", "b_bits"), [(26, 16), (17, 3), (32, 16)])
@pytest.mark.parametrize("in_dsp", [False, True])
def test_multiplies(a_bits, b_bits, in_dsp, rng):
    top = 1 << a_bits - 1
    a = np.concatenate([[-top, -top, top - 1, -1, 0], rng.integers(-top, top, 40)])
    b = np.concatenate([[(1 << b_bits) - 1, 0] * 2, [1], rng.integers(0, 1 << b_bits, 40)])
    product = WideProduct(a_bits=a_bits, b_bits=b_bits, in_dsp=in_dsp)
    found = []

    async def drive(ctx):
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            ctx.set(product.a, x)
            ctx.set(product.b, y)
            await ctx.tick()
            found.append(ctx.get(product.p))

    run_benches(product, drive)
    assert found == [x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize(("a_bits", "b_bits"), [(16, 16), (33, 16), (26, 17)])
def test_refuses_other_widths(a_bits, b_bits):
    with pytest.raises(ValueError, match=f"not {a_bits} and {b_bits}"):
        WideProduct(a_bits=a_bits, b_bits=b_bits, in_dsp=True)
