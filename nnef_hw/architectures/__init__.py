"""The architectures there are; of equally good ones a build takes the first."""

from __future__ import annotations

from typing import Any

from nnef_hw.architecture.architecture import Architecture
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.errors import raise_all
from nnef_hw.ir import Graph
from nnef_hw.streaming.architecture import Streaming

__all__ = ["ARCHITECTURES", "AUTO", "able_architectures", "find_architecture"]

AUTO = "auto"
"""Stands for the architecture whose plan is best, of those that have hardware for a model."""

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


def able_architectures(name: str, graph: Graph) -> list[Architecture[Any]]:
    """List those that can run a canonical graph: all of them for :data:`AUTO`, or the one named.

    Whether a model fits a board is not looked at.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If none can: what the first of them lacks.
    """
    asked = ARCHITECTURES if name == AUTO else (find_architecture(name),)
    problems = {architecture.name: architecture.problems(graph) for architecture in asked}
    if all(problems.values()):
        raise_all(problems[asked[0].name])
    return [architecture for architecture in asked if not problems[architecture.name]]
