# amaranth: UnusedElaboratable=no
import itertools
import re
from collections import deque

import pytest
from simulators import run_benches

from nnef_hw.rtl.arrays.multiplier import ProductOfSums, ProductPair, weight_code

DSP_FORMATS = [
    (2, False, 2),
    (8, True, 1),
    (5, False, 1),
    (4, True, 3),
    (8, False, 8),
    (8, True, 8),
    (8, True, 2),
    (8, False, 3),
    (8, False, 4),
    (8, True, 7),
]
FORMATS = [(*fmt, False) for fmt in [*DSP_FORMATS, (16, False, 8), (8, True, 9)]]
FORMATS += [(*fmt, True) for fmt in DSP_FORMATS]


def operands(bits, signed, rng):
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [lo, lo + 1, *([-1] if signed else []), 0, 1, hi, *rng.integers(lo, hi + 1, 3).tolist()]


@pytest.mark.parametrize(("x_bits", "x_signed", "w_bits", "in_dsp"), FORMATS)
def test_products_are_exact(x_bits, x_signed, w_bits, in_dsp, rng):
    pair = ProductPair(x_bits=x_bits, x_signed=x_signed, w_bits=w_bits, in_dsp=in_dsp)
    x = operands(x_bits, x_signed, rng)
    w = operands(w_bits, True, rng) if w_bits > 1 else [0, -1]
    first = list(itertools.product(x, w))
    stand_for = {code: code for code in w} if w_bits > 1 else {0: 1, -1: -1}
    second = [first[n] for n in rng.permutation(len(first))]

    async def bench(ctx):
        expected = deque()
        for (x0, w0), (x1, w1) in zip(first, second, strict=True):
            for port, value in ((pair.x0, x0), (pair.w0, w0), (pair.x1, x1), (pair.w1, w1)):
                ctx.set(port, value)
            expected.append((x0 * stand_for[w0], x1 * stand_for[w1]))
            await ctx.tick()
            if len(expected) == pair.latency:
                assert (ctx.get(pair.p0), ctx.get(pair.p1)) == expected.popleft()

    run_benches(pair, bench)


@pytest.mark.parametrize("in_dsp", [False, True])
@pytest.mark.parametrize(("x_bits", "w_bits"), [(1, 2), (3, 4), (4, 3), (8, 2), (8, 8)])
def test_products_of_sums_are_exact(x_bits, w_bits, in_dsp, rng):
    unit = ProductOfSums(x_bits=x_bits, w_bits=w_bits, in_dsp=in_dsp)
    ports = (unit.x0, unit.w1, unit.x1, unit.w0)
    widths = (x_bits, w_bits, x_bits, w_bits)
    values = [[-(1 << bits - 1), 0, (1 << bits - 1) - 1] for bits in widths]
    cases = [*itertools.product(*values)]
    cases += zip(*(rng.integers(v[0], v[2] + 1, 50).tolist() for v in values), strict=True)

    async def bench(ctx):
        expected = deque()
        for case in cases:
            for port, value in zip(ports, case, strict=True):
                ctx.set(port, value)
            x0, w1, x1, w0 = case
            expected.append((x0 + w1) * (x1 + w0))
            await ctx.tick()
            if len(expected) == unit.latency:
                assert ctx.get(unit.p) == expected.popleft()

    run_benches(unit, bench)


@pytest.mark.parametrize(("x_bits", "w_bits"), [(9, 8), (8, 9)])
def test_wide_sums_do_not_fit_a_multiplier(x_bits, w_bits):
    message = f"a multiplier of 9 bits cannot take sums of {x_bits} and {w_bits} bits"
    with pytest.raises(ValueError, match=re.escape(message)):
        ProductOfSums(x_bits=x_bits, w_bits=w_bits, in_dsp=True)


@pytest.mark.parametrize(("x_bits", "w_bits"), [(9, 8), (8, 9)])
def test_wide_operands_do_not_fit_a_dual_multiplier(x_bits, w_bits):
    message = f"a dual 8x8 multiplier cannot take {x_bits} x {w_bits} bits"
    with pytest.raises(ValueError, match=re.escape(message)):
        ProductPair(x_bits=x_bits, x_signed=False, w_bits=w_bits, in_dsp=True)


@pytest.mark.parametrize(
    ("weight", "bits", "code"), [(-1, 1, 1), (1, 1, 0), (-2, 2, 2), (0, 2, 0), (-1, 8, 255)]
)
def test_code_of_a_weight(weight, bits, code):
    assert weight_code(weight, bits) == code


@pytest.mark.parametrize("weight", [0, 2, -2])
def test_one_bit_holds_a_sign_only(weight):
    with pytest.raises(ValueError, match=f"one bit cannot hold a weight of {weight}"):
        weight_code(weight, 1)
