"""What is said to fit fits, and what is said not to does not: against every choice there is."""

from itertools import product

import numpy as np
import pytest

from nnef_hw.streaming.search.knapsack import cheapest, choose, least, undominated

LUT, RESOURCES = 0, 4


def every_sum(tables):
    choices = product(*(range(len(table)) for table in tables))
    return np.array([
        sum(table[n] for table, n in zip(tables, choice, strict=True)) for choice in choices
    ])


def sum_of(tables, chosen):
    return sum(table[n] for table, n in zip(tables, chosen, strict=True))


@pytest.fixture(params=range(60))
def case(request):
    """Return small tables, and limits near those at which something begins to fit."""
    rng = np.random.default_rng(request.param)
    tables = [
        np.column_stack([
            rng.integers(1, 60, count), rng.integers(0, 6, count), rng.integers(0, 6, count),
            rng.integers(0, 2, count) * (request.param % 3 == 0),
        ])
        for count in rng.integers(1, 9, rng.integers(1, 5))
    ]  # fmt: skip
    sums = every_sum(tables)
    limits = sums[rng.integers(len(sums))] - rng.integers(0, 3, RESOURCES)
    return tables, limits, sums


def test_a_choice_is_found_exactly_where_there_is_one(case):
    tables, limits, sums = case
    chosen = choose(tables, limits)
    assert (chosen is not None) == (sums <= limits).all(axis=1).any()
    assert chosen is None or (sum_of(tables, chosen) <= limits).all()


def test_the_cheapest_choice_has_the_fewest_luts(case):
    tables, limits, sums = case
    chosen = cheapest(tables, limits)
    fitting = sums[(sums <= limits).all(axis=1)]
    if chosen is None:
        assert not len(fitting)
    else:
        used = sum_of(tables, chosen)
        assert (used <= limits).all()
        assert used[LUT] == fitting[:, LUT].min()


@pytest.mark.parametrize("resource", range(RESOURCES))
def test_the_least_of_a_resource_is_what_the_others_leave(resource, case):
    tables, limits, sums = case
    others = np.delete(np.arange(RESOURCES), resource)
    fitting = sums[(sums[:, others] <= limits[others]).all(axis=1), resource]
    assert least(tables, limits, resource) == (fitting.min() if len(fitting) else None)


def test_nothing_fits_into_less_than_nothing():
    tables = [np.zeros((1, RESOURCES), np.int64)]
    assert choose(tables, np.zeros(RESOURCES, np.int64)) == [0]
    assert choose(tables, np.array([0, 0, -1, 0])) is None
    assert choose([*tables, np.zeros((0, RESOURCES), np.int64)], np.full(RESOURCES, 9)) is None


def test_many_layers_that_all_but_fit_are_told_from_those_that_fit(rng):
    """No price tells them apart: every layer takes 2 of one resource, or 2 of the other."""
    tables = [np.array([[1, 2, 0, 0], [1, 0, 2, 0]])] * 41
    assert choose(tables, np.array([41, 41, 42, 0])) is not None
    assert choose(tables, np.array([41, 41, 41, 0])) is None


def test_undominated_rows(rng):
    points = rng.integers(0, 4, [60, 3])
    kept = undominated(points)
    for n, point in enumerate(points):
        beaten = (points <= point).all(axis=1) & (points < point).any(axis=1)
        first = (points[:n] == point).all(axis=1).any()
        assert (n in kept) == (not beaten.any() and not first)
    assert points[kept].tolist() == sorted(points[kept].tolist())
