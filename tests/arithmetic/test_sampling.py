"""Choice of a token: numbers of the generator, weights, and what they choose."""

from itertools import pairwise

import numpy as np
import pytest

from nnef_hw.arithmetic.sampling import Xorshift, choose_code, sampling_weights


def test_the_generator_is_that_of_the_page():
    x = 5 * 0x9E3779B9 + 0x7F4A7C15 & 0xFFFFFFFF
    numbers = []
    for _ in range(11):
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        numbers.append(x)
    generator = Xorshift(5)
    assert [generator.draw() for _ in range(3)] == numbers[8:]


def test_seeds_that_are_neighbours_give_other_numbers():
    first = [Xorshift(seed).draw() >> 24 for seed in range(64)]
    assert len(set(first)) > 40


def test_weights_fall_by_the_temperature():
    weights = sampling_weights(0.5, 2.0, 256)
    assert weights[:3].tolist() == [65535, 51039, 39749]
    assert weights[-1] == 0
    assert (np.diff(weights) <= 0).all()
    assert (sampling_weights(0.5, 4.0, 256)[1:50] > weights[1:50]).all()


def test_without_weights_the_first_of_the_greatest_is_chosen():
    assert choose_code([3, 9, 9, -1], None, Xorshift(0)) == 1


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_tokens_are_as_frequent_as_their_weights(seed):
    weights = sampling_weights(0.25, 1.0, 16)
    scores, generator = np.array([-3, 5, 2, 5]), Xorshift(seed)
    found = [choose_code(scores, weights, generator) for _ in range(4000)]
    counts = np.bincount(found, minlength=4)
    wanted = weights[5 - scores] / weights[5 - scores].sum() * 4000
    # three standard deviations of a count
    assert (abs(counts - wanted) <= 3 * np.sqrt(wanted)).all()


def test_a_token_whose_weight_is_zero_is_never_chosen():
    weights = np.array([1, 0])
    generator = Xorshift(3)
    found = {choose_code([0, 1, 0, 1], weights, generator) for _ in range(200)}
    assert found == {1, 3}
    assert all(a != b for a, b in pairwise(generator.draw() for _ in range(9)))
