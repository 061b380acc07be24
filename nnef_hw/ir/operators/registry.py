"""Every operator by name, and answers that must exist for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from nnef_hw.ir.operators import (
    arithmetic,
    audio,
    contraction,
    data_movement,
    functions,
    places,
    resampling,
    selection,
    source,
    steps,
    window,
)
from nnef_hw.ir.operators.operator import CanonicalOperator, Operator, Trait

__all__ = ["PerOperator", "canonical_operators", "known_operators", "operator"]

T = TypeVar("T")

_MODULES = (
    arithmetic,
    audio,
    contraction,
    data_movement,
    functions,
    places,
    resampling,
    selection,
    steps,
    window,
)
_CANONICAL: dict[str, CanonicalOperator] = {
    found.name: found for module in _MODULES for found in module.OPERATORS
}
_KNOWN: dict[str, Operator] = {**{found.name: found for found in source.OPERATORS}, **_CANONICAL}


def operator(name: str) -> Operator:
    """Return an operator of any stage; one that nobody asks anything about has no traits."""
    return _KNOWN.get(name) or Operator(name)


def known_operators() -> tuple[Operator, ...]:
    """Return the operators of any stage that have traits."""
    return tuple(_KNOWN.values())


def canonical_operators(*traits: Trait) -> tuple[CanonicalOperator, ...]:
    """Return the operators of the canonical stage that have all these traits."""
    return tuple(found for found in _CANONICAL.values() if found.traits.issuperset(traits))


class PerOperator(Generic[T]):
    """Knowledge of a part of the compiler about every canonical operator: a function, a class.

    ``@layers("conv")`` registers one for operators by name, ``@layers(Trait.TABLE)`` for all that
    have a trait.

    Parameters
    ----------
    what
        One such answer, for messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._answers: dict[str, T] = {}

    def __call__(self, *which: str | Trait) -> Callable[[T], T]:
        """Register an answer for operators.

        Raises
        ------
        TypeError
            If there is no such operator, or it has an answer already.
        """

        def register(answer: T) -> T:
            for name in [name for item in which for name in _names(item)]:
                if name not in _CANONICAL:
                    raise TypeError(f"{self._what} of {name}, which is not canonical")
                if name in self._answers:
                    raise TypeError(f"a second {self._what} of {name}")
                self._answers[name] = answer
            return answer

        return register

    def __getitem__(self, name: str) -> T:
        """Return the answer for a canonical operator."""
        return self._answers[name]

    def __contains__(self, name: str) -> bool:
        """Whether an operator has an answer."""
        return name in self._answers

    def require_all(self) -> None:
        """Make sure that nothing was forgotten: to be called where all are registered.

        Raises
        ------
        TypeError
            If an operator of the canonical stage has no answer.
        """
        missing = sorted(_CANONICAL.keys() - self._answers.keys())
        if missing:
            raise TypeError(f"no {self._what} of {', '.join(missing)}")


def _names(which: str | Trait) -> list[str]:
    if isinstance(which, str):
        return [which]
    return [found.name for found in canonical_operators(which)]
