"""RNN, GRU and LSTM as recurrent loops: one ``scan`` for each direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from nnef_hw.frontend.onnx.file.model import BOOL, INT64
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.loops import Loop
from nnef_hw.frontend.onnx.lowering.registry import Lowering, lowers
from nnef_hw.frontend.onnx.operators.elementwise import hard_sigmoid, softsign, thresholded_relu
from nnef_hw.frontend.onnx.operators.slicing import sliced

__all__: list[str] = []

Function = Callable[[OnnxCall, Value], Value]

_PLAIN = {"relu": "relu", "sigmoid": "sigmoid", "softplus": "softplus", "tanh": "tanh"}
_DEFAULTS = {
    "affine": (1.0, 0.0),
    "elu": (1.0,),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01,),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0,),
}
"""Functions with parameters: what alpha and beta are if they are not given."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """The parameters of one direction, gates one behind the other.

    ``inputs`` [gates * H, I], ``hidden`` [gates * H, H], the two biases [1, gates * H], and
    ``peepholes`` [1, 3 * H].
    """

    inputs: Value
    hidden: Value
    input_bias: Value | None
    hidden_bias: Value | None
    peepholes: Value | None


@dataclass(slots=True)
class _Step:
    """One step inside the loop's body: the next states from x [N, I] and the states [N, H]."""

    call: OnnxCall
    functions: list[Function]
    weights: _Weights
    clip: float | None
    x: Value
    states: list[Value] = field(default_factory=list)

    def linear(self, x: Value, weights: Value, bias: Value | None) -> Value:
        zero = self.call.constant(0, x.type)
        return self.call.emit("linear", x, weights, zero if bias is None else bias)

    def halves(self, value: Value, axis: int) -> list[Value]:
        """Split three gates along an axis into the first two and the last."""
        size = value.shape[axis] // 3
        if value.data is None:
            return self.call.emit_many(
                "split", value, elements=(value.type,), axis=axis, ratios=[2, 1]
            )
        ranges = (range(2 * size), range(2 * size, 3 * size))
        return [sliced(self.call, value, {axis: part}) for part in ranges]

    def gates(self, value: Value | None, count: int) -> list[Value]:
        """Split along the last axis; nothing stands for zeros."""
        if value is None:
            return [self.call.constant(0, self.x.type)] * count
        if count == 1:
            return [value]
        size = value.shape[1] // count
        if value.data is not None:
            return [
                sliced(self.call, value, {1: range(i * size, (i + 1) * size)}) for i in range(count)
            ]
        return self.call.emit_many(
            "split", value, elements=(value.type,), axis=1, ratios=[1] * count
        )

    def activate(self, index: int, x: Value) -> Value:
        if self.clip is not None:
            x = self.call.emit("clamp", x, -self.clip, self.clip)
        return self.functions[index](self.call, x)

    def add(self, x: Value, y: Value) -> Value:
        return self.call.emit("add", x, y)

    def mul(self, x: Value, y: Value) -> Value:
        return self.call.emit("mul", x, y)


def _rnn_step(step: _Step) -> list[Value]:
    w = step.weights
    total = step.add(
        step.linear(step.x, w.inputs, w.input_bias),
        step.linear(step.states[0], w.hidden, w.hidden_bias),
    )
    return [step.activate(0, total)]


def _gru_step(step: _Step) -> list[Value]:
    """Gates update, reset, hidden; the reset comes before or behind the linear layer.

    What reads the same is one layer: all gates of x, and those of h before it is reset.
    """
    call, w, h = step.call, step.weights, step.states[0]
    x_gates, x_candidate = step.halves(step.linear(step.x, w.inputs, w.input_bias), 1)
    if call.attr("linear_before_reset"):
        h_gates, inner = step.halves(step.linear(h, w.hidden, w.hidden_bias), 1)
        z, r = step.gates(step.activate(0, step.add(x_gates, h_gates)), 2)
        inner = step.mul(r, inner)
    else:
        first, last = step.halves(w.hidden, 0)
        bias, last_bias = [None] * 2 if w.hidden_bias is None else step.halves(w.hidden_bias, 1)
        z, r = step.gates(step.activate(0, step.add(x_gates, step.linear(h, first, bias))), 2)
        inner = step.linear(step.mul(r, h), last, last_bias)
    candidate = step.activate(1, step.add(x_candidate, inner))
    keep = step.mul(z, h)
    one = call.constant(1, z.type)
    return [step.add(step.mul(call.emit("sub", one, z), candidate), keep)]


