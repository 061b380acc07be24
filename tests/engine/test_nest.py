"""Loops and passes, against loops in Python."""

from itertools import product

import pytest

from nnef_hw.engine.layers.nest import Nest, Pass, issue_cycles
from nnef_hw.parts.engine.program import QUANTITIES


def test_steps_lead_from_word_to_word():
    counts = (2, 3, 1, 2, 4, 2)
    strides = {
        name: tuple((n + 3 * k) % 7 - 2 for k in range(6)) for n, name in enumerate(QUANTITIES)
    }
    starts = dict.fromkeys(QUANTITIES, 5)
    nest = Nest(counts, strides, starts)
    indices = [place[::-1] for place in product(*map(range, counts[::-1]))]
    assert nest.words == len(indices)
    for name in QUANTITIES:
        expected = [
            5 + sum(i * stride for i, stride in zip(index, strides[name], strict=True))
            for index in indices
        ]
        assert nest.extremes(name) == (min(expected), max(expected))
        value, found = 5, []
        for index, following in zip(indices, [*indices[1:], None], strict=True):
            found.append(value)
            level = next((k for k in range(6) if index[k] < counts[k] - 1), None)
            assert (level is None) == (following is None)
            value += 0 if level is None else nest.steps(name)[level]
        assert found == expected


@pytest.mark.parametrize(
    "passes", [[Pass(3, 4)], [Pass(2, 4), Pass(2, 1)], [Pass(9, 4), Pass(3, 4)]]
)
def test_last_words_wait_for_results(passes):
    time, free = 0, 0
    for step in passes * 5:
        time = max(time + step.words, free)
        free = time + step.results
    assert issue_cycles(passes, 5) == time
