"""Where words are that only change their places."""

import numpy as np
import pytest

from nnef_hw.engine.layers.nest import Nest
from nnef_hw.engine.layers.pieces import WordView
from nnef_hw.parts.engine.program import QUANTITIES


def places(view):
    """Return the places of all words of a view, in their order."""
    found = np.array([view.start])
    for count, stride in view.axes:
        found = (np.arange(count)[:, None] * stride + found).ravel()
    return found


def random_view(rng, extents):
    """Return a view of some words of a tensor of these extents, with its axes in another order."""
    strides = np.cumprod([1, *extents])[:-1].tolist()
    begins = [int(rng.integers((extent + 1) // 2)) for extent in extents]
    counts = [int(rng.integers(1, n - begin + 1)) for n, begin in zip(extents, begins, strict=True)]
    order = rng.permutation(len(extents))
    axes = tuple((counts[n], strides[n]) for n in order if counts[n] > 1)
    return WordView("x", int(np.dot(begins, strides)), axes)


def test_a_nest_that_writes_word_after_word():
    zeros = dict.fromkeys(QUANTITIES, (0,) * 6)
    strides = {**zeros, "read": (0, 0, 0, 4, 1, 0), "write": (0, 0, 0, 1, 3, 0)}
    nest = Nest((1, 1, 1, 3, 4, 1), strides, {**dict.fromkeys(QUANTITIES, 0), "read": 2})
    view = WordView.of("x", nest)
    assert places(view).tolist() == [2, 6, 10, 3, 7, 11, 4, 8, 12, 5, 9, 13]


@pytest.mark.parametrize("seed", range(200))
def test_views_of_views(seed):
    """Whatever is found is right; a view of the whole one is always found."""
    rng = np.random.default_rng(seed)
    first = random_view(rng, rng.integers(2, 7, 3).tolist())
    words = len(places(first))
    second = random_view(rng, [words] if seed % 2 else [count for count, _ in first.axes])
    found = first.behind(second)
    if found is not None:
        assert places(found).tolist() == places(first)[places(second)].tolist()
    assert first.behind(WordView("y", 0, ((words, 1),))) is not None


@pytest.mark.parametrize("seed", range(200))
def test_steps(seed):
    rng = np.random.default_rng(seed)
    view = random_view(rng, rng.integers(2, 7, 3).tolist())
    words = places(view)
    stride = int(rng.integers(1, len(words) + 1))
    count = int(rng.integers(1, -(-len(words) // stride) + 1))
    found, apart = view.step(count, stride), set(np.diff(words[::stride][:count]).tolist())
    assert found is None or apart <= {found}
