"""The architectures there are; of equally good ones a build takes the first."""

from __future__ import annotations

from nnef_hw.architecture.architecture import AnyArchitecture
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.errors import NnefHwError, raise_all
from nnef_hw.ir import Graph
from nnef_hw.streaming.architecture import Streaming

__all__ = [
    "ARCHITECTURES",
    "AUTO",
    "able_architectures",
    "find_architecture",
    "unable_architectures",
]

AUTO = "auto"
"""Stands for the architecture whose plan is best, of those that have hardware for a model."""

ARCHITECTURES: tuple[AnyArchitecture, ...] = (Streaming(), SharedArray())


def find_architecture(name: str) -> AnyArchitecture:
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


def able_architectures(name: str, graph: Graph) -> list[AnyArchitecture]:
    """List those that can run a canonical graph: all of them for :data:`AUTO`, or the one named.

    Whether a model fits a board is not looked at.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If none can: what the first of them lacks.
    """
    asked = ARCHITECTURES if name == AUTO else (find_architecture(name),)
    problems = unable_architectures(name, graph)
    if len(problems) == len(asked):
        raise_all(problems[asked[0].name])
    return [architecture for architecture in asked if architecture.name not in problems]


def unable_architectures(name: str, graph: Graph) -> dict[str, list[NnefHwError]]:
    """Say by name why an architecture cannot run a graph, of those that were asked for."""
    asked = ARCHITECTURES if name == AUTO else (find_architecture(name),)
    problems = {architecture.name: architecture.problems(graph) for architecture in asked}
    return {arch: found for arch, found in problems.items() if found}