def _lstm_step(step: _Step) -> list[Value]:
    """Gates input, output, forget, cell."""
    call, w, (h, c) = step.call, step.weights, step.states
    total = step.add(
        step.linear(step.x, w.inputs, w.input_bias), step.linear(h, w.hidden, w.hidden_bias)
    )
    i, o, f, g = step.gates(total, 4)
    pi, po, pf = step.gates(w.peepholes, 3)
    if w.peepholes is not None:
        i, f = step.add(i, step.mul(c, pi)), step.add(f, step.mul(c, pf))
    i = step.activate(0, i)
    if call.attr("input_forget"):
        f = call.emit("sub", call.constant(1, i.type), i)
    else:
        f = step.activate(0, f)
    cell = step.add(step.mul(f, c), step.mul(i, step.activate(1, g)))
    if w.peepholes is not None:
        o = step.add(o, step.mul(cell, po))
    return [step.mul(step.activate(0, o), step.functions[2](call, cell)), cell]


def _functions(call: OnnxCall, direction: int, defaults: Sequence[str]) -> list[Function]:
    """Return a direction's activation functions; parameters are used up in their order."""
    count = len(defaults)
    needed = count * _directions(call)
    names = (call.attr("activations") or [])[:needed]
    if names and len(names) != needed:
        raise call.error(f"{len(names)} activations are given, not {needed}")
    alphas, betas = (iter(call.attr(f"activation_{key}") or []) for key in ("alpha", "beta"))
    found = [_function(call, name, alphas, betas) for name in names or [*defaults] * 2]
    return found[direction * count : (direction + 1) * count]


def _function(
    call: OnnxCall, name: str, alphas: Iterator[float], betas: Iterator[float]
) -> Function:
    kind = name.lower()
    if kind in _PLAIN:
        return lambda inner, x: inner.emit(_PLAIN[kind], x)
    if kind == "softsign":
        return softsign
    if kind not in _DEFAULTS:
        raise call.unsupported(f"there is no activation {name!r}")
    defaults = _DEFAULTS[kind]
    alpha = next(alphas, defaults[0])
    beta = next(betas, defaults[1]) if len(defaults) > 1 else 0.0
    functions: dict[str, Function] = {
        "affine": lambda inner, x: inner.emit("add", inner.emit("mul", x, alpha), beta),
        "elu": lambda inner, x: inner.emit("elu", x, alpha=alpha),
        "hardsigmoid": lambda inner, x: hard_sigmoid(inner, x, alpha, beta),
        "leakyrelu": lambda inner, x: inner.emit("leaky_relu", x, alpha=alpha),
        "scaledtanh": lambda inner, x: inner.emit(
            "mul", inner.emit("tanh", inner.emit("mul", x, beta)), alpha
        ),
        "thresholdedrelu": lambda inner, x: thresholded_relu(inner, x, alpha),
    }
    return functions[kind]


def _directions(call: OnnxCall) -> int:
    kinds = {"forward": 1, "reverse": 1, "bidirectional": 2}
    direction = call.attr("direction")
    if direction not in kinds:
        raise call.error(f"there is no direction {direction!r}")
    return kinds[direction]


@dataclass(frozen=True, slots=True)
class _Kind:
    """One of the three operators."""

    gates: int
    states: int
    activations: tuple[str, ...]
    step: Callable[[_Step], list[Value]]


