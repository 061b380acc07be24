"""A front end: operators in front of a network, whose input becomes what a sensor gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.errors import UsageError
from nnef_hw.ir import Graph, Stage, Tensor

__all__ = ["Front", "chosen_input", "unused_name", "with_tensors"]


@dataclass(frozen=True, kw_only=True)
class Front(ABC):
    """A front end, to be put in front of a network.

    Parameters
    ----------
    network_input
        Input of the network that it computes; None is the only one.
    """

    op: ClassVar[str]
    """Name of the front end: ``front`` in a file."""
    network_input: str | None = None

    @abstractmethod
    def put(self, graph: Graph) -> Graph:
        """Return a network behind this front end, whose input is what a sensor gives.

        Raises
        ------
        UsageError
            If the network has no such input, or one of another shape than the front end gives; if
            its integers are fixed already.
        """


def chosen_input(graph: Graph, front: Front) -> str:
    """Return the name of the input that a front end computes.

    Raises
    ------
    UsageError
        If there is none, several and none is named, or the network's integers are fixed.
    """
    if graph.stage != Stage.FLOAT:
        raise UsageError(
            f"{front.op} cannot be put in front of model {graph.name!r}: its integers are fixed",
            remedy="put it in front of the model that was quantized",
        )
    names = ", ".join(graph.inputs)
    if front.network_input is None and len(graph.inputs) > 1:
        raise UsageError(
            f"model {graph.name!r} has {len(graph.inputs)} inputs ({names}): which one {front.op} "
            "computes is not clear",
            remedy=f"name it: network_input = {graph.inputs[0]!r}",
        )
    if front.network_input is not None and front.network_input not in graph.inputs:
        raise UsageError(
            f"model {graph.name!r} has no input {front.network_input!r}",
            remedy=f"its inputs are {names}",
        )
    return front.network_input or graph.inputs[0]


def unused_name(graph: Graph, name: str) -> str:
    """Return a name that no tensor of a graph has: the given one, or one like it."""
    while name in graph.tensors:
        name += "_"
    return name


def with_tensors(graph: Graph, made: Sequence[Tensor]) -> Graph:
    """Return a graph with further tensors ahead of its own."""
    return replace(graph, tensors={**{tensor.name: tensor for tensor in made}, **graph.tensors})
