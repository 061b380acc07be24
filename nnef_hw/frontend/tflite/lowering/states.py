"""States between inferences: resource variables and variable tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, UnsupportedError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.tflite.file.model import (
    RESOURCE,
    TfliteModel,
    TfliteSubgraph,
    TfliteTensor,
)
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.ir import State, Tensor
from nnef_hw.reference.real.quantize import decode

__all__ = ["Handle", "States", "initial_values"]


def initial_values(model: TfliteModel) -> dict[str | int, Array]:
    """Return values of variables by name, as the subgraphs assign them that ``CALL_ONCE`` calls.

    Raises
    ------
    UnsupportedError
        If such a value is no constant.
    """
    found: dict[str | int, Array] = {}
    for operator in model.subgraphs[0].operators:
        place = operator.options.get("InitSubgraphIndex", -1) if operator.op == "CALL_ONCE" else -1
        if 0 < place < len(model.subgraphs):
            found |= _assigned(model.subgraphs[place])
    return found


def _assigned(graph: TfliteSubgraph) -> dict[str | int, Array]:
    names: dict[int, str] = {}
    found: dict[str | int, Array] = {}
    for operator in graph.operators:
        if operator.op == "VAR_HANDLE" and operator.outputs:
            shared = operator.options.get("SharedName", "")
            names[operator.outputs[0]] = str(shared or operator.name)
        elif operator.op == "ASSIGN_VARIABLE" and len(operator.inputs) > 1:
            variable, value = operator.inputs[:2]
            tensor = graph.tensors[value] if value >= 0 else None
            if variable in names and tensor is not None:
                if tensor.data is None:
                    raise UnsupportedError(
                        f"the first value of the variable {names[variable]!r}, {tensor.name!r}, is "
                        "computed",
                        remedy="initialize the variable with a constant",
                    )
                quant = tensor.quantization
                data = tensor.data if quant is None else decode(tensor.data, quant)
                found[names[variable]] = np.asarray(data)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Handle(Value):
    """A resource variable itself; it has no tensor that holds it."""

    variable: str = ""

    @classmethod
    def of(cls, variable: str) -> Handle:
        """Return the handle of a variable."""
        return cls(Tensor(variable, (), "integer"), RESOURCE, variable=variable)


class States:
    """The variables of a network, each by its name or the number of its tensor.

    Attributes
    ----------
    initial : dict
        Real numbers that variables have before the first inference; 0 for others.
    """

    def __init__(self, builder: Builder, location: Location) -> None:
        self._builder, self._location = builder, location
        self._current: dict[str | int, Value] = {}
        self._read: dict[str | int, str] = {}
        self.initial: dict[str | int, Array] = {}

    def read(self, key: str | int, name: str, like: TfliteTensor) -> Value:
        """Return the value of a variable: the last one assigned, or that of the last inference.

        Parameters
        ----------
        name
            Name of its tensor, free in the graph.
        like
            What says shape, type and quantization.
        """
        if key not in self._current:
            if like.problem is not None:
                raise like.problem
            if like.type is None or not like.type.dtype:
                raise UnsupportedError(
                    f"the variable {name!r} is of {like.kind}", remedy="keep real numbers"
                )
            dtype = "scalar" if like.is_quantized else like.type.dtype
            tensor = Tensor(
                self._builder.unique(name), like.shape, dtype, location=self._location,
                quant=like.quantization,
            )  # fmt: skip
            zeros = np.zeros(like.shape, {"integer": np.int64}.get(dtype, np.float64))
            self._builder.add(tensor)
            initial = self.initial.get(key, zeros)
            self._builder.states[tensor.name] = State(initial, tensor.name, tensor.name)
            self._read[key] = tensor.name
            self._current[key] = Value(tensor, like.type)
        return self._current[key]

    def assign(self, key: str | int, value: Value) -> None:
        """Give a variable another value, in TensorFlow Lite's order of axes."""
        self._current[key] = value
        if key in self._read:
            states, name = self._builder.states, self._read[key]
            states[name] = replace(states[name], result=value.tensor.name)
