"""States of step networks: an input that takes over an output for the next inference.

Many exporters write one step of a recurrent network, which reads its states and returns their next
values. Here these become states of the graph.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from nnef_hw.errors import UsageError
from nnef_hw.frontend.continued_loops import continue_loops
from nnef_hw.ir import Graph, Stage, State

__all__ = ["FixedContext", "NamedStates", "name_states"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FixedContext:
    """Caches that grow by a row in each step, as caches of a fixed length.

    Parameters
    ----------
    context
        Rows.
    pairs
        The output that each of them becomes, by name; empty if the graph tells.
    """

    context: int
    pairs: Mapping[str, str] = field(default_factory=dict)


NamedStates: TypeAlias = Mapping[str, str] | Literal["auto", "loops"] | FixedContext
"""The output that each input takes over, by name; ``auto``: as their names tell; ``loops``: no
inputs, but what loops pass on (:mod:`nnef_hw.frontend.continued_loops`); or caches that grow."""

_BEFORE = ("input", "in", "previous", "prev", "past", "old", "initial", "init", "0", "tm1", "i")
_AFTER = ("output", "out", "next", "new", "present", "final", "n", "1", "t", "o")


def name_states(graph: Graph, pairs: NamedStates, path: Path | str) -> Graph:
    """Return a graph some of whose inputs are states, which begin with 0.

    Their next values are no outputs any more, unless the graph has no other.

    Parameters
    ----------
    pairs
        Which input takes over which output, or how states are found.
    path
        The model's file, for messages.

    Raises
    ------
    UsageError
        If a name is unknown, an output has another shape or type than its input, or none was found
        by name; if no input is left; if the model is quantized to the hardware's integers already.
    UnsupportedError, ErrorGroup
        If loops cannot be continued.
    """
    if isinstance(pairs, FixedContext) or not pairs:
        # Such caches are states already.
        return graph
    if graph.stage != Stage.FLOAT:
        raise UsageError(
            f"{path}: the model is fixed: its inputs and outputs have formats of their own",
            remedy="name the states when it is quantized",
        )
    if pairs == "loops":
        return continue_loops(graph, path)
    if pairs == "auto":
        pairs = dict(_pairs_by_name(graph))
        if not pairs:
            raise UsageError(
                f"{path}: no names of an input and an output tell that they are one state",
                remedy=f"name them: --state INPUT=OUTPUT; {_interface(graph)}",
            )
        shown = ", ".join(f"{before}={after}" for before, after in pairs.items())
        _log.warning("%s: states found by name: %s", path, shown)
    pairs = {
        _called(before, graph.inputs): _called(after, graph.outputs)
        for before, after in pairs.items()
    }
    _check(graph, pairs, path)
    results = [name for name in graph.outputs if name not in pairs.values()]
    states = {
        before: State(np.zeros(graph.tensor(before).shape), after)
        for before, after in pairs.items()
    }
    return replace(
        graph,
        inputs=tuple(name for name in graph.inputs if name not in pairs),
        outputs=tuple(results) or graph.outputs,
        states={**graph.states, **states},
    )


def _called(name: str, names: Collection[str]) -> str:
    """Return which of the names is meant: those of ONNX files have become identifiers."""
    identifier = re.sub(r"\W+", "_", name).strip("_")
    return identifier if name not in names and identifier in names else name


def _check(graph: Graph, pairs: Mapping[str, str], path: Path | str) -> None:
    for before, after in pairs.items():
        for name, names, what in (
            (before, graph.inputs, "input"),
            (after, graph.outputs, "output"),
        ):
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise UsageError(
                    f"{path}: there is no {what} {name!r} for the state {before}={after}",
                    remedy=hint + _interface(graph),
                )
        first, second = graph.tensor(before), graph.tensor(after)
        if first.shape != second.shape:
            raise UsageError(
                f"{path}: the state {before!r} has shape {list(first.shape)}, its next value "
                f"{after!r} {list(second.shape)}",
                remedy="name an output of the same shape",
            )
        if first.dtype != second.dtype:
            raise UsageError(
                f"{path}: the state {before!r} is {first.dtype}, its next value {after!r} "
                f"{second.dtype}",
                remedy="name an output of the same type",
            )
    if not set(graph.inputs) - set(pairs):
        raise UsageError(
            f"{path}: all inputs are states: {', '.join(graph.inputs)}",
            remedy="leave an input that every step reads",
        )


def _interface(graph: Graph) -> str:
    return f"inputs are {', '.join(graph.inputs)}; outputs are {', '.join(graph.outputs)}"


def _pairs_by_name(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield inputs and outputs of one shape and type whose names belong to no other's."""
    found = [
        (before, after)
        for before in graph.inputs
        for after in graph.outputs
        if _is_pair(before, after) and _form(graph, before) == _form(graph, after)
    ]
    for before, after in found:
        if sum(before == a or after == b for a, b in found) == 1:
            yield before, after


def _form(graph: Graph, name: str) -> tuple[tuple[int, ...], str]:
    tensor = graph.tensor(name)
    return tensor.shape, tensor.dtype


def _is_pair(before: str, after: str) -> bool:
    """Whether two names are the same but for words that tell which one is the next value."""
    stems = _stems(before, _BEFORE) & _stems(after, _AFTER)
    marked = before.casefold() != after.casefold()
    return marked and any(stems)


def _stems(name: str, marks: Collection[str]) -> set[str]:
    """Return a name without a mark at either end, and the name itself."""
    plain = re.sub(r"[\W_]+", "_", name).casefold().strip("_")
    words = "|".join(marks)
    return {
        plain,
        re.sub(rf"_({words})$", "", plain),
        re.sub(rf"^({words})_", "", plain),
        # h0, hn, stateN: without a sign between
        re.sub(rf"({'|'.join(m for m in marks if len(m) == 1)})$", "", plain),
    }
