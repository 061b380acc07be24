"""Float reference: the recurrent loop."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnef_hw.ir import Graph
from nnef_hw.reference.real.program import RealProgram
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import never

__all__: list[str] = []


@operator("scan", batch=never)
def scan(call: Evaluation) -> list[Array]:
    """Run the body once for every slice of the scanned tensors, in order."""
    body: Graph = call.attr("body")
    scans, next_states, outputs = call.attr("scans"), call.attr("states"), call.attr("outputs")
    first_state = len(call.args) - len(next_states)
    moving, states = body.inputs[: len(scans)], body.inputs[first_state:]
    program = _prepared(body, len(scans), first_state)
    full = dict(zip(body.inputs[len(scans) : first_state], call.args[len(scans) :], strict=False))
    fixed = program.run(full)
    current = dict(zip(states, call.args[first_state:], strict=True))
    slices = [_slices(x, *scan) for x, scan in zip(call.args, scans, strict=False)]
    kept: list[list[Array]] = [[] for _ in outputs]
    for parts in zip(*slices, strict=True):
        turn = {**fixed, **current, **dict(zip(moving, parts, strict=True))}
        values = {**program.constants, **program.run(turn, stage=1)}
        current = {state: values[name] for state, name in zip(states, next_states, strict=True)}
        for results, (name, kind, _, _) in zip(kept, outputs, strict=True):
            if kind == "last":
                results.clear()
            results.append(values[name])
    return [
        np.concatenate(results[::-1] if step < 0 else results, axis=axis)
        if kind == "full"
        else results[0]
        for results, (_, kind, axis, step) in zip(kept, outputs, strict=True)
    ]


@lru_cache(maxsize=32)
def _prepared(body: Graph, first_full: int, first_state: int) -> RealProgram:
    moving = body.inputs[:first_full] + body.inputs[first_state:]
    return RealProgram(body, body.inputs[first_full:first_state], moving)


def _slices(x: Array, axis: int, step: int) -> list[Array]:
    """Cut into pieces of extent ``|step|``; from the end backwards if ``step`` is negative."""
    parts = np.split(x, x.shape[axis] // abs(step), axis=axis)
    return parts[::-1] if step < 0 else parts
