"""Loops within an inference: the order of computation that both references share.

What does not depend on the states of a loop is computed for all its steps at once, as further
samples. What does is computed step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Trait

__all__ = ["Loop", "run_schedule", "schedule"]

Values: TypeAlias = dict[str, Array]
Compute: TypeAlias = Callable[[Node, Mapping[str, Array], int], Values]
"""Takes a node, the activations so far, and how many samples there are; returns its results."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Nodes that depend on states which begin anew every so many ``steps``.

    Parameters
    ----------
    results
        By state, the tensor that it takes over.
    given
        Activations from outside, of all steps.
    begins
        Those that are initial values, one for all steps.
    """

    nodes: tuple[Node, ...]
    results: Mapping[str, str]
    given: tuple[str, ...]
    begins: tuple[str, ...]
    steps: int

    def run(
        self, values: Values, initial: Mapping[str, Array], compute: Compute, count: int
    ) -> None:
        """Add the results of all steps, [count * steps, ...], to the activations."""
        slices = {name: self._by_step(values[name]) for name in self.given}
        begins = {name: values[name] for name in self.begins}
        current = {name: np.repeat(initial[name], count, axis=0) for name in self.results}
        kept: dict[str, list[Array]] = {}
        for step in range(self.steps):
            turn = {**begins, **{name: x[:, step] for name, x in slices.items()}, **current}
            found = dict(current)
            for node in self.nodes:
                if node.op == "begin_steps":
                    results = {node.name: turn[node.inputs[step > 0]]}
                else:
                    results = compute(node, turn, count)
                turn.update(results)
                found.update(results)
            for name, x in found.items():
                kept.setdefault(name, []).append(x)
            current = {name: turn[result] for name, result in self.results.items()}
        for name, steps in kept.items():
            stacked = np.stack(steps, axis=1)
            values[name] = stacked.reshape(-1, *stacked.shape[2:])

    def _by_step(self, x: Array) -> Array:
        return x.reshape(-1, self.steps, *x.shape[1:])


def schedule(graph: Graph) -> list[Node | Loop]:
    """Return nodes in groups that are computed after each other: a loop's states together."""
    looped = {name: state for name, state in graph.states.items() if not state.goes_on}
    if not looped:
        return list(graph.nodes)
    groups = _groups(graph, looped)
    units: list[Node | Loop] = []
    for states in {id(group): group for group in groups.values()}.values():
        nodes = tuple(node for node in graph.nodes if groups.get(node.name) is states)
        inside = {*states, *(name for node in nodes for name in node.outputs)}
        begins = tuple(node.inputs[0] for node in nodes if node.op == "begin_steps")
        results = {name: looped[name].result for name in looped if name in states}
        read = [name for node in nodes for name in node.inputs] + [*results.values()]
        given = tuple(
            name
            for name in dict.fromkeys(read)
            if name not in {*inside, *begins} and graph.tensor(name).data is None
        )
        steps = looped[next(iter(results))].steps
        units.append(Loop(nodes, results, given, begins, steps))
    alone = [node for node in graph.nodes if node.name not in groups]
    return _in_order(graph, [*alone, *units])


def _groups(graph: Graph, looped: Sequence[str] | Mapping[str, object]) -> dict[str, set[str]]:
    """Return by tensor the states that it depends on in its step; joined where a tensor has two."""
    groups: dict[str, set[str]] = {name: {name} for name in looped}

    def join(names: Sequence[str]) -> None:
        found = {id(groups[name]): groups[name] for name in names if name in groups}
        first, *others = found.values()
        for other in others:
            first |= other
            for name, group in groups.items():
                if group is other:
                    groups[name] = first
        for name in names:
            groups[name] = first

    for node in graph.nodes:
        read = [name for name in node.inputs if name in groups]
        if read and not node.has(Trait.LEAVES_LOOP):
            join([*read, *node.outputs])
    for name in looped:
        result = graph.states[name].result
        if result in groups:
            join([name, result])
    return groups


def _in_order(graph: Graph, units: list[Node | Loop]) -> list[Node | Loop]:
    """Return nodes and loops so that each follows what it reads."""
    missing = {name for node in graph.nodes for name in node.outputs}
    order: list[Node | Loop] = []
    while units:
        waiting = []
        for unit in units:
            nodes = (unit,) if isinstance(unit, Node) else unit.nodes
            made = {name for node in nodes for name in node.outputs}
            read = {name for node in nodes for name in node.inputs}
            if isinstance(unit, Loop):
                read.update(unit.given, unit.begins)
            if (read - made) & missing:
                waiting.append(unit)
            else:
                order.append(unit)
                missing -= made
        assert len(waiting) < len(units), "a loop waits for what follows it"
        units = waiting
    return order


def run_schedule(
    order: Sequence[Node | Loop],
    values: Values,
    initial: Mapping[str, Array],
    compute: Compute,
    count: int,
) -> Values:
    """Return ``values``, activations of inputs and states that go on, and all others.

    Those that are computed once in an inference are [count, ...], those in loops as often more.
    """
    for unit in order:
        if isinstance(unit, Loop):
            unit.run(values, initial, compute, count)
        else:
            values.update(compute(unit, values, count))
    return values
