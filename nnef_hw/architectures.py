"""The architectures there are, in the order in which a build tries them."""

from __future__ import annotations

from typing import Any

from nnef_hw.architecture import Architecture
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.ir import Graph
from nnef_hw.streaming.architecture import Streaming

__all__ = ["ARCHITECTURES", "AUTO", "choose_architecture", "find_architecture"]

AUTO = "auto"
"""Stands for the first architecture that has hardware for a model."""

ARCHITECTURES: tuple[Architecture[Any], ...] = (Streaming(), SharedArray())


def find_architecture(name: str) -> Architecture[Any]:
    """Return an architecture by its name.

    Raises
    ------
    LookupError
        If there is none of that name.
    """
    for architecture in ARCHITECTURES:
        if architecture.name == name:
            return architecture
    raise LookupError(f"no architecture is called {name!r}")


def choose_architecture(name: str, graph: Graph) -> Architecture[Any]:
    """Return the one of that name; for :data:`AUTO` the first that can run a canonical graph.

    If none can it is the first one, whose problems are then the model's. Whether a model fits a
    board is not looked at: an engine has to be asked for.
    """
    if name != AUTO:
        return find_architecture(name)
    able = (architecture for architecture in ARCHITECTURES if not architecture.problems(graph))
    return next(able, ARCHITECTURES[0])