class _Layer:
    """A recurrent layer being lowered; of the first two axes one is time, one is the batch."""

    def __init__(self, call: OnnxCall, kind: _Kind) -> None:
        self._call, self._kind = call, kind
        self._x, self._inputs, self._hidden = (call.required(index) for index in range(3))
        if self._x.rank != 3:
            raise call.error(f"X has shape {list(self._x.shape)}, not 3 dimensions")
        self._time = 1 if call.attr("layout") else 0
        self._steps, self._batch = self._x.shape[self._time], self._x.shape[1 - self._time]
        self._size = self._hidden.shape[-1]
        self._count = _directions(call)
        self._check_shapes()
        self._mask = self._make_mask()

    def lower(self) -> list[Value]:
        """Return the sequence of hidden states and the last states."""
        results = [self._direction(index) for index in range(self._count)]
        sequences, *last = zip(*results, strict=True)
        joined = [self._joined(sequences, self._time + 1)]
        return joined + [self._joined(values, self._time) for values in last]

    def _check_shapes(self) -> None:
        rows, size = self._kind.gates * self._size, self._size
        expected = {
            1: [self._count, rows, self._x.shape[2]],
            2: [self._count, rows, size],
            3: [self._count, 2 * rows],
            4: [self._batch],
            **dict.fromkeys(range(5, 5 + self._kind.states), self._state_shape()),
            7: [self._count, 3 * size],
        }
        for index, shape in expected.items():
            value = self._call.input(index)
            if value is not None and list(value.shape) != shape:
                raise self._call.error(
                    f"input {index} has shape {list(value.shape)}, but must have {shape}"
                )
        if self._call.attr("hidden_size", size) != size:
            raise self._call.error(f"hidden_size is {self._call.attr('hidden_size')}, not {size}")

    def _state_shape(self) -> list[int]:
        if self._time:
            return [self._batch, self._count, self._size]
        return [self._count, self._batch, self._size]

    def _make_mask(self) -> Value | None:
        """Return where in time sequences go on, in the layout of x with one feature."""
        call, lengths = self._call, self._call.input(4)
        if lengths is None or (lengths.data is not None and all(lengths.data == self._steps)):
            return None
        shape = [1, 1, 1]
        shape[self._time] = self._steps
        times = call.constant(np.arange(self._steps).reshape(shape), INT64)
        shape = [1, 1, 1]
        shape[1 - self._time] = self._batch
        return call.emit("lt", times, call.reshaped(lengths, shape), element=BOOL)

    def _part(self, index: int, direction: int, axis: int = 0) -> Value | None:
        """Return an optional argument's part for a direction, without that axis."""
        value = self._call.input(index)
        return None if value is None else self._side(value, direction, axis)

    def _side(self, value: Value, direction: int, axis: int = 0) -> Value:
        part = sliced(self._call, value, {axis: range(direction, direction + 1)})
        return self._call.reshaped(part, (*value.shape[:axis], *value.shape[axis + 1 :]))

    def _weights(self, loop: Loop, direction: int) -> _Weights:
        def inside(value: Value | None) -> Value | None:
            return None if value is None else loop.full(value)

        rows = self._kind.gates * self._size
        bias, peepholes = (self._part(index, direction) for index in (3, 7))
        before: Value | None = None
        behind: Value | None = None
        if bias is not None:
            row = self._call.reshaped(bias, (1, 2 * rows))
            before = sliced(self._call, row, {1: range(rows)})
            behind = sliced(self._call, row, {1: range(rows, 2 * rows)})
        if peepholes is not None:
            peepholes = self._call.reshaped(peepholes, (1, peepholes.volume))
        return _Weights(
            loop.full(self._side(self._inputs, direction)),
            loop.full(self._side(self._hidden, direction)),
            inside(before),
            inside(behind),
            inside(peepholes),
        )

    def _direction(self, direction: int) -> list[Value]:
        call = self._call
        backwards = call.attr("direction") == "reverse" or direction == 1
        pace = -1 if backwards else 1
        loop = Loop(call)
        x = loop.scanned(self._x, self._time, pace)
        mask = None if self._mask is None else loop.scanned(self._mask, self._time, pace)
        weights = self._weights(loop, direction)
        states = []
        for index in range(self._kind.states):
            start = self._part(5 + index, direction, self._time)
            shape = (self._batch, self._size)
            zeros = np.zeros(shape)
            initial = call.constant(zeros, self._x.type) if start is None else start
            states.append(loop.state(initial))
        inner = loop.call
        step = _Step(
            inner,
            _functions(call, direction, self._kind.activations),
            weights,
            call.attr("clip"),
            inner.reshaped(x, (self._batch, self._x.shape[2])),
            states,
        )
        following = self._kind.step(step)
        output = following[0]
        if mask is not None:
            mask = inner.reshaped(mask, (self._batch, 1))
            following = [
                inner.emit("select", mask, new, old, element=new.type)
                for new, old in zip(following, states, strict=True)
            ]
            zero = inner.constant(0, output.type)
            output = inner.emit("select", mask, output, zero, element=output.type)
        frame = inner.emit("unsqueeze", output, axes=[self._time])
        return loop.close(
            following,
            [(frame, "full", self._time, pace), *((state, "last", 0, 1) for state in following)],
        )

    def _joined(self, values: Sequence[Value], axis: int) -> Value:
        """Join directions along a new axis."""
        parts = [self._call.emit("unsqueeze", value, axes=[axis]) for value in values]
        return parts[0] if len(parts) == 1 else self._call.emit("concat", *parts, axis=axis)


def _lowering(kind: _Kind) -> Lowering:
    return lambda call: _Layer(call, kind).lower()


lowers("RNN", 7, 14, 22)(_lowering(_Kind(1, 1, ("tanh",), _rnn_step)))
lowers("GRU", 7, 14, 22)(_lowering(_Kind(3, 1, ("sigmoid", "tanh"), _gru_step)))
lowers("LSTM", 7, 14, 22)(_lowering(_Kind(4, 2, ("sigmoid", "tanh", "tanh"), _lstm_step)))
