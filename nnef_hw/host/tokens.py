"""The loop of a language model: a token goes in, scores come out, one is chosen, and so on.

It needs NumPy alone; what computes a step is given.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.records import Fields
from nnef_hw.arithmetic.sampling import Xorshift, choose_code, sampling_weights
from nnef_hw.errors import UsageError

__all__ = ["Border", "Roles", "TextLoop", "TokenLoop", "find_roles"]

_TOKEN = re.compile(r"tok|input_?id", re.IGNORECASE)
Codes = NDArray[np.int64]
StepCodes = Callable[[Mapping[str, Codes]], Mapping[str, Codes]]
"""Computes the codes of outputs from those of inputs, a step [1, ...] of each."""


class Border(Protocol):
    """A tensor at the border of a network, as manifests and graphs describe it."""

    @property
    def name(self) -> str:
        """Name of the tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""

    @property
    def qtype(self) -> QType:
        """Format."""

    @property
    def integers(self) -> int:
        """Number of integers, of an input of integers or of the number of a class; else 0."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Purposes of the inputs and outputs of a step.

    Parameters
    ----------
    token, scores
        Input of the token, output of a score for each next one.
    position
        Input of the token's place in the text; None if the network counts by itself.
    tokens, context
        How many tokens there are, and places; 0 if there is no end.
    is_choice
        The output is no scores but the token that the network itself chooses.
    """

    token: str
    scores: str
    qtype: QType
    tokens: int
    position: str | None = None
    context: int = 0
    is_choice: bool = False


def find_roles(inputs: Sequence[Border], outputs: Sequence[Border]) -> Roles:
    """Return which input is the token, which one its position, and which output has the scores.

    Raises
    ------
    UsageError
        If they cannot be told.
    """
    shown = ", ".join(f"{x.name!r} {list(x.shape)}" for x in (*inputs, *outputs))
    integers = [x for x in inputs if x.integers]
    real = [x.name for x in inputs if not x.integers]
    pairs = [
        (x, y) for x in integers for y in outputs
        if x.integers == (y.integers or int(np.prod(y.shape)))
    ]  # fmt: skip
    if real or not 1 <= len(integers) <= 2 or not pairs:
        raise UsageError(
            "the network is no step of a language model: it needs a token, perhaps a position, and "
            f"a score for each token; it has {shown}",
            remedy="run it with nnef-hw run",
        )
    named = [pair for pair in pairs if _TOKEN.search(pair[0].name)]
    token, scores = (named or pairs)[0]
    others = [x for x in integers if x is not token]
    place = others[0] if others else None
    return Roles(
        token.name, scores.name, scores.qtype, token.integers,
        position=place.name if place else None, context=place.integers if place else 0,
        is_choice=bool(scores.integers),
    )  # fmt: skip


class TextLoop(ABC):
    """Tokens of a text, one after the other, as a network continues them.

    Parameters
    ----------
    roles
        What inputs and outputs are for.
    temperature
        0 chooses the greatest score; else scores are divided by it, and weights of a softmax
        decide (:mod:`nnef_hw.arithmetic.sampling`).
    seed
        Of the random numbers.

    Raises
    ------
    UsageError
        If the temperature is none, or the network itself chooses its tokens.
    """

    most: ClassVar[int | None] = None
    """Tokens of a text at most; None if there is no limit."""

    def __init__(self, roles: Roles, *, temperature: float = 0.0, seed: int = 0) -> None:
        if not (np.isfinite(temperature) and temperature >= 0):
            raise UsageError(f"a temperature of {temperature} is none", remedy="give 0 or more")
        if temperature and roles.is_choice:
            raise UsageError(
                f"the network's output {roles.scores!r} is a token, not scores to choose from with "
                f"a temperature of {temperature:g}",
                remedy="omit the temperature, or end the network before its argmax (--outputs)",
            )
        self.roles = roles
        self._generator = Xorshift(seed)
        qtype = roles.qtype
        assert not isinstance(qtype.scale, tuple), "outputs have one scale"
        self._weights = (
            sampling_weights(qtype.scale, temperature, qtype.hi - qtype.lo + 1)
            if temperature
            else None
        )

    def generate(
        self, prompt: Sequence[int], tokens: int, stop: int | None = None
    ) -> Iterator[int]:
        """Yield tokens behind those of a prompt, as they come, from a text's beginning on.

        It ends behind so many, behind the token ``stop``, or where the context ends.

        Raises
        ------
        UsageError
            If the prompt is empty or longer than the context, or it or ``stop`` has a token that
            there is not, or a board writes fewer tokens.
        """
        roles = self.roles
        self._check(prompt, stop)
        if roles.context:
            tokens = min(tokens, roles.context - len(prompt) + 1)
        if self.most is not None and tokens > self.most:
            raise UsageError(
                f"a board writes at most {self.most:,} tokens of a text, not {tokens:,}",
                remedy=f"give --tokens {self.most}",
            )
        return self._run([*prompt], tokens, stop)

    @abstractmethod
    def _run(self, given: list[int], tokens: int, stop: int | None) -> Iterator[int]:
        """Yield the tokens behind those of a prompt that fits, so many at most."""

    def _check(self, prompt: Sequence[int], stop: int | None) -> None:
        roles = self.roles
        if stop is not None and not 0 <= stop < roles.tokens:
            raise UsageError(
                f"the token {stop} ends no text: the network's are 0 to {roles.tokens - 1}",
                remedy="give --stop one of them",
            )
        if not prompt:
            raise UsageError("the prompt is empty", remedy="give the token that begins a text")
        outside = [token for token in prompt if not 0 <= token < roles.tokens]
        if outside:
            raise UsageError(
                f"the prompt has the token {outside[0]}, but the network's are 0 to "
                f"{roles.tokens - 1}",
                remedy="take the tokenizer that the network was trained with",
            )
        if roles.context and len(prompt) > roles.context:
            raise UsageError(
                f"the prompt has {len(prompt)} tokens, more than the {roles.context} places of "
                "the context",
                remedy="give a shorter one",
            )


class TokenLoop(TextLoop):
    """The loop on the host: each step is computed, and its token chosen, before the next one.

    Parameters
    ----------
    roles, temperature, seed
        As of any :class:`TextLoop`.
    step
        What computes a step.
    begin
        What is done before the first step of a text.
    """

    def __init__(
        self,
        roles: Roles,
        step: StepCodes,
        *,
        temperature: float = 0.0,
        seed: int = 0,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(roles, temperature=temperature, seed=seed)
        self._step, self._begin = step, begin

    def _run(self, given: list[int], tokens: int, stop: int | None) -> Iterator[int]:
        position, left = 0, tokens
        self._begin()
        while left > 0:
            scores = self._scores(given.pop(0), position)
            position += 1
            if given:
                continue
            token = (
                int(scores[0])
                if self.roles.is_choice
                else choose_code(scores, self._weights, self._generator)
            )
            left -= 1
            yield token
            if token == stop:
                return
            given = [token]

    def _scores(self, token: int, position: int) -> Codes:
        roles = self.roles
        codes: Fields = {roles.token: token}
        if roles.position is not None:
            codes[roles.position] = position
        found = self._step({name: np.full((1, 1), code) for name, code in codes.items()})
        return np.asarray(found[roles.scores]).reshape(-1)
