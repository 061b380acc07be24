"""The table of ONNX operators: one function lowers one operator in some of its versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value

__all__ = ["Lowering", "known_lowerings", "lowering_of", "lowers"]

Lowering = Callable[[OnnxCall], Value | Sequence[Value | None]]

_LOWERINGS: dict[tuple[str, str, int], Lowering] = {}


def lowers(op: str, *since: int, domain: str = "") -> Callable[[Any], Any]:
    """Register a function for the versions of an operator that began in these opsets."""

    def register(function: Lowering) -> Lowering:
        add_lowering(op, since, function, domain)
        return function

    return register


def add_lowering(op: str, since: Iterable[int], function: Lowering, domain: str = "") -> None:
    """Register a function as :func:`lowers` does."""
    for version in since:
        key = domain, op, version
        assert key not in _LOWERINGS, key
        _LOWERINGS[key] = function


def lowering_of(op: str, since: int, domain: str = "") -> Lowering | None:
    """Return the function for an operator's version; None if it is not supported."""
    return _LOWERINGS.get((domain, op, since))


def known_lowerings() -> Mapping[tuple[str, str, int], Lowering]:
    """Return the whole table, by domain, operator and version."""
    return _LOWERINGS
