"""Control flow: recurrences become loops, what is known before the network runs is unrolled."""

from __future__ import annotations

from nnef_hw.frontend.building.recurrences import MAX_TURNS
from nnef_hw.frontend.onnx.file.model import BOOL, INT64, OnnxGraph
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.loops import Loop
from nnef_hw.frontend.onnx.lowering.recurrences import recurrence
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__: list[str] = []


@lowers("If", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def branch(call: OnnxCall) -> list[Value]:
    """Take the branch that a constant condition chooses."""
    condition = call.number(0, "the condition")
    return call.around.lower(call.attr("then_branch" if condition else "else_branch"), [])


@lowers("Loop", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def looped(call: OnnxCall) -> list[Value]:
    """Make a recurrence of a loop whose number of turns is known, or unroll it."""
    body: OnnxGraph = call.attr("body")
    count = len(call.inputs_from(2))
    if len(body.inputs) != count + 2 or len(body.outputs) <= count:
        raise call.error(f"the body does not fit {count} carried values")
    return recurrence(call) or _unrolled(call, body)


def _unrolled(call: OnnxCall, body: OnnxGraph) -> list[Value]:
    turns = call.optional_number(0, "the number of iterations")
    going = call.optional_number(1, "the condition")
    states = call.inputs_from(2)
    count = len(states)
    kept: list[list[Value]] = [[] for _ in body.outputs[count + 1 :]]
    going, turn = going is None or going, 0
    while going and (turns is None or turn < turns):
        if turn == MAX_TURNS:
            raise call.unsupported(f"it runs more than {MAX_TURNS} iterations")
        counter = call.constant(turn, INT64)
        condition, *results = call.around.lower(body, [counter, call.constant(True, BOOL), *states])
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


@lowers("Scan", 9, 11, 16, 19, 21, 23, 24, 25)
def scan(call: OnnxCall) -> list[Value]:
    """Loop over slices: ONNX drops the axis that is scanned, the IR keeps it."""
    body: OnnxGraph = call.attr("body")
    count = call.attr("num_scan_inputs")
    states, sources = call.inputs[:-count], call.inputs[len(call.inputs) - count :]
    collected = len(body.outputs) - len(states)
    if count < 1 or len(body.inputs) != len(call.inputs) or collected < 0:
        raise call.error(f"the body does not fit {count} scanned and {len(states)} carried values")
    axes = _listed(call, "scan_input_axes", count)
    paces = [-1 if back else 1 for back in _listed(call, "scan_input_directions", count)]
    axes = [call.axis(axis, x.rank) for axis, x in zip(axes, sources, strict=True)]
    loop = Loop(call)
    slices = [loop.scanned(*item) for item in zip(sources, axes, paces, strict=True)]
    captured = {name: loop.full(x) for name, x in call.around.captured(body).items()}
    inner = [loop.state(state) for state in states]
    inner += [
        loop.call.reshaped(part, (*part.shape[:axis], *part.shape[axis + 1 :]))
        for part, axis in zip(slices, axes, strict=True)
    ]
    results = call.around.lower(body, inner, loop.call.builder, captured)
    following = results[: len(states)]
    axes = _listed(call, "scan_output_axes", collected)
    backwards = _listed(call, "scan_output_directions", collected)
    outputs = [(state, "last", 0, 1) for state in following]
    for value, declared_axis, back in zip(results[len(states) :], axes, backwards, strict=True):
        axis = call.axis(declared_axis, value.rank + 1)
        frame = (*value.shape[:axis], 1, *value.shape[axis:])
        outputs.append((loop.call.reshaped(value, frame), "full", axis, -1 if back else 1))
    return loop.close(following, outputs)


def _listed(call: OnnxCall, name: str, count: int) -> list[int]:
    """Return an attribute with one item per value; zeros if it is not there."""
    values: list[int] = call.attr(name) or [0] * count
    if len(values) != count:
        raise call.error(f"{name} {values} must have {count} items")
    return values
