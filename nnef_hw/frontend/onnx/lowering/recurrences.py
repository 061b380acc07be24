"""``Loop`` as a recurrence: a body each of whose turns takes one step of its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.building.recurrences import MAX_TURNS, LoopBody, Pick, needed, pace, picked
from nnef_hw.frontend.onnx.file.model import BOOL, INT64, OnnxGraph, OnnxInput, OnnxNode
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.loops import Loop
from nnef_hw.ir import Tensor

__all__ = ["recurrence"]


def recurrence(call: OnnxCall) -> list[Value] | None:
    """Return the results of a loop whose turns are the steps of a sequence; None for others.

    The number of turns of such a loop is known before the network runs, and so is everything in
    which turns differ, but for states that are passed on and the steps of inputs that they take.
    """
    graph = _without_identities(call.attr("body"))
    if any(isinstance(x, OnnxGraph) for node in graph.nodes for x in node.attrs.values()):
        return None
    loop = _Recurrence(call, graph)
    turns = loop.follow()
    return None if turns is None else loop.lower(turns)


@dataclass(slots=True)
class _Turns:
    """Facts that are known of every turn, by the names in the body."""

    known: list[dict[str, Value]] = field(default_factory=list)
    picks: dict[str, list[Pick]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def data(self, name: str) -> Array:
        """Return a value of all turns, along a new first axis."""
        return np.stack([np.asarray(turn[name].data) for turn in self.known])

    def constants(self) -> dict[str, Value]:
        """Return values that are the same in all turns."""
        return {
            name: value
            for name, value in self.known[0].items()
            if (self.data(name) == np.asarray(value.data)).all()
        }


class _Recurrence:
    """A loop being lowered."""

    def __init__(self, call: OnnxCall, graph: OnnxGraph) -> None:
        names = [item.name for item in graph.inputs]
        self._call, self._graph, self._names = call, graph, names
        initial = dict(zip(names[2:], call.inputs_from(2), strict=True))
        behind, self._collected = (
            graph.outputs[1 : len(names) - 1],
            graph.outputs[len(names) - 1 :],
        )
        self._outer = call.around.captured(graph)
        self._body: LoopBody[str, OnnxNode] = LoopBody(
            graph.nodes,
            [*zip(names[2:], behind, strict=True)],
            [name for name, value in self._outer.items() if value.data is None],
            [name for name, value in initial.items() if value.data is None],
            names[0],
        )
        self._initial = initial
        self._outer.update({name: initial[name] for name in self._body.passed})

    def follow(self) -> _Turns | None:
        """Return the facts that are known of the turns; None if that is not enough."""
        call, body = self._call, self._body
        limit = call.optional_number(0, "the number of iterations")
        going = call.optional_number(1, "the condition")
        condition, turns = self._graph.outputs[0], _Turns()
        if condition in body.unknown:
            return None
        known = {before: behind for before, behind in body.carried if before not in body.unknown}
        wanted = {condition, *known.values(), *(set(self._collected) - body.unknown)}
        wanted |= {name for node in body.computed for name in node.inputs} & body.turning
        picks = [name for node in body.picks for name in node.outputs if name]
        inputs = [*self._names[:2], *known]
        given = {*self._names, *self._outer}
        graph = self._subgraph(
            inputs, needed(body.nodes, {*wanted, *picks}, given), [*sorted(wanted), *picks]
        )
        scratch = Builder("turns", fold=True)
        outside = {name: _input(scratch, x) for name, x in self._outer.items() if x.data is None}
        sources = {value.tensor.name: name for name, value in outside.items()}
        values = {name: self._initial[name] for name in known}
        going = going is None or going
        while going and (limit is None or len(turns.known) < limit):
            if len(turns.known) == MAX_TURNS:
                return None
            start = len(scratch.nodes)
            arguments = [call.constant(len(turns.known), INT64), call.constant(True, BOOL)]
            results = call.around.attempt(graph, [*arguments, *values.values()], scratch, outside)
            if results is None:
                return None
            found = dict(zip(graph.outputs, results, strict=True))
            if any(found[name].data is None for name in wanted):
                return None
            turns.known.append({name: found[name] for name in wanted})
            values = {before: found[behind] for before, behind in known.items()}
            for name in picks:
                pick = picked(scratch, start, found[name].tensor)
                if pick is None:
                    return None
                turns.picks.setdefault(name, []).append(pick._replace(source=sources[pick.source]))
                turns.shapes[name] = found[name].shape
            going = bool(np.all(found[condition].data))
        return turns if len(turns.known) > 1 and turns.picks else None

    def lower(self, turns: _Turns) -> list[Value] | None:
        """Return the results; None if turns differ in more than steps and states."""
        call, body, states = self._call, self._body, self._body.states
        constants = turns.constants()
        frames = list(dict.fromkeys(name for name in self._collected if name in body.unknown))
        wanted = [*(behind for _, behind in states), *frames]
        given = {*self._outer, *body.turning, *turns.picks, *(before for before, _ in states)}
        nodes = needed(body.nodes, wanted, given)
        read = {name for node in nodes for name in node.inputs}.union(wanted)
        if not read & body.turning <= constants.keys():
            return None
        loop = Loop(call)
        values = self._scanned(loop, turns)
        if values is None:
            return None
        whole = {**self._outer, **{name: constants[name] for name in read & body.turning}}
        captured = {name: loop.full(value) for name, value in whole.items() if name in read}
        values.update({before: loop.state(self._initial[before]) for before, _ in states})
        graph = self._subgraph([*values], nodes, wanted)
        results = call.around.attempt(graph, [*values.values()], loop.call.builder, captured)
        if results is None or not loop.has_hardware(results[: len(states)], results[len(states) :]):
            return None
        following = results[: len(states)]
        outputs = [(state, "last", 0, 1) for state in following]
        outputs += [
            (loop.call.reshaped(value, (1, *value.shape)), "full", 0, 1)
            for value in results[len(states) :]
        ]
        emitted = loop.close(following, outputs)
        ends = dict(zip((before for before, _ in states), emitted, strict=False))
        full = dict(zip(frames, emitted[len(states) :], strict=True))
        return [
            *(ends.get(name) or self._final(name, behind, turns) for name, behind in body.carried),
            *(full.get(name) or self._stacked(name, turns) for name in self._collected),
        ]

    def _subgraph(self, inputs: list[str], nodes: list[OnnxNode], outputs: list[str]) -> OnnxGraph:
        read = {name for node in nodes for name in node.inputs}.union(outputs)
        initializers = {
            name: value for name, value in self._graph.initializers.items() if name in read
        }
        return replace(
            self._graph,
            inputs=tuple(map(OnnxInput, inputs)),
            outputs=tuple(outputs),
            initializers=initializers,
            nodes=tuple(nodes),
        )

    def _scanned(self, loop: Loop, turns: _Turns) -> dict[str, Value] | None:
        """Return the steps that the body takes; None if they are not those of one axis."""
        call, found = self._call, dict[tuple[str, int, tuple[int, ...]], Value]()
        values = {}
        for name, picks in turns.picks.items():
            source, axis = picks[0].source, picks[0].axis
            if any((pick.source, pick.axis) != (source, axis) for pick in picks):
                return None
            key = source, axis, tuple(pick.place for pick in picks)
            if key not in found:
                whole = self._outer[source]
                step = pace(key[2], whole.shape[axis])
                if not step:
                    indices = call.constant(np.asarray(key[2]), INT64)
                    whole = call.emit("gather", whole, indices, axis=axis)
                found[key] = loop.scanned(whole, axis, step or 1)
            values[name] = loop.call.reshaped(found[key], turns.shapes[name])
        return values

    def _final(self, before: str, behind: str, turns: _Turns) -> Value:
        """Return a carried value that no state holds."""
        if before in self._body.passed:
            return self._initial[before]
        last = turns.known[-1][behind]
        return self._call.constant(last.data, last.type)

    def _stacked(self, name: str, turns: _Turns) -> Value:
        return self._call.constant(turns.data(name), turns.known[0][name].type)


def _input(builder: Builder, value: Value) -> Value:
    name = builder.unique(value.tensor.name)
    return Value(builder.input(Tensor(name, value.shape, value.tensor.dtype)), value.type)


def _without_identities(graph: OnnxGraph) -> OnnxGraph:
    """Return a body in which values have one name."""
    same: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        inputs = tuple(same.get(name, name) for name in node.inputs)
        if node.op == "Identity" and not node.domain:
            same[node.outputs[0]] = inputs[0]
        else:
            nodes.append(replace(node, inputs=inputs))
    outputs = tuple(same.get(name, name) for name in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)
