from itertools import combinations, pairwise

import numpy as np
import pytest

from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.arithmetic.cuts import Cuts


def graph_of(rng, results, inputs, mult=1):
    matrix = rng.integers(-31, 32, (results, inputs))
    return multiply_matrix(
        matrix, factors=[mult] * results, offsets=[3] * results, bits=6, signed=False
    )


def bits_at(cuts, place):
    """Bits of values that a cut behind a level crosses, edge by edge."""
    graph = cuts.graph
    crossing, codes = set(), 0
    for number, adder in enumerate(graph.adders, graph.inputs):
        crossing |= {value for value in (adder.first, adder.second) if value is not None
                     and graph.levels[value] <= place < graph.levels[number]}  # fmt: skip
    for value in graph.results:
        if value is None:
            continue
        if graph.levels[value] == place:
            crossing.add(value)
        codes += graph.levels[value] < place
    return sum(graph.widths[value] for value in crossing) + codes * cuts.code_bits


@pytest.mark.parametrize("chained", [1, 2, 3, 4, 7, 30])
@pytest.mark.parametrize(("results", "inputs", "mult"), [(4, 6, 1), (9, 3, 77), (1, 1, 1)])
def test_cuts_are_the_fewest_and_hold_the_fewest_bits(results, inputs, mult, chained, rng):
    cuts = Cuts(graph=graph_of(rng, results, inputs, mult), code_bits=5, chained=chained)
    gaps = [after - before for before, after in pairwise((0, *cuts.places, cuts.levels))]
    assert max(gaps) <= chained
    assert len(cuts.places) == -(-cuts.levels // chained) - 1
    if chained < 3:
        return
    candidates = [
        places for places in combinations(range(1, cuts.levels), len(cuts.places))
        if all(b - a <= chained for a, b in pairwise((0, *places, cuts.levels)))
    ]  # fmt: skip
    assert cuts.bits == min(sum(bits_at(cuts, p) for p in places) for places in candidates)


@pytest.mark.parametrize("chained", [1, 2, 5, 30])
def test_bits_held_are_those_of_values_that_cross(chained, rng):
    cuts = Cuts(graph=graph_of(rng, 8, 8, 5), code_bits=5, chained=chained)
    assert cuts.bits == sum(bits_at(cuts, place) for place in cuts.places)
    assert cuts.bits == sum(held.bits for held in cuts.held)
    computed = sum(held.computed for held in cuts.held)
    if chained == 1:
        # Every adder is before a register, and so is every code but those of the last level.
        graph = cuts.graph
        early = sum(graph.levels[value] + 1 < cuts.levels for value in graph.results)
        assert computed == sum(graph.adder_bits) + 5 * early
    else:
        assert computed < sum(cuts.graph.adder_bits)


def test_constants_need_no_cut():
    graph = multiply_matrix(
        np.zeros((2, 3), int), factors=[1, 1], offsets=[4, 5], bits=4, signed=False
    )
    cuts = Cuts(graph=graph, code_bits=4, chained=1)
    assert (cuts.places, cuts.bits) == ((), 0)
