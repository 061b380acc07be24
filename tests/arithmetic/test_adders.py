from itertools import pairwise

import numpy as np
import pytest

from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.arithmetic.subexpressions import share, signed_digits


@pytest.mark.parametrize("factor", [*range(-300, 300), 65535, -43691, 1 << 40])
def test_signed_digits(factor):
    digits = list(signed_digits(factor))
    assert sum(digit << position for position, digit in digits) == factor
    positions = [position for position, _ in digits]
    assert all(after - before > 1 for before, after in pairwise(positions))


def values_of(graph, codes):
    """All values of a graph, of codes [inputs, samples]."""
    values = list(codes)
    for adder in graph.adders:
        first = adder.constant if adder.first is None else values[adder.first]
        values.append(first + adder.sign * (values[adder.second] << adder.shift))
    return values


def codes_of(rng, inputs, bits, signed):
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice([lo, hi, *rng.integers(lo, hi + 1, 6)], (inputs, 400))


@pytest.mark.parametrize(("bits", "signed"), [(8, False), (5, True), (1, False)])
@pytest.mark.parametrize(("results", "inputs"), [(2, 1), (6, 9), (20, 12), (3, 40)])
def test_multiplies_by_a_matrix(results, inputs, bits, signed, rng):
    matrix = rng.integers(-127, 128, (results, inputs))
    matrix[rng.random(matrix.shape) < 0.2] = 0
    matrix[0] = 0
    factors, offsets = rng.integers(1, 50, results), rng.integers(-999, 999, results)
    graph = multiply_matrix(
        matrix, factors=factors.tolist(), offsets=offsets.tolist(), bits=bits, signed=signed
    )
    codes = codes_of(rng, inputs, bits, signed)
    values = values_of(graph, codes)
    expected = factors[:, None] * (matrix @ codes) + offsets[:, None]
    assert (expected == graph.apply(codes.T).T).all()
    for found, (lo, hi), width in zip(values, graph.ranges, graph.widths, strict=True):
        assert lo <= found.min() <= found.max() <= hi
        assert hi - lo < 1 << width
    assert graph.results[0] is None
    assert graph.depth == max(
        (graph.levels[value] for value in graph.results if value is not None), default=0
    )


def test_ranges_are_reached(rng):
    """A value of the sign that each weight asks for takes every sum to its end."""
    matrix = rng.integers(-9, 10, (4, 6))
    graph = multiply_matrix(matrix, factors=[1] * 4, offsets=[5] * 4, bits=3, signed=True)
    for row, value in zip(matrix, graph.results, strict=True):
        low = np.where(row > 0, -4, 3)
        assert graph.ranges[value] == (row @ low + 5, row @ (-1 - low) + 5)


def test_what_sums_share_is_computed_once():
    # 5 x + 3 y twice, once of it negative and shifted, and a sum of its own
    rows = [[5, 3, 0], [-10, -6, 1], [0, 0, 7]]
    graph = multiply_matrix(np.array(rows), factors=[1] * 3, offsets=[0] * 3, bits=4, signed=False)
    # 5 x, 3 y and their sum; another one for z; 8 z - z; and an offset for each
    assert len(graph.adders) == 3 + 1 + 1 + 3


def test_sharing_saves_half_of_random_weights(rng):
    matrix = rng.integers(-31, 32, (32, 32))
    graph = multiply_matrix(matrix, factors=[1] * 32, offsets=[0] * 32, bits=8, signed=False)
    digits = sum(1 for weight in matrix.flat for _ in signed_digits(int(weight)))
    assert len(graph.adders) < 0.6 * (digits - 32)


def test_terms_of_two_pairs_are_shared_once():
    """In x + 2 x + 4 x a pair with a shift of one occurs twice, but the middle term is one."""
    row = {(0, 0): 1, (0, 1): 1, (0, 2): 1}
    patterns, rows = share([row], 1)
    assert patterns == []
    assert rows == [row]


def test_networks_of_random_weights_take_few_adders():
    """da4ml 0.6.0 takes 4,241 adders for the same matrices; 2% more are 4,325."""
    rng = np.random.default_rng(0)
    adders = digits = 0
    for inputs, results in [(16, 64), (64, 32), (32, 32), (32, 5)]:
        matrix = rng.integers(-32, 32, (results, inputs))
        graph = multiply_matrix(
            matrix, factors=[1] * results, offsets=[0] * results, bits=6, signed=False
        )
        # Those that add the offset are no adders of the product.
        adders += sum(adder.first is not None for adder in graph.adders)
        digits += sum(1 for weight in matrix.flat for _ in signed_digits(int(weight)))
    assert adders <= 4325 < digits
