"""Find the part of a network in front of what has no hardware, and say how to end it there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from nnef_hw.errors import Location, NnefHwError
from nnef_hw.ir import Graph, Node

__all__ = ["BY_HOST", "OTHER_OPERATORS", "SupportedPart", "find_supported_part", "with_part"]

OTHER_OPERATORS = "use convolutions, linear layers, pools, functions and arithmetic"
"""Remedy for an operator of which nothing better is known."""

BY_HOST = "end the network before it, and let the host compute it"
"""Remedy for an operator that is usually behind the network proper."""

_DEFAULTS = {OTHER_OPERATORS, BY_HOST}

_LEAST_SHARE = 0.5
_MOST_RESULTS = 12
_MOST_ROUNDS = 3

Refused = Callable[[Graph], Sequence[NnefHwError]]


@dataclass(frozen=True, slots=True)
class SupportedPart:
    """The part of a network that hardware computes.

    Parameters
    ----------
    outputs
        Tensors at which it ends.
    share
        Of the network's parameters, how many it has.
    """

    outputs: tuple[str, ...]
    share: float


def find_supported_part(
    graph: Graph, errors: Sequence[NnefHwError], refused: Refused
) -> SupportedPart | None:
    """Return the largest part of a graph in front of what is refused; None if it is not worthwhile.

    It has at least half of the parameters, and at most 12 results, which are the author's tensors:
    others have another location than their node. There is none if each error has a better remedy
    than to leave an operator out.

    Parameters
    ----------
    errors
        Why the graph is refused: each has the location of one of its nodes, or is about an input.
    refused
        Why another graph is: the part is asked, too, and made smaller until there is no reason.
    """
    if all(error.remedy not in _DEFAULTS for error in errors):
        return None
    bad: set[str] = set()
    places: set[Location] = set()
    for _ in range(_MOST_ROUNDS):
        places |= {error.location for error in errors if error.location is not None}
        found = _behind(graph, places)
        if found == bad:
            return None
        bad = found
        outputs = tuple(_results_before(graph, bad))
        if not 0 < len(outputs) <= _MOST_RESULTS:
            return None
        part = _ended_at(graph, outputs)
        share = _parameters(part.nodes, graph) / max(_parameters(graph.nodes, graph), 1)
        if share < _LEAST_SHARE or part.states.keys() != graph.states.keys():
            return None
        errors = refused(part)
        if not errors:
            return SupportedPart(outputs, share)
    return None


def with_part(errors: Sequence[NnefHwError], part: SupportedPart | None) -> list[NnefHwError]:
    """Return errors with the remedy to end the network there, of those without a better one.

    The last of these names the part.
    """
    if part is None:
        return list(errors)
    last = [error for error in errors if error.remedy in _DEFAULTS][-1]
    end = f"end the network before {'it' if len(errors) == 1 else 'them'}"
    share = f"with {part.share:.0%} of its parameters"
    if last.location is None or last.location.line:
        end += f", at {', '.join(map(repr, part.outputs))}, {share}"
    else:
        end += f", {share}: --outputs {','.join(part.outputs)}"
    remedies = [
        end if error is last else BY_HOST if error.remedy in _DEFAULTS else error.remedy
        for error in errors
    ]
    return [
        type(error)(error.reason, remedy=remedy, location=error.location)
        for error, remedy in zip(errors, remedies, strict=True)
    ]


def _behind(graph: Graph, places: Collection[Location]) -> set[str]:
    """Return the results of the nodes at these places, and of all that need them or integer inputs.

    So does what leads there from the last tensor that is the author's.
    """
    found = {name for name in graph.inputs if graph.tensor(name).dtype != "scalar"}
    while True:
        count = len(found)
        for node in graph.nodes:
            if node.location in places or not found.isdisjoint((*node.inputs, *node.outputs)):
                found.update(node.outputs)
        for name in _results_before(graph, found):
            producer = graph.producer(name)
            if producer is not None and graph.tensor(name).location != producer.location:
                found.add(name)
        if len(found) == count:
            return found


def _results_before(graph: Graph, bad: Collection[str]) -> Iterable[str]:
    """Yield results of the other nodes that somebody needs."""
    wanted = {name for node in graph.nodes if node.name in bad for name in node.inputs}
    wanted.update(graph.outputs)
    for node in graph.nodes:
        if node.name not in bad:
            yield from (name for name in node.outputs if name in wanted)


def _ended_at(graph: Graph, outputs: tuple[str, ...]) -> Graph:
    """Return a graph with other results, without what they do not need."""
    needed, nodes = set(outputs), list[Node]()
    needed.update(state.result for state in graph.states.values())
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    inputs = tuple(name for name in graph.inputs if name in needed)
    part = replace(graph, inputs=inputs)
    return part.replaced(outputs=outputs, nodes=tuple(reversed(nodes)))


def _parameters(nodes: Iterable[Node], graph: Graph) -> int:
    """Return how many real numbers nodes read that are constants."""
    names = {name for node in nodes for name in node.inputs}
    tensors = map(graph.tensor, names)
    return sum(x.volume for x in tensors if x.data is not None and x.dtype == "scalar")
