"""Control flow: what is known before the network runs is unrolled, recurrences become loops."""

from __future__ import annotations

from nnef_hw.frontend.onnx.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.model import BOOL, INT64, OnnxGraph
from nnef_hw.frontend.onnx.registry import lowers

__all__: list[str] = []

_MAX_TURNS = 1024


@lowers("If", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def branch(call: OnnxCall) -> list[Value]:
    """The branch that a constant condition takes."""
    condition = call.number(0, "the condition")
    return call.lower_subgraph(call.attr("then_branch" if condition else "else_branch"), [])


@lowers("Loop", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def loop(call: OnnxCall) -> list[Value]:
    """A loop whose number of turns is known, unrolled."""
    body: OnnxGraph = call.attr("body")
    turns, going = call.number(0, "the number of turns"), call.number(1, "the condition")
    states = call.inputs_from(2)
    count = len(states)
    if len(body.inputs) != count + 2 or len(body.outputs) <= count:
        raise call.error(f"the body does not fit {count} carried values")
    kept: list[list[Value]] = [[] for _ in body.outputs[count + 1 :]]
    going, turn = going is None or going, 0
    while going and (turns is None or turn < turns):
        if turn == _MAX_TURNS:
            raise call.unsupported(f"it runs more than {_MAX_TURNS} turns")
        counter = call.constant(turn, INT64)
        condition, *results = call.lower_subgraph(body, [counter, call.constant(True, BOOL), *states])
        if condition.data is None:
            raise call.unsupported("its condition is computed when the network runs")
        states, going = results[:count], bool(condition.data.all())
        for values, value in zip(kept, results[count:], strict=True):
            values.append(value)
        turn += 1
    if not all(kept):
        raise call.unsupported("it collects values, but never runs")
    return [*states, *(_stacked(call, values) for values in kept)]


def _stacked(call: OnnxCall, values: list[Value]) -> Value:
    parts = [call.reshaped(value, (1, *value.shape)) for value in values]
    return call.emit("concat", *parts, axis=0) if len(parts) > 1 else parts[0]
