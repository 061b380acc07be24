"""Cycles of passes are those of an array whose sums are followed one by one."""

import random
from fractions import Fraction

import pytest

from nnef_hw.parts.windows.passes import window_cycles

WINDOWS = 240


def cycles_of(windows, channels, rows, words, latency, kept_passes, interval, queued):
    """Return when the last sum of every window is taken."""
    left, taken, ends = [-1] * kept_passes, [-interval, -interval], []
    read = 0
    for _ in range(windows):
        for first in range(0, channels, rows):
            accepted = max(read, left[0] + 1)
            offered = max(accepted + latency, left[-1] + 1)
            for _ in range(min(rows, channels - first)):
                if queued:
                    leaves = max(offered, taken[-2] + 1)
                    taken.append(max(leaves + 1, taken[-1] + interval))
                else:
                    leaves = max(offered, taken[-1] + interval)
                    taken.append(leaves)
                offered = leaves + 1
            left, read = [*left[1:], leaves], accepted + words
        ends.append(taken[-1])
    return ends


@pytest.mark.parametrize("seed", range(100))
def test_window_cycles(seed):
    choose = random.Random(seed)
    rows = choose.randint(1, 20)
    channels = rows * choose.randint(1, 9) + choose.randint(0, 1) * choose.randint(0, rows - 1)
    array = {
        "channels": channels, "rows": rows, "words": choose.randint(1, 60),
        "latency": choose.randint(5, 12), "kept_passes": choose.randint(1, 2),
        "interval": choose.choice([1, 1, 2, 3, 4, 8, 16]), "queued": choose.random() < 0.5,
    }  # fmt: skip
    ends = cycles_of(2 * WINDOWS, **array)
    assert Fraction(ends[-1] - ends[WINDOWS - 1], WINDOWS) == window_cycles(**array)
