"""Rows of a stream: which rows of each tensor of a windowed network the results of a step need.

A network whose input is a window of T rows in time computes most rows of its tensors again for the
next window. Here is found how rows of tensors lie to each other, and how many are new in a step;
:mod:`nnef_hw.passes.time.stream_time` makes the network of a step of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm

from nnef_hw.errors import NnefHwError, UnsupportedError, raise_all
from nnef_hw.ir import Graph, Node
from nnef_hw.ir.operators import SliceAttributes
from nnef_hw.passes.rewriting.names import authors_name
from nnef_hw.passes.time.time_taps import NotInStepsError, Taps, has_other_padding, taps_in_time

__all__ = ["RowPlan", "find_rows"]


@dataclass(slots=True)
class RowPlan:
    """Rows of each tensor that results are computed of.

    Attributes
    ----------
    axes
        Axis of time of every tensor with several rows in a window, and of what a node makes of such
        a tensor. Others are the same for a step as for a window.
    taps
        Rows that a node computes a row of, by the name of its result.
    views
        Tensors that are rows of others: the tensor, and which of its rows is the first.
    first, last
        First and last row of the window that is needed, in rows of the window as it was given.
    period
        Rows of the input in a step.
    new
        Rows of each tensor that a step computes.
    """

    axes: dict[str, int] = field(default_factory=dict)
    taps: dict[str, Taps] = field(default_factory=dict)
    views: dict[str, tuple[str, int]] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    period: int = 1
    new: dict[str, int] = field(default_factory=dict)

    def source(self, name: str) -> tuple[str, int]:
        """Return the tensor of which another is a part in time, and its first row there."""
        return self.views.get(name, (name, 0))

    def count(self, name: str) -> int:
        """Rows of a tensor that a window needs."""
        return self.last[name] - self.first[name] + 1


def find_rows(graph: Graph, axes: Mapping[str, int], *, endless: bool = False) -> RowPlan:
    """Find the rows of all tensors of a canonical or fixed graph without states.

    Parameters
    ----------
    axes
        Axis of time of every input.
    endless
        Whether the rows of padding in time are those of a stream that goes on beyond the window.
        If not, results are rows that no padding reaches.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If the next window cannot take over what this one has computed: for each operator that is
        in the way, why.
    """
    plan = RowPlan()
    rates: dict[str, int] = {}
    clean: dict[str, tuple[int, int]] = {}
    errors: list[NnefHwError] = []
    for name in graph.inputs:
        extent = graph.tensor(name).shape[axes[name]]
        plan.axes[name], rates[name], clean[name] = axes[name], 1, (0, extent - 1)
    for node in graph.nodes:
        try:
            timed = _timed_operands(graph, node, plan)
            if not timed:
                continue
            taps = taps_in_time(graph, node, plan.axes[timed[0]])
        except NotInStepsError as refused:
            errors.append(_error(graph, node, refused.reason, refused.remedy))
            break
        result = node.name
        plan.axes[result], plan.taps[result] = taps.axis, taps
        rates[result] = rates[timed[0]] * taps.stride
        clean[result] = _clean(graph, result, taps, [clean[name] for name in timed])
        if _is_view(node, taps):
            origin, begin = plan.source(node.inputs[0])
            plan.views[result] = origin, begin - taps.before
    raise_all(errors)
    ends = {name: clean[name][1] for name in _results(graph, plan)}
    if endless:
        ends = {name: graph.tensor(name).shape[plan.axes[name]] - 1 for name in ends}
    else:
        reached = [name for name in ends if clean[name][0] > clean[name][1]]
        raise_all(list(_reached_by_padding(graph, plan, reached)))
    _find_needed(graph, plan, ends)
    _find_new(graph, plan, rates)
    return plan


def _timed_operands(graph: Graph, node: Node, plan: RowPlan) -> list[str]:
    """Return the operands that have several rows in a window."""
    timed = [name for name in node.inputs if _has_rows(graph, plan, name)]
    if not timed:
        return []
    others = [name for name in node.inputs if name not in timed and graph.tensor(name).data is None]
    if others:
        raise NotInStepsError(
            f"it combines rows with {authors_name(graph, others[0])!r}, a result of the whole "
            "window: that changes all rows of the window with every step",
            "take such a result of past rows only, in a state of its own",
        )
    axis = plan.axes[timed[0]]
    if any(plan.axes[name] != axis for name in timed):
        raise NotInStepsError("its operands have time on different axes", "transpose one of them")
    return timed


def _has_rows(graph: Graph, plan: RowPlan, name: str) -> bool:
    return name in plan.axes and graph.tensor(name).shape[plan.axes[name]] > 1


def _clean(
    graph: Graph, result: str, taps: Taps, operands: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Return the first and the last row of a result that no padding in time reaches."""
    first = max(-(-(low + taps.before) // taps.stride) for low, _ in operands)
    last = min((high + taps.before - taps.reach + 1) // taps.stride for _, high in operands)
    return max(first, 0), min(last, graph.tensor(result).shape[taps.axis] - 1)


def _is_view(node: Node, taps: Taps) -> bool:
    """Whether a node does nothing but choose rows."""
    if node.op == "slice":
        return node.attributes(SliceAttributes).axis == taps.axis
    return node.op == "pad" and taps.pads and not has_other_padding(node, taps.axis)


def _results(graph: Graph, plan: RowPlan) -> list[str]:
    """Return the results of the steps: outputs with rows, and tensors with one row of a window."""
    return [
        name
        for name in (*graph.inputs, *plan.taps)
        if (_has_rows(graph, plan, name) and name in graph.outputs)
        or (name in plan.taps and not _has_rows(graph, plan, name))
    ]


def _reached_by_padding(
    graph: Graph, plan: RowPlan, results: Sequence[str]
) -> Iterator[NnefHwError]:
    before = set(results)
    for node in reversed(graph.nodes):
        if node.name in before:
            before.update(node.inputs)
    for node in graph.nodes:
        taps = plan.taps.get(node.name)
        if node.name in before and taps is not None and taps.pads:
            extent = graph.tensor(node.inputs[0]).shape[plan.axes[node.inputs[0]]]
            yield _error(
                graph, node,
                f"it pads its {extent} rows in time, which all of the result depends on, and a "
                "step later that padding is at other rows",
                "--continue-borders takes rows of the stream instead, with which the network sees "
                "more of them; or train it without padding, or padded on the left only with "
                "windows as long as it looks back",
            )  # fmt: skip


def _find_needed(graph: Graph, plan: RowPlan, ends: Mapping[str, int]) -> None:
    """Find the rows that a row of each result needs."""
    for name, end in ends.items():
        plan.first[name] = plan.last[name] = end
    for node in reversed(graph.nodes):
        result, taps = node.name, plan.taps.get(node.name)
        if taps is None or result not in plan.last:
            continue
        for name in node.inputs:
            if name in plan.axes:
                first, last = taps.first(plan.first[result]), taps.last(plan.last[result])
                plan.first[name] = min(plan.first.get(name, first), first)
                plan.last[name] = max(plan.last.get(name, last), last)


def _find_new(graph: Graph, plan: RowPlan, rates: Mapping[str, int]) -> None:
    """Find how many rows are new in a step, which is as long as the coarsest tensor needs."""
    several: set[str] = set()
    for name in reversed((*graph.inputs, *(node.name for node in graph.nodes))):
        if name not in plan.last:
            continue
        is_output = name in graph.outputs and _has_rows(graph, plan, name)
        read = any(reader.name in several for reader in graph.consumers(name))
        if is_output or read or plan.count(name) > 1:
            several.add(name)
    errors = []
    for node in graph.nodes:
        found = {rates[name] for name in node.inputs if name in plan.axes}
        if node.name in several and len(found) > 1:
            steps = " and ".join(map(str, sorted(found)))
            errors.append(
                _error(
                    graph, node, f"its operands have a row for each {steps} rows of the input",
                    "give branches the same strides in time",
                )
            )  # fmt: skip
    raise_all(errors)
    plan.period = lcm(*(rates[name] for name in several))
    plan.new = {name: plan.period // rates[name] if name in several else 1 for name in plan.last}
    if not any(plan.count(name) > 1 for name in graph.inputs if name in plan.last):
        raise UnsupportedError(
            f"model {graph.name!r}: its results depend on one row of the window: there is nothing "
            "to keep from step to step",
            remedy="read it with a window of one row, without --stream",
        )


def _error(graph: Graph, node: Node, reason: str, remedy: str) -> NnefHwError:
    name = authors_name(graph, node.name)
    return UnsupportedError(
        f"{node.op} {name!r} cannot run step by step: {reason}",
        remedy=remedy,
        location=node.location,
    )
