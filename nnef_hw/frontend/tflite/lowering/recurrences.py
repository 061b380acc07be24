"""``WHILE`` as a recurrence: a body each of whose turns takes one step of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import Fields
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.building.recurrences import MAX_TURNS, LoopBody, Pick, needed, pace, picked
from nnef_hw.frontend.tflite.file.model import INT32, TfliteOperator, TfliteSubgraph
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.list_writes import ListWrite, find_write
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.ir import Tensor

__all__ = ["recurrence"]

_REMEDY = "convert the layer to one that computes a sequence, or with unroll=True"


def recurrence(call: TfliteCall, condition: TfliteSubgraph, body: TfliteSubgraph) -> list[Value]:
    """Return the results of a loop whose turns are the steps of a sequence.

    The number of turns is known before the network runs, and so is everything in which turns
    differ, but for states that are passed on, the steps of inputs that they take, and lists of
    which each turn writes an item.

    Raises
    ------
    UnsupportedError
        If it is anything else.
    """
    return _Recurrence(call, condition, body).lower()


@dataclass(slots=True)
class _Turns:
    """Facts about every turn of a loop, by tensors of the body."""

    known: list[dict[int, Array]] = field(default_factory=list)
    final: dict[int, Array] = field(default_factory=dict)
    picks: dict[int, list[Pick]] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.known)

    def constants(self) -> dict[int, Array]:
        """Return values that are the same in all turns."""
        return {
            index: data
            for index, data in self.known[0].items()
            if all(np.array_equal(turn[index], data) for turn in self.known)
        }


class _Recurrence:
    """A loop being lowered."""

    def __init__(self, call: TfliteCall, condition: TfliteSubgraph, body: TfliteSubgraph) -> None:
        self._call, self._condition, self._graph = call, condition, body
        self._initial = dict(zip(body.inputs, map(call.plain, call.inputs), strict=True))
        pairs = list(zip(body.inputs, body.outputs, strict=True))
        found = {before: find_write(body, before, behind) for before, behind in pairs}
        self._writes: dict[int, ListWrite] = {
            before: write for before, write in found.items() if write is not None
        }
        hidden = {index for write in self._writes.values() for index in write.operators}
        self._body: LoopBody[int, TfliteOperator] = LoopBody(
            [operator for operator in body.operators if operator.index not in hidden],
            [pair for pair in pairs if pair[0] not in self._writes],
            (),
            [index for index, value in self._initial.items() if value.data is None],
        )
        for before, _ in pairs:
            if body.tensors[before].is_quantized:
                raise call.unsupported(f"{self._name(before)} is quantized", _REMEDY)

    def lower(self) -> list[Value]:
        """Return the results."""
        call, body, states = self._call, self._body, self._body.states
        turns = self._follow()
        constants = turns.constants()
        wanted = [*(behind for _, behind in states), *(w.item for w in self._writes.values())]
        given = {*self._graph.inputs, *body.turning, *turns.picks}
        operators = needed(body.nodes, wanted, given)
        read = {index for operator in operators for index in operator.inputs}.union(wanted)
        if unlike := read & body.turning - constants.keys():
            raise call.unsupported(
                f"turns compute with {self._name(min(unlike))}, another number in each of them",
                _REMEDY,
            )
        inside = Builder("turn", fold=True)
        outer, scans, values = self._scanned(inside, turns)
        whole = [index for index in body.passed if index in read]
        for index in whole:
            values[index] = self._inside(inside, index, self._initial[index])
        full = [index for index in whole if self._initial[index].data is None]
        for before, _ in states:
            if self._initial[before].tensor.dtype != "scalar":
                raise call.unsupported(f"the state {self._name(before)} holds no real numbers")
            tensor = Tensor(inside.unique(f"state_{before}"), self._initial[before].shape)
            values[before] = replace(self._initial[before], tensor=inside.input(tensor))
        for index in read & body.turning:
            tensor = inside.constant(f"known_{index}", constants[index], location=call.location)
            values[index] = Value(tensor, self._graph.tensors[index].type or INT32)
        results = call.around.lower(self._graph, operators, values, wanted, inside)
        following, items = results[: len(states)], results[len(states) :]
        outer += [self._initial[index] for index in full]
        outer += [self._initial[before] for before, _ in states]
        self._check(following, items, turns)
        outputs = [(value.tensor.name, "last", 0, 1) for value in following]
        steps = [write.pace for write in self._writes.values()]
        outputs += [
            (value.tensor.name, "full", 0, step) for value, step in zip(items, steps, strict=True)
        ]
        attrs: Fields = {
            "body": inside.build(list(dict.fromkeys(name for name, *_ in outputs))).replaced(),
            "scans": scans,
            "full": len(full),
            "states": [value.tensor.name for value in following],
            "outputs": outputs,
        }
        made = call.emit_many("scan", *outer, count=len(outputs), **attrs)
        ends = dict(zip([*(before for before, _ in states), *self._writes], made, strict=True))
        return [ends.get(index) or self._final(index, turns) for index in self._graph.inputs]

    def _name(self, index: int) -> str:
        return repr(self._graph.tensors[index].name)

    def _follow(self) -> _Turns:
        """Return facts about the turns of a loop.

        Raises
        ------
        UnsupportedError
            If that is not enough.
        """
        call, body, turns = self._call, self._body, _Turns()
        known = {before: behind for before, behind in body.carried if before not in body.unknown}
        places = [index for write in self._writes.values() for index in write.places]
        if unknown := body.unknown.intersection(places):
            raise self._not_known("an index", min(unknown))
        read = {index for operator in body.computed for index in operator.inputs} & body.turning
        wanted = list(dict.fromkeys([*known.values(), *places, *sorted(read)]))
        picks = [index for operator in body.picks for index in operator.outputs]
        operators = needed(body.nodes, [*wanted, *picks], self._graph.inputs)
        values = {index: self._initial[index] for index in known}
        while self._goes_on(values):
            if len(turns) == MAX_TURNS:
                raise call.unsupported(f"it runs more than {MAX_TURNS} turns")
            scratch = Builder("turn", fold=True)
            outside = {
                index: self._inside(scratch, index, self._initial[index]) for index in body.passed
            }
            sources = {value.tensor.name: index for index, value in outside.items()}
            given = {**outside, **values}
            results = call.around.lower(self._graph, operators, given, [*wanted, *picks], scratch)
            found = dict(zip([*wanted, *picks], results, strict=True))
            turn = {index: found[index].data for index in wanted}
            turns.known.append({i: data for i, data in turn.items() if data is not None})
            if len(turns.known[-1]) < len(wanted):
                raise self._not_known("a value", next(i for i, x in turn.items() if x is None))
            for index in picks:
                pick = picked(scratch, 0, found[index].tensor)
                if pick is None:
                    raise call.unsupported(
                        f"{self._name(index)} is not one step of one axis of an input", _REMEDY
                    )
                place = str(sources[pick.source])
                turns.picks.setdefault(index, []).append(pick._replace(source=place))
                turns.shapes[index] = found[index].shape
            values = {before: found[behind] for before, behind in known.items()}
        if not turns.picks or len(turns) < 2:
            raise call.unsupported(
                f"it has {len(turns)} turns, and takes steps of {len(turns.picks)} inputs", _REMEDY
            )
        turns.final = {index: np.asarray(value.data) for index, value in values.items()}
        self._check_writes(turns)
        return turns

    def _not_known(self, what: str, index: int) -> Exception:
        return self._call.unsupported(
            f"{what}, {self._name(index)}, is computed when the network runs", _REMEDY
        )

    def _goes_on(self, values: Mapping[int, Value]) -> bool:
        """Whether there is another turn, by the condition."""
        condition = self._condition
        named = zip(condition.inputs, self._graph.inputs, strict=True)
        given = {inner: values.get(outer, self._initial[outer]) for inner, outer in named
                 if outer in values or outer in self._body.passed}  # fmt: skip
        operators = needed(condition.operators, condition.outputs, given)
        unknown = {i for operator in operators for i in operator.inputs} & (
            set(condition.inputs) - given.keys()
        )
        result = None
        if not unknown:
            [result] = self._call.around.lower(
                condition, operators, given, condition.outputs[:1], Builder("condition", fold=True)
            )
        if result is None or result.data is None:
            raise self._call.unsupported("its condition is computed when the network runs", _REMEDY)
        return bool(np.all(result.data))

    def _check_writes(self, turns: _Turns) -> None:
        """Note the order in which lists are written; every item must be, once."""
        for before, write in self._writes.items():
            rank, extent = self._initial[before].rank, self._initial[before].shape[0]
            indices = [write.index(turn, self._graph, rank) for turn in turns.known]
            step = pace([-1 if n is None else n for n in indices], extent)
            if not step:
                raise self._call.unsupported(
                    f"its {len(turns)} turns do not write the {extent} items of "
                    f"{self._name(before)} one after the other",
                    _REMEDY,
                )
            self._writes[before] = replace(write, pace=step)

    def _scanned(
        self, inside: Builder, turns: _Turns
    ) -> tuple[list[Value], list[tuple[int, int]], dict[int, Value]]:
        """Return the scanned values, their axes and steps, and the steps that the body takes."""
        call, found = self._call, dict[tuple[str, int, tuple[int, ...]], Value]()
        outer, scans, values = list[Value](), list[tuple[int, int]](), dict[int, Value]()
        inner = call.within(inside)
        for index, picks in turns.picks.items():
            source, axis = picks[0].source, picks[0].axis
            if any((pick.source, pick.axis) != (source, axis) for pick in picks):
                raise call.unsupported(f"{self._name(index)} is of several inputs or axes", _REMEDY)
            key = source, axis, tuple(pick.place for pick in picks)
            if key not in found:
                whole = self._initial[int(source)]
                step = pace(key[2], whole.shape[axis])
                if not step:
                    places = call.shape_constant(key[2])
                    whole = call.emit("gather", whole, places, axis=axis)
                shape = (*whole.shape[:axis], 1, *whole.shape[axis + 1 :])
                tensor = Tensor(inside.unique(f"step_{source}"), shape, whole.tensor.dtype)
                found[key] = replace(whole, tensor=inside.input(tensor))
                outer.append(whole)
                scans.append((axis, step or 1))
            values[index] = inner.reshaped(found[key], turns.shapes[index])
        return outer, scans, values

    def _inside(self, builder: Builder, index: int, value: Value) -> Value:
        """Return a value that all turns read whole: an input of their graph, or a constant."""
        name = builder.unique(f"whole_{index}")
        tensor = replace(value.tensor, name=name)
        if value.data is not None:
            return replace(value, tensor=builder.add(tensor))
        return replace(value, tensor=builder.input(tensor))

    def _check(self, following: Sequence[Value], items: Sequence[Value], turns: _Turns) -> None:
        pairs = [(before, (self._initial[before].shape)) for before, _ in self._body.states]
        pairs += [(before, (1, *self._initial[before].shape[1:])) for before in self._writes]
        for (before, shape), value in zip(pairs, [*following, *items], strict=True):
            if value.shape != shape or value.data is not None:
                raise self._call.unsupported(
                    f"a turn leaves {list(value.shape)} in {self._name(before)}, not "
                    f"{list(shape)} of {len(turns)} turns",
                    _REMEDY,
                )

    def _final(self, index: int, turns: _Turns) -> Value:
        """Return a carried value that no state holds."""
        if index in self._body.passed:
            return self._initial[index]
        return self._call.constant(turns.final[index], self._initial[index].type)
