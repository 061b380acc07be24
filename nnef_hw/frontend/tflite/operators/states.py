"""Resource variables: what a streaming network keeps from one inference to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall, identifier
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.states import Handle
from nnef_hw.frontend.tflite.lowering.values import Value

__all__: list[str] = []


@lowers("CALL_ONCE", newest=1)
def call_once(call: TfliteCall) -> Sequence[Value]:
    """Do nothing: what initializes variables was read before."""
    del call
    return []


@lowers("VAR_HANDLE", newest=1)
def var_handle(call: TfliteCall) -> Value:
    name = call.option("SharedName", "") or call.operator.name
    return Handle.of(str(name))


def _variable(call: TfliteCall) -> str:
    handle = call.handle(0)
    if not isinstance(handle, Handle):
        raise call.error("its first argument is no variable")
    return handle.variable


@lowers("READ_VARIABLE", newest=1)
def read_variable(call: TfliteCall) -> Value:
    name = _variable(call)
    return call.states.read(name, f"{identifier(name)}_state", call.target())


@lowers("ASSIGN_VARIABLE", newest=1)
def assign_variable(call: TfliteCall) -> Sequence[Value]:
    """Keep a value for the next inference; quantized ones are those of the variable's format."""
    name, value = _variable(call), call.plain(call.required(1))
    if value.data is not None or value.tensor.name in call.builder.inputs:
        value = call.emit("copy", value)
        quant = call.source(1).quantization
        value = replace(value, tensor=call.builder.add(replace(value.tensor, quant=quant)))
    call.states.assign(name, value)
    return []
