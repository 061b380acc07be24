"""Recurrent layers: loops, unless they have one step; their states are the network's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.arithmetic.records import Fields
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.frontend.tflite.operators.integer_lstm import IntegerLstm
from nnef_hw.ir import Tensor

__all__: list[str] = []

_GATES = 4
_TANH = 4
_PEEPHOLES, _BIASES, _PROJECTION = (9, 10, 11), 12, (16, 17)
_OUTPUT_STATE, _CELL_STATE, _NORMS = 18, 19, (20, 21, 22, 23)


@dataclass(frozen=True, slots=True)
class _Lstm:
    """The parameters of all gates, one behind the other: input, forget, cell, output."""

    call: TfliteCall
    inputs: Value
    hidden: Value
    bias: Value

    def step(self, x: Value, hidden: Value, cell: Value) -> tuple[Value, Value]:
        """Return the next states from x [N, I] and the states [N, H]."""
        call = self.call
        total = call.emit(
            "add",
            call.emit("linear", x, self.inputs, self.bias),
            call.emit("linear", hidden, self.hidden, 0.0),
        )
        enter, keep, candidate, leave = call.emit_many(
            "split", total, count=_GATES, axis=1, ratios=[1] * _GATES
        )
        kept = call.emit("mul", call.emit("sigmoid", keep), cell)
        added = call.emit("mul", call.emit("sigmoid", enter), call.emit("tanh", candidate))
        cell = call.emit("add", kept, added)
        clip = float(call.option("CellClip", 0.0))
        if clip > 0:
            cell = call.emit("clamp", cell, -clip, clip)
        return call.emit("mul", call.emit("sigmoid", leave), call.emit("tanh", cell)), cell


def _real(call: TfliteCall) -> _Lstm:
    """Return an LSTM of real numbers."""
    return _Lstm(
        call,
        _stacked(call, range(1, 1 + _GATES)),
        _stacked(call, range(5, 5 + _GATES)),
        _stacked(call, range(_BIASES, _BIASES + _GATES)),
    )


def _stacked(call: TfliteCall, indices: Sequence[int]) -> Value:
    """Return the real numbers of constants, one behind the other along their first axis."""
    found = []
    for index in indices:
        data, stored = call.constant_value(index, "the weights"), call.source(index)
        if stored.type is not None and stored.type.dtype == "integer" and stored.type.bits > 16:
            if stored.scale is None:
                raise call.error(f"the bias {stored.name!r} has no scale")
            data = data * stored.scale
        found.append(np.asarray(data, np.float64))
    stacked = np.concatenate(found)
    return call.constant(stacked if stacked.ndim > 1 else stacked.reshape(1, -1))


@lowers("UNIDIRECTIONAL_SEQUENCE_LSTM", newest=5)
def unidirectional_sequence_lstm(call: TfliteCall) -> Value:
    """Run an LSTM, a loop: one of codes with the 16-bit formats that its kernel has in a step."""
    for what, indices in (("peepholes", _PEEPHOLES), ("a projection", _PROJECTION),
                          ("layer normalization", _NORMS)):  # fmt: skip
        if any(call.input(index) is not None for index in indices):
            raise call.unsupported(f"it has {what}", "use a plain LSTM")
    if call.option("FusedActivationFunction") != _TANH or call.input(1) is None:
        raise call.unsupported(
            "its activation is not tanh, or it has no input gate", "use a plain LSTM"
        )
    if call.option("DiagonalRecurrentTensors"):
        raise call.unsupported("its recurrent weights are diagonals", "use a plain LSTM")
    x = call.plain(call.required(0))
    if x.rank != 3:
        raise call.error(f"the input has shape {list(x.shape)}, not of three dimensions")
    axis = 0 if call.option("TimeMajor") else 1
    hidden, cell = (call.state(index) for index in (_OUTPUT_STATE, _CELL_STATE))
    if x.shape[axis] == 1:
        result, hidden, cell = _step(call, x, hidden, cell)
    else:
        result, hidden, cell = _loop(call, x, axis, hidden, cell)
    call.keep(_OUTPUT_STATE, hidden)
    call.keep(_CELL_STATE, cell)
    return result


def _step(call: TfliteCall, x: Value, hidden: Value, cell: Value) -> tuple[Value, Value, Value]:
    """Return the result of one step, [N, 1, H] or [1, N, H] as x is, and the next states."""
    lstm = IntegerLstm.of(call) if call.source(0).is_quantized else _real(call)
    row = call.reshaped(x, (hidden.shape[0], x.shape[2]))
    hidden, cell = lstm.step(row, hidden, cell)
    return call.reshaped(hidden, (*x.shape[:2], hidden.shape[1])), hidden, cell


def _loop(
    call: TfliteCall, x: Value, axis: int, hidden: Value, cell: Value
) -> tuple[Value, Value, Value]:
    """Return the results of all steps and the last states; steps hand on codes of the file."""
    body = Builder("step")
    inside = call.within(body)
    shape = tuple(1 if n == axis else extent for n, extent in enumerate(x.shape))

    def given(name: str, value: Value, extents: tuple[int, ...]) -> Value:
        tensor = Tensor(name, extents, location=call.location, quant=value.tensor.quant)
        return replace(value, tensor=body.input(tensor))

    part = given("x", x, shape)
    before, memory = given("hidden", hidden, hidden.shape), given("cell", cell, cell.shape)
    _, after, kept = _step(inside, part, before, memory)
    after = inside.formatted(_OUTPUT_STATE, after)
    kept = inside.formatted(_CELL_STATE, kept)
    result = inside.reshaped(after, (*shape[:2], hidden.shape[1]))
    names = [value.tensor.name for value in (result, after, kept)]
    attrs: Fields = {
        "body": body.build(names),
        "scans": [(axis, 1)],
        "full": 0,
        "states": names[1:],
        "outputs": [(names[0], "full", axis, 1), *((name, "last", 0, 1) for name in names[1:])],
    }
    results, hidden, cell = call.emit_many("scan", x, hidden, cell, count=3, **attrs)
    return results, hidden, cell


_SVDF_STATE = 4


@lowers("SVDF", newest=4)
def svdf(call: TfliteCall) -> Value:
    """Filter features over time: each keeps its last values, which are weighed and summed up.

    Arguments are input [N, I], filters of features [F, I] and of time [F, M], a bias [F / rank],
    and the state [N, F * M], the oldest value of each feature first.
    """
    x, features, times = call.required(0), call.required(1), call.required(2)
    rank = int(call.option("Rank", 1))
    if x.rank != 2 or times.rank != 2 or rank < 1 or times.shape[0] % rank:
        raise call.error(f"its arguments have shapes {[list(v.shape) for v in (x, times)]}")
    (count, memory), batch = times.shape, x.shape[0]
    more: Fields = {}
    if call.target().is_quantized:
        more = {"differs": "its kernel keeps states and multiplies weights of 16 bits"}
    now = call.reshaped(call.emit("linear", x, features, 0.0), (batch, count, 1))
    window = now
    if memory > 1:
        kept = call.reshaped(call.state(_SVDF_STATE), (batch, count, memory))
        kept = call.emit("slice", kept, axes=[2], begin=[1], end=[memory], stride=[1])
        window = call.emit("concat", kept, now, axis=2)
    call.keep(_SVDF_STATE, call.reshaped(window, (batch, count * memory)))
    weighed = call.emit("mul", window, call.reshaped(times, (1, count, memory)))
    grouped = call.reshaped(weighed, (batch, count // rank, rank * memory))
    total = call.emit("sum_reduce", grouped, axes=[2], normalize=False, **more)
    result = call.reshaped(total, (batch, count // rank))
    bias = call.input(3)
    if bias is not None:
        result = call.spread("add", result, bias)
    return call.activated(result)
