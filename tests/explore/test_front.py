"""Which designs are worth more work."""

import numpy as np
import pytest

from nnef_hw.explore.front import front, near_front
from nnef_hw.report.model.exploration import Placed, Point, Quality


def point(number, rate, lut, accuracy=1.0, board="a"):
    return Point(
        number=number, board=board, device="d", weight_bits=8, target_fps=None, clock_mhz=1.0,
        build="", available={"lut": 1000}, cycles_per_inference=round(1e6 / rate),
        estimated={"lut": lut}, quality=Quality("accuracy", 1, None, accuracy, None, None, None),
    )  # fmt: skip


def numbers(points):
    return [one.number for one in points]


def test_what_is_beaten_in_no_respect_is_on_the_front():
    points = [
        point(1, 100, 500), point(2, 50, 400), point(3, 50, 450), point(4, 100, 500, 0.9),
        point(5, 40, 399), point(6, 1, 999, 1.0, "b"), point(7, 50, 400),
    ]  # fmt: skip
    # 3 has more LUTs than 2, 4 loses accuracy for nothing, 7 is 2 again; boards are not compared.
    assert numbers(front(points)) == [1, 2, 5, 6]
    assert numbers(front([])) == []


def test_a_few_luts_may_be_wrong():
    points = [point(1, 100, 400), point(2, 100, 420), point(3, 50, 430), point(4, 50, 390)]
    assert numbers(near_front(points, 0.06)) == [1, 2, 4]
    assert numbers(near_front(points, 0.04)) == [1, 4]
    assert numbers(near_front(points, 0.12)) == [1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(5))
def test_the_front_by_its_definition(seed):
    rng = np.random.default_rng(seed)
    points = [
        point(n, 10.0 ** rng.integers(0, 4), int(rng.integers(1, 6)), rng.integers(0, 3) / 2)
        for n in range(30)
    ]
    worth = {one.number: (one.rate, -one.lut, one.quality.value) for one in points}
    expected = {
        values
        for values in worth.values()
        if not any(
            other != values and all(a >= b for a, b in zip(other, values, strict=True))
            for other in worth.values()
        )
    }
    best = front(points)
    assert {worth[one.number] for one in best} == expected
    assert len(best) == len(expected)
    assert set(numbers(best)) <= set(numbers(near_front(points, 0.05)))


def test_what_a_missed_clock_is_worth():
    one = point(1, 1000, 100)
    assert one.timing_met is None
    one.placed = Placed({"1": 0.4, "2": 0.5}, {})
    assert one.timing_met is False
    assert one.rate == pytest.approx(500)
    one.placed = Placed({"1": 0.4, "2": 1.5}, {})
    assert one.timing_met
    assert one.rate == pytest.approx(1000)
