"""Parts that many foldings of a layer have in common are made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar
from weakref import finalize

from nnef_hw.streaming.layers.layer import AnyLayer, Folding

__all__ = ["depends_on"]

R = TypeVar("R")

_kept: dict[int, dict[Any, Any]] = {}
"""Results that foldings of a layer have in common, by its identity, while it exists."""


def depends_on(*choices: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Keep what a folding's method makes of a layer: of the folding, it reads these choices only.

    The method takes a layer, what else follows from layer and choices, and last a device, of which
    only the family matters to it.
    """
    chosen = attrgetter(*choices)

    def decorate(method: Callable[..., R]) -> Callable[..., R]:
        @wraps(method)
        def keeping(folding: Folding, layer: AnyLayer, *rest: Any) -> R:
            kept = _kept.get(id(layer))
            if kept is None:
                kept = _kept[id(layer)] = {}
                finalize(layer, _kept.pop, id(layer))
            key = (method, rest[-1].family, chosen(folding))
            if key not in kept:
                kept[key] = method(folding, layer, *rest)
            found: R = kept[key]
            return found

        keeping.choices = choices  # type: ignore[attr-defined]
        return keeping

    return decorate
