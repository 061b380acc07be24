"""LSTMs of codes, as TensorFlow Lite's integer kernel has them: ``LstmStepInteger8x8_16``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.tflite.short_functions import MOST_INTEGER_BITS
from nnef_hw.frontend.tflite.file.model import FLOAT32, TfliteTensor
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.ir import Quantization
from nnef_hw.ir.quantization import same_quantization

__all__ = ["IntegerLstm"]

_STACKED = (0, 1, 3, 2)
"""Gates one behind the other: input, forget, output, and the candidate for the cell."""
_GATE_STEP, _UNIT_STEP = 2.0**-12, 2.0**-15
_CELL = 19
_OUTPUT = 18
_HIDDEN = 4
"""Number of the intermediate tensor with the format of the result before a projection."""


def _steps(scale: float | NDArray[np.float64], bits: int, zero_point: int = 0) -> Quantization:
    args = {"zero_point": zero_point, "scale": scale, "bits": bits, "signed": True,
            "symmetric": False}  # fmt: skip
    return Quantization("zero_point_linear_quantize", args)


@dataclass(frozen=True, slots=True)
class IntegerLstm:
    """An LSTM whose gates and cell have 16 bits; its nodes say so by ``is_short``.

    Gates have steps of ``2**-12``, results of their functions of ``2**-15``, the cell those of the
    file, a power of two.
    """

    call: TfliteCall
    inputs: Value
    hidden: Value
    bias: Value
    cell_format: Quantization
    result_format: Quantization
    cell_limit: float

    @classmethod
    def of(cls, call: TfliteCall) -> IntegerLstm:
        """Read the parameters of a call.

        Raises
        ------
        UnsupportedError
            If its tensors have other types, or the cell a range that tanh has no kernel for.
        """
        x, state, cell = call.source(0), call.variable(_OUTPUT), call.variable(_CELL)
        kinds = [tensor.kind for tensor in (x, state, cell)]
        if kinds != ["int8", "int8", "int16"] or cell.quantization is None:
            raise call.unsupported(
                f"input, output state and cell state are of {', '.join(kinds)}",
                "quantize to int8, with a cell of int16",
            )
        assert state.quantization is not None, state.name
        between = call.intermediate(_HIDDEN)
        inside = between.quantization if between is not None else None
        if inside is not None and not same_quantization(inside, state.quantization):
            raise call.unsupported(
                "its result has another format inside of it than its output state, which only some "
                "kernels regard",
                "convert the model again",
            )
        scale = float(cell.quantization.args["scale"])
        exponent = round(math.log2(scale))
        if not math.isclose(scale, 2.0**exponent, rel_tol=1e-6) or 15 + exponent not in range(
            MOST_INTEGER_BITS + 1
        ):
            raise call.unsupported(
                f"the cell has a step of {scale:g}, which is no power of two from 2**-15 to 2**-11",
                "convert the model again",
            )
        clip, limit = float(call.option("CellClip", 0.0)), math.inf
        if clip > 0:
            limit = int(min(clip / scale, (1 << 15) - 1)) * 2.0**exponent
        inputs, input_steps = _weights(call, 1, _scale(x))
        hidden, _ = _weights(call, 5, _scale(state))
        return cls(
            call, inputs, hidden, _bias(call, input_steps), _steps(2.0**exponent, 16),
            state.quantization, limit,
        )  # fmt: skip

    def step(self, x: Value, hidden: Value, cell: Value) -> tuple[Value, Value]:
        """Return the next states from x [N, I] and the states [N, H]."""
        call, gate, unit = self.call, _steps(_GATE_STEP, 16), _steps(_UNIT_STEP, 16)
        entering = self._short("linear", gate, x, self.inputs, self.bias)
        # The kernel does not limit it before the sum: it has no format of 16 bits.
        returning = call.emit("linear", hidden, self.hidden, 0.0, is_short=True)
        total = self._short("add", gate, entering, returning)
        gates, candidate = call.emit_many("split", total, count=2, axis=1, ratios=[3, 1])
        gates = self._short("sigmoid", unit, gates)
        candidate = self._short("tanh", unit, candidate)
        enter, keep, leave = call.emit_many("split", gates, count=3, axis=1, ratios=[1, 1, 1])
        kept = self._short("mul", self.cell_format, keep, cell)
        added = self._short("mul", self.cell_format, enter, candidate)
        cell = self._short("add", self.cell_format, kept, added)
        if self.cell_limit < math.inf:
            limits = -self.cell_limit, self.cell_limit
            cell = self._formatted(call.emit("clamp", cell, *limits), self.cell_format)
        shown = self._short("tanh", unit, cell)
        return self._formatted(call.emit("mul", leave, shown), self.result_format), cell

    def _short(self, op: str, quant: Quantization, *operands: Value | float) -> Value:
        return self._formatted(self.call.emit(op, *operands, is_short=True), quant)

    def _formatted(self, value: Value, quant: Quantization) -> Value:
        tensor = self.call.builder.add(replace(value.tensor, quant=quant))
        return replace(value, tensor=tensor)


def _scale(tensor: TfliteTensor) -> float:
    assert tensor.scale is not None, tensor.name
    return float(tensor.scale[0])


def _weights(call: TfliteCall, first: int, scale: float) -> tuple[Value, NDArray[np.float64]]:
    """Return the weights of all gates, and their steps times the scale of what they multiply.

    That product is one of single precision.
    """
    codes, steps = [], []
    for gate in _STACKED:
        stored = call.source(first + gate)
        if stored.data is None or stored.kind != "int8" or stored.scale is None:
            raise call.unsupported(
                f"the weights {stored.name!r} are of {stored.kind}", "quantize them to int8"
            )
        codes.append(stored.data.astype(np.float64))
        product = np.float32(np.float32(stored.scale[0]) * np.float32(scale))
        steps.append(np.full(len(stored.data), float(product)))
    products = np.concatenate(steps)
    rows = products / scale
    data = np.concatenate(codes) * rows[:, np.newaxis]
    return _constant(call, data, _steps(rows, 8)), products


def _bias(call: TfliteCall, steps: NDArray[np.float64]) -> Value:
    codes = []
    for gate, count in zip(_STACKED, [len(steps) // len(_STACKED)] * len(_STACKED), strict=True):
        value = call.input(12 + gate)
        stored = None if value is None else call.source(12 + gate).data
        codes.append(np.zeros(count) if stored is None else stored.astype(np.float64))
    row = np.concatenate(codes).reshape(1, -1)
    return _constant(call, row * steps, _steps(steps.reshape(1, -1), 32))


def _constant(call: TfliteCall, data: Array, quant: Quantization) -> Value:
    value = call.constant(data, FLOAT32)
    return replace(value, tensor=call.builder.add(replace(value.tensor, quant=quant)))
