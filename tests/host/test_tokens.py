"""The loop of a language model, on a network of numbers that are known."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.errors import UsageError
from nnef_hw.host.chip_loop import BoardLoop
from nnef_hw.host.tokens import TokenLoop, find_roles

SCORES = QType(8, signed=True, scale=0.5)


def border(name, shape, integers=0):
    return SimpleNamespace(name=name, shape=shape, qtype=SCORES, integers=integers)


def roles(context=6, tokens=5):
    inputs = [border("position", (1,), context), border("token", (1,), tokens)]
    return find_roles(inputs, [border("y", (1, tokens))])


class Steps:
    """Scores the token behind the one that it gets, and notes what it got."""

    def __init__(self):
        self.seen = []

    def __call__(self, codes):
        token, position = (int(codes[name].item()) for name in ("token", "position"))
        self.seen.append((token, position))
        return {"y": np.eye(5, dtype=int)[None, (token + 1) % 5] * 9}


def test_the_prompt_goes_through_the_same_loop():
    steps = Steps()
    found = list(TokenLoop(roles(), steps).generate([3, 1], 3))
    assert found == [2, 3, 4]
    assert steps.seen == [(3, 0), (1, 1), (2, 2), (3, 3)]


def test_a_text_ends_with_a_token_or_with_the_context():
    assert list(TokenLoop(roles(), Steps()).generate([0], 9, stop=3)) == [1, 2, 3]
    # six places take six tokens, the last of which gives one more
    assert len(list(TokenLoop(roles(), Steps()).generate([0, 1], 99))) == 5


def test_tokens_come_one_by_one():
    steps = Steps()
    text = TokenLoop(roles(), steps).generate([0], 3)
    assert next(text) == 1
    assert len(steps.seen) == 1


def test_a_seed_decides():
    def text(seed):
        return list(TokenLoop(roles(99), Steps(), temperature=3.0, seed=seed).generate([0], 40))

    assert text(1) == text(1) != text(2)


def test_roles_are_told_by_names_and_numbers():
    found = roles()
    assert (found.token, found.position, found.scores) == ("token", "position", "y")
    assert (found.tokens, found.context) == (5, 6)
    alike = find_roles([border("place", (1,), 5), border("tokens", (1,), 5)], [border("y", (1, 5))])
    assert (alike.token, alike.position) == ("tokens", "place")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([border("x", (1, 4))], [border("y", (1, 5))]),
        ([border("token", (1,), 4)], [border("y", (1, 5))]),
    ],
)
def test_other_networks_are_refused(inputs, outputs):
    with pytest.raises(UsageError, match="no step of a language model"):
        find_roles(inputs, outputs)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ([], "the prompt is empty; give the token that begins a text"),
        ([2, 5], "the prompt has the token 5, but the network's are 0 to 4"),
        ([1] * 7, "the prompt has 7 tokens, more than the 6 places of the context"),
    ],
)
def test_prompts_that_do_not_fit_are_refused(prompt, reason):
    with pytest.raises(UsageError, match=re.escape(reason)):
        TokenLoop(roles(), Steps()).generate(prompt, 3)


def test_more_tokens_than_a_board_counts_are_refused():
    endless = BoardLoop(roles(), host=None, begin=list)
    endless.roles = replace(endless.roles, context=0)
    with pytest.raises(UsageError, match="a board writes at most 65,535 tokens of a text, not 70,"):
        endless.generate([1], 70_000)
    assert endless.generate([1], 65_535)


def test_a_negative_temperature_is_refused():
    with pytest.raises(UsageError, match="a temperature of -1"):
        TokenLoop(roles(), Steps(), temperature=-1)
