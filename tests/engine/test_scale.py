"""Scales of engines: what may be changed without changing any code."""

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.engine.layers.scale import channel_sums, settled


@pytest.mark.parametrize("zero_point", [0, 17])
@pytest.mark.parametrize("one_factor", [False, True])
def test_channels_of_one_code_get_small_sums(zero_point, one_factor):
    rng = np.random.default_rng(5)
    filters = rng.integers(-127, 128, (12, 9, 2))
    filters[4:10] = rng.integers(-1, 2, (6, 9, 2))
    filters[7] = 0
    biases = rng.integers(-5000, 5000, 12)
    biases[4:10] = [8_000_000, -8_300_000, 3_000_000, 7_654_321, -1, 2_000_000]
    mult = (9,) if one_factor else (30000, 31000, 20000, 32000, 3, 4, 5, 7, 3, 30000, 900, 27000)
    requant = Requant(mult=mult, shift=22, zero_point=zero_point, lo=0, hi=255)
    codes = rng.integers(0, 256, (500, 9, 2))

    def results(filters, biases, requant):
        sums = np.einsum("ctk,ntk->nc", filters, codes) + biases
        factors = np.array(requant.mult)
        rounded = (sums * factors + (1 << requant.shift - 1)) >> requant.shift
        return (rounded + requant.zero_point).clip(requant.lo, requant.hi)

    changed = settled(filters, biases, requant, 255)
    assert (results(*changed) == results(filters, biases, requant)).all()
    before, after = (
        np.abs(channel_sums(x, b, 255)).max() for x, b in ((filters, biases), changed[:2])
    )
    assert before > 1 << 22
    if not one_factor:
        assert after < 1 << 20
    # Channels whose codes differ stay what they are.
    assert (changed[0][[0, 1, 2, 3, 11]] == filters[[0, 1, 2, 3, 11]]).all() or one_factor


def test_nothing_changes_where_no_code_is_constant():
    rng = np.random.default_rng(6)
    filters, biases = rng.integers(-127, 128, (4, 3)), rng.integers(-500, 500, 4)
    requant = Requant(mult=(30000, 31000, 20000, 32000), shift=20, zero_point=3, lo=0, hi=255)
    found = settled(filters, biases, requant, 255)
    assert found[0] is filters
    assert found[1] is biases
    assert found[2] is requant
