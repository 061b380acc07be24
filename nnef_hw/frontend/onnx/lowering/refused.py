"""Refusals of a model with problems: each kind once, and how to end the graph before them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.frontend.building.builder import identifier
from nnef_hw.frontend.onnx.file.model import Constant, OnnxGraph, OnnxModel, OnnxNode
from nnef_hw.frontend.onnx.file.order import read_names
from nnef_hw.frontend.onnx.lowering.interface import cut_at
from nnef_hw.ir import Graph

__all__ = ["OTHER_OPERATORS", "grouped", "with_cut"]

OTHER_OPERATORS = "replace it by other operators"
"""Remedy for an operator of which nothing better is known."""

_LEAST_SHARE = 0.5
_MOST_RESULTS = 12

_NAME = re.compile(r"'[^']*'")


def grouped(errors: Iterable[NnefHwError]) -> list[NnefHwError]:
    """Return the first of all errors that differ in the first name only, with their number."""
    alike: dict[tuple[object, ...], list[NnefHwError]] = {}
    for error in errors:
        kind = _NAME.sub("''", error.reason, count=1)
        alike.setdefault((type(error), kind, error.remedy, error.location), []).append(error)
    return [_counted(found) for found in alike.values()]


def _counted(alike: Sequence[NnefHwError]) -> NnefHwError:
    first = alike[0]
    if len(alike) == 1:
        return first
    reason = f"{first.reason} (and {len(alike) - 1} more like it)"
    return type(first)(reason, remedy=first.remedy, location=first.location)


def with_cut(
    errors: Sequence[NnefHwError],
    model: OnnxModel,
    refused: Sequence[OnnxNode],
    read: Callable[[OnnxModel], Graph],
) -> list[NnefHwError]:
    """Return errors, the last with the values at which the model can be ended before them.

    Only if the part is read, has at least half of the parameters, and at most 12 results.

    Parameters
    ----------
    refused
        Nodes of the model's graph that the errors are about.
    read
        Reads another model.
    """
    if not refused or not all(isinstance(error, UnsupportedError) for error in errors):
        return list(errors)
    bad = {name for node in refused for name in node.outputs if name}
    for node in model.graph.nodes:
        if not bad.isdisjoint(read_names(node)):
            bad.update(filter(None, node.outputs))
    found = _readable(model, list(_values_before(model.graph, bad)), read)
    if found is None:
        return list(errors)
    names, share = found
    *others, last = errors
    before = "it" if not others else "them"
    end = f"end the network before {before}, with {share:.0%} of its parameters: --outputs {names}"
    more = "" if last.remedy in {None, OTHER_OPERATORS} else f"{last.remedy}; or "
    return [*others, type(last)(last.reason, remedy=more + end, location=last.location)]


def _values_before(graph: OnnxGraph, bad: AbstractSet[str]) -> Iterable[str]:
    """Yield the values that the other nodes compute and that the bad ones or the user read."""
    wanted = set(graph.outputs)
    wanted.update(
        name
        for node in graph.nodes
        if not bad.isdisjoint(node.outputs)
        for name in read_names(node)
    )
    for node in graph.nodes:
        yield from (name for name in node.outputs if name in wanted and name not in bad)


def _readable(
    model: OnnxModel, values: list[str], read: Callable[[OnnxModel], Graph]
) -> tuple[str, float] | None:
    """Return names of real numbers at which the model can be cut, and its share of parameters."""
    parameters = _parameters(model)
    for _ in range(2):
        part = cut_at(model, values)
        share = _parameters(part) / max(parameters, 1)
        if not 0 < len(values) <= _MOST_RESULTS or share < _LEAST_SHARE:
            return None
        try:
            graph = read(part)
        except NnefHwError:
            return None
        tensors = map(graph.tensor, graph.outputs)
        real = [x.data is None and x.dtype == "scalar" for x in tensors]
        if all(real):
            return ",".join(map(identifier, values)), share
        values = [name for name, is_real in zip(values, real, strict=True) if is_real]
    return None


def _parameters(model: OnnxModel) -> int:
    """Return how many real numbers are constants of a model."""
    values: list[object] = [*model.graph.initializers.values()]
    values += [value for node in model.graph.nodes for value in node.attrs.values()]
    constants = [value for value in values if isinstance(value, Constant)]
    return sum(x.data.size for x in constants if x.type.dtype == "scalar")
