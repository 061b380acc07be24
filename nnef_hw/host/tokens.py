"""The loop of a language model: a token goes in, scores come out, one is chosen, and so on.

It needs NumPy alone; what computes a step is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.sampling import Xorshift, choose_code, sampling_weights
from nnef_hw.errors import UsageError

__all__ = ["Border", "Roles", "TokenLoop", "find_roles"]

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
        """Number of integers, of an input of integers; else 0."""


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
    """

    token: str
    scores: str
    qtype: QType
    tokens: int
    position: str | None = None
    context: int = 0


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
        (x, y) for x in integers for y in outputs if int(np.prod(y.shape)) == x.integers
    ]  # fmt: skip
    if real or not 1 <= len(integers) <= 2 or not pairs:
        raise UsageError(
            "the network is no step of a language model: it needs a token, perhaps a position, and "
            f"a score for each token; it has {shown}",
            remedy="run it with nnef-hw run",
        )
    named = [pair for pair in pairs if "tok" in pair[0].name.casefold()]
    token, scores = (named or pairs)[0]
    others = [x for x in integers if x is not token]
    place = others[0] if others else None
    return Roles(
        token.name, scores.name, scores.qtype, token.integers,
        position=place.name if place else None, context=place.integers if place else 0,
    )  # fmt: skip


class TokenLoop:
    """Tokens of a text, one after the other, as a network continues them.

    Parameters
    ----------
    roles
        What inputs and outputs are for.
    step
        What computes a step.
    temperature
        0 chooses the greatest score; else scores are divided by it, and weights of a softmax
        decide (:mod:`nnef_hw.arithmetic.sampling`).
    seed
        Of the random numbers.
    """

    def __init__(
        self, roles: Roles, step: StepCodes, *, temperature: float = 0.0, seed: int = 0
    ) -> None:
        if not (np.isfinite(temperature) and temperature >= 0):
            raise UsageError(f"a temperature of {temperature} is none", remedy="give 0 or more")
        self.roles, self._step = roles, step
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
            If the prompt is empty, has a token that there is not, or is longer than the context.
        """
        roles = self.roles
        self._check(prompt)
        return self._run([*prompt], tokens if not roles.context else
                         min(tokens, roles.context - len(prompt) + 1), stop)  # fmt: skip

    def _check(self, prompt: Sequence[int]) -> None:
        roles = self.roles
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

    def _run(self, given: list[int], tokens: int, stop: int | None) -> Iterator[int]:
        position, left = 0, tokens
        while left > 0:
            scores = self._scores(given.pop(0), position)
            position += 1
            if given:
                continue
            token = choose_code(scores, self._weights, self._generator)
            left -= 1
            yield token
            if token == stop:
                return
            given = [token]

    def _scores(self, token: int, position: int) -> Codes:
        roles = self.roles
        codes: dict[str, Any] = {roles.token: token}
        if roles.position is not None:
            codes[roles.position] = position
        found = self._step({name: np.full((1, 1), code) for name, code in codes.items()})
        return np.asarray(found[roles.scores]).reshape(-1)
