"""What max-plus matrices say of the long run is what happens."""

import random
from fractions import Fraction

import pytest

from nnef_hw.parts.base.maxplus import NEVER, cycle_mean, followed_by, nothing, repeated


def run(turn, turns):
    """Return when each thing happens in every turn, from 0 on."""
    times = [[0] * len(turn)]
    for _ in range(turns):
        times.append([max(a + b for a, b in zip(row, times[-1], strict=True)) for row in turn])
    return times


def random_turn(choose, things):
    turn = [
        [choose.randint(0, 20) if choose.random() < 0.5 else NEVER for _ in range(things)]
        for _ in range(things)
    ]
    for n in range(things):
        turn[n][(n + 1) % things] = choose.randint(0, 20)
    return [tuple(row) for row in turn]


@pytest.mark.parametrize("seed", range(50))
def test_the_mean_is_that_of_a_long_run(seed):
    choose = random.Random(seed)
    turn = random_turn(choose, choose.randint(1, 5))
    mean, turns = cycle_mean(turn), 60 * 40
    times = run(turn, 2 * turns)
    assert Fraction(times[2 * turns][0] - times[turns][0], turns) == mean


@pytest.mark.parametrize("count", [0, 1, 2, 7, 32])
def test_turns_in_a_row(count):
    turn = random_turn(random.Random(count), 4)
    start = [3, 1, 4, 1]
    expected = start
    for _ in range(count):
        expected = [max(a + b for a, b in zip(row, expected, strict=True)) for row in turn]
    found = repeated(turn, count)
    assert [max(a + b for a, b in zip(row, start, strict=True)) for row in found] == expected


def test_a_turn_of_nothing_changes_nothing():
    turn = random_turn(random.Random(1), 3)
    assert followed_by(turn, nothing(3)) == followed_by(nothing(3), turn) == turn
