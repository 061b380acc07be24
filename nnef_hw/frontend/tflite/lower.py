"""TensorFlow Lite graphs to the one Graph; reports every problem, not only the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nnef_hw.errors import (
    Location,
    ModelError,
    NnefHwError,
    UnsupportedError,
    UsageError,
    raise_all,
)
from nnef_hw.frontend.building.builder import Builder, without_unused
from nnef_hw.frontend.building.whole_steps import whole_steps
from nnef_hw.frontend.tflite.file.model import (
    FLOAT32,
    TfliteModel,
    TfliteOperator,
    TfliteSubgraph,
    TfliteTensor,
)
from nnef_hw.frontend.tflite.lowering.calls import TfliteCall, identifier
from nnef_hw.frontend.tflite.lowering.conversions import Conversions
from nnef_hw.frontend.tflite.lowering.graph_names import graph_names
from nnef_hw.frontend.tflite.lowering.integer_inputs import is_converted, is_rescaled
from nnef_hw.frontend.tflite.lowering.registry import definition_of
from nnef_hw.frontend.tflite.lowering.states import Handle, States, initial_values
from nnef_hw.frontend.tflite.lowering.values import Complex, Value
from nnef_hw.frontend.tflite.operators.blocks import lower_in_blocks
from nnef_hw.frontend.tflite.operators.spectra import lower_in_parts
from nnef_hw.ir import Graph, Tensor
from nnef_hw.ir.quantization import same_quantization
from nnef_hw.reference.real.quantize import decode

__all__ = ["lower"]

_MISFITS = (ArithmeticError, LookupError, ValueError)
"""What shapes and options that nobody has checked may raise."""


def lower(model: TfliteModel, dims: Mapping[str, int]) -> Graph:
    """Turn a model into a graph.

    Parameters
    ----------
    dims
        Extents of inputs that the file leaves open, as ``load_tflite`` takes them.

    Raises
    ------
    UsageError
        If there is no such open extent.
    ModelError, UnsupportedError
        If there is one problem.
    ErrorGroup
        If there are several.
    """
    return _Lowering(model, model.subgraphs[0]).lower(dims)


class _UnknownValueError(Exception):
    """A value whose own operator is wrong: that was reported already."""


class _Lowering:
    def __init__(
        self, model: TfliteModel, graph: TfliteSubgraph, builder: Builder | None = None
    ) -> None:
        self._model = model
        self._graph = graph
        self._location = Location(model.path)
        self._errors: list[NnefHwError] = []
        self._builder = builder or Builder(identifier(graph.name or "main"), fold=True)
        self._conversions = Conversions(self._builder)
        self._states = States(self._builder, self._location)
        self._values: dict[int, Value | None] = {}
        self._names = graph_names(self._graph, self._builder)
        self._renamed: dict[str, str] = {}
        self._results_named: set[str] = set()
        self._has_open_shapes = any(tensor.open_axes for tensor in self._graph.tensors)

    def lower(self, dims: Mapping[str, int]) -> Graph:
        graph = self._graph
        for index in graph.inputs:
            self._values[index] = self._input(graph.tensors[index], dims)
        self._check_dims(dims)
        raise_all(self._errors)
        try:
            self._states.initial = initial_values(self._model)
        except NnefHwError as error:
            raise type(error)(error.reason, remedy=error.remedy, location=self._location) from None
        for operator in graph.operators:
            self._operator(operator)
        raise_all(self._errors)
        outputs = [self._output(index) for index in graph.outputs]
        raise_all(self._errors)
        built = without_unused(self._builder.build(list(dict.fromkeys(outputs))))
        is_quantized = any(tensor.data is None and tensor.is_quantized for tensor in graph.tensors)
        return built.replaced(rounding="tflite" if is_quantized else None)

    def part(
        self,
        operators: Sequence[TfliteOperator],
        values: Mapping[int, Value],
        wanted: Sequence[int],
    ) -> list[Value]:
        """Lower some operators, given values of others; return some values, as the file has them.

        Raises
        ------
        ModelError, UnsupportedError
            The first problem that there is.
        """
        self._values.update(values)
        for operator in operators:
            self._operator(operator)
        found = [] if self._errors else [self._argument(index) for index in wanted]
        if self._builder.states:
            raise UnsupportedError("variables in a loop are not supported")
        if self._errors:
            raise self._errors[0]
        plain = [self._conversions.plain(value, self._location) for value in found]
        given = {value.tensor.name for value in values.values() if value.data is not None}
        return [
            value
            if value.tensor.name in given
            else replace(value, tensor=self._tensor(value.tensor))
            for value in plain
        ]

    def _name(self, index: int) -> str:
        """Return the name that a tensor has in the graph."""
        if index not in self._names:
            wanted = identifier(self._graph.tensors[index].name)
            self._names[index] = self._builder.unique(wanted)
        return self._names[index]

    def _symbols(self, tensor: TfliteTensor) -> dict[str, int]:
        return {f"{identifier(tensor.name)}.{axis}": axis for axis in sorted(tensor.open_axes)}

    def _check_dims(self, dims: Mapping[str, int]) -> None:
        known = {
            symbol
            for index in self._graph.inputs
            for symbol in self._symbols(self._graph.tensors[index])
        }
        for name in dims.keys() - known:
            names = ", ".join(sorted(known)) or "none"
            raise UsageError(
                f"{self._model.path}: no input's shape leaves {name!r} open",
                remedy=f"the open extents are {names}",
            )

    def _input(self, tensor: TfliteTensor, dims: Mapping[str, int]) -> Value | None:
        if not self._is_usable(tensor):
            return None
        assert tensor.type is not None
        shape = list(tensor.shape)
        for symbol, axis in self._symbols(tensor).items():
            shape[axis] = dims.get(symbol, shape[axis])
        if 0 in shape:
            self._errors.append(
                ModelError(
                    f"the input {tensor.name!r} has shape {shape}",
                    remedy="extents must be positive",
                    location=self._location,
                )
            )
            return None
        dtype = "scalar" if tensor.is_quantized else tensor.type.dtype
        quant, element = tensor.quantization, tensor.type
        if is_rescaled(self._graph, tensor.index):
            dtype, quant = FLOAT32.dtype, tensor.steps
        elif dtype == "integer" and is_converted(self._graph, tensor.index):
            dtype, quant, element = (
                FLOAT32.dtype,
                whole_steps(element.bits, signed=element.signed),
                FLOAT32,
            )
        made = Tensor(
            self._name(tensor.index), tuple(shape), dtype, location=self._location, quant=quant
        )
        return Value(self._builder.input(made), element)

    def _is_usable(self, tensor: TfliteTensor) -> bool:
        """Whether a tensor can be in a graph; the reason why not is reported."""
        problem = tensor.problem
        if problem is None and (tensor.type is None or not tensor.type.dtype):
            problem = UnsupportedError(
                f"the tensor {tensor.name!r} is of {tensor.kind}, which is not supported",
                remedy="use a network of real numbers or integers",
            )
        if problem is not None:
            self._errors.append(
                type(problem)(problem.reason, remedy=problem.remedy, location=self._location)
            )
        return problem is None

    def _operator(self, operator: TfliteOperator) -> None:
        results: Sequence[Value | None] = [None] * len(operator.outputs)
        try:
            results = self._results(operator)
        except _UnknownValueError:
            pass
        except NnefHwError as error:
            reason = error.reason
            if not reason.startswith(operator.label):
                reason = f"{operator.label}: {reason}"
            self._errors.append(type(error)(reason, remedy=error.remedy, location=self._location))
        except _MISFITS:
            self._errors.append(
                ModelError(
                    f"{operator.label}: its arguments or options do not fit it",
                    remedy="convert the model again",
                    location=self._location,
                )
            )
        for index, value in zip(operator.outputs, results, strict=True):
            self._values[index] = value

    def _results(self, operator: TfliteOperator) -> list[Value]:
        definition = definition_of(operator.op)
        if definition is None:
            raise UnsupportedError(
                f"{operator.label}: the operator is not supported",
                remedy="replace it by operators of docs/tflite.md, or cut the network before it "
                "(--outputs)",
            )
        if operator.version > definition.newest:
            raise UnsupportedError(
                f"{operator.label}: the file has version {operator.version} of the operator, the "
                f"newest that is read is {definition.newest}",
                remedy="convert the model with an older TensorFlow, or cut the network before it "
                "(--outputs)",
            )
        inputs = [
            None if index < 0 or self._is_state(index) else self._argument(index)
            for index in operator.inputs
        ]
        call = TfliteCall(
            operator, inputs, self._graph.tensors, self._builder, self._location,
            self._conversions, self._states, _Surroundings(self._model),
        )  # fmt: skip
        first = inputs[0] if inputs else None
        lowering = definition.lowering
        found: Value | Sequence[Value]
        if isinstance(first, Complex) and definition.moves:
            found = lower_in_parts(call, lowering)
        else:
            found = lower_in_blocks(call, lowering) if first and first.blocks else lowering(call)
        results = [found] if isinstance(found, Value) else list(found)
        if len(results) < len(operator.outputs):
            raise call.error(f"it has {len(results)} results, not {len(operator.outputs)}")
        return [
            self._finished(call, value, self._graph.tensors[index])
            for value, index in zip(results, operator.outputs, strict=False)
        ]

    def _is_state(self, index: int) -> bool:
        """Whether a tensor keeps its value; the operators that have such ones ask for it."""
        tensor = self._graph.tensors[index]
        return tensor.is_variable and tensor.data is None and tensor.problem is None

    def _argument(self, index: int) -> Value:
        if index not in self._values:
            self._values[index] = self._constant(self._graph.tensors[index])
        value = self._values[index]
        if value is None:
            raise _UnknownValueError
        return value

    def _constant(self, tensor: TfliteTensor) -> Value | None:
        """Return the value of a constant; codes become the real numbers they stand for."""
        if not self._is_usable(tensor):
            return None
        if tensor.data is None:
            self._errors.append(
                ModelError(
                    f"the tensor {tensor.name!r} is read before it is computed",
                    remedy="sort the operators",
                    location=self._location,
                )
            )
            return None
        assert tensor.type is not None
        quant, data = tensor.quantization, tensor.data
        if quant is not None:
            data = decode(data, quant)
        name = self._name(tensor.index)
        dtype = "scalar" if quant is not None else tensor.type.dtype
        label = name if data.ndim else None
        made = Tensor(name, data.shape, dtype, data, label, location=self._location, quant=quant)
        return Value(self._builder.add(made), tensor.type)

    def _finished(self, call: TfliteCall, value: Value, target: TfliteTensor) -> Value:
        """Give a result that was made for an operator its name and its quantization."""
        if isinstance(value, Handle):
            return value
        if target.problem is not None:
            raise target.problem
        if target.type is None:
            raise call.unsupported(f"the result {target.name!r} is of {target.kind}")
        if not target.open_axes and value.shape != target.shape and not self._has_open_shapes:
            raise call.error(
                f"the result has shape {list(value.shape)}, but the model says "
                f"{list(target.shape)}",
                "convert the model again",
            )
        if isinstance(value, Complex):
            return value
        tensor, quant = value.tensor, target.quantization
        if quant is not None and tensor.data is None and tensor.name not in call.created:
            source = self._tensor(tensor)
            if source.quant is None or not same_quantization(source.quant, quant):
                value = call.emit("copy", value)
                tensor = value.tensor
        if tensor.name in call.created:
            if quant is not None and tensor.data is None:
                tensor = self._builder.add(replace(tensor, quant=quant))
            name = self._name(target.index)
            if name not in self._builder.tensors:
                call.created.discard(tensor.name)
                tensor = self._rename(tensor.name, name)
        return replace(value, tensor=tensor, type=target.type)

    def _tensor(self, tensor: Tensor) -> Tensor:
        """Return a tensor as it is now."""
        name = tensor.name
        while name in self._renamed:
            name = self._renamed[name]
        return self._builder.tensors[name]

    def _rename(self, old: str, new: str) -> Tensor:
        tensor = self._builder.rename(old, new)
        self._renamed.pop(new, None)
        self._renamed[old] = new
        self._conversions.renamed(old, tensor)
        return tensor

    def _output(self, index: int) -> str:
        """Return the name of a graph output; what is no operator's own result is copied."""
        try:
            value = self._argument(index)
        except _UnknownValueError:
            return ""
        if isinstance(value, Complex):
            self._errors.append(
                UnsupportedError(
                    f"the output {self._graph.tensors[index].name!r} is of complex numbers",
                    remedy="end the network with their REAL, IMAG or COMPLEX_ABS",
                    location=self._location,
                )
            )
            return ""
        if value.blocks:
            self._errors.append(
                UnsupportedError(
                    f"the output {self._graph.tensors[index].name!r} is cut into blocks",
                    remedy="end the network behind BATCH_TO_SPACE_ND (--outputs)",
                    location=self._location,
                )
            )
            return ""
        wanted, computed = self._name(index), self._computed()
        if value.is_image and self._tensor(value.tensor).name == wanted and wanted in computed:
            free = self._builder.unique(f"{wanted}_image")
            value = replace(value, tensor=self._rename(wanted, free))
        else:
            value = replace(value, tensor=self._tensor(value.tensor))
        tensor = self._conversions.plain(value, self._location).tensor
        if tensor.name == wanted:
            return wanted
        is_free = wanted not in self._builder.tensors
        if tensor.name in self._computed() - self._results_named and is_free:
            self._results_named.add(wanted)
            return self._rename(tensor.name, wanted).name
        free = wanted if is_free else self._builder.unique(wanted)
        if tensor.data is not None:
            self._builder.add(replace(tensor, name=free))
        else:
            self._builder.node("copy", [tensor], {}, [free], [tensor.dtype])
        return free

    def _computed(self) -> set[str]:
        return {name for node in self._builder.nodes for name in node.outputs}


class _Surroundings:
    """The model that an operator stands in."""

    def __init__(self, model: TfliteModel) -> None:
        self._model = model

    def subgraph(self, index: int) -> TfliteSubgraph | None:
        """Return a subgraph by its number; None if there is none."""
        known = range(1, len(self._model.subgraphs))
        return self._model.subgraphs[index] if index in known else None

    def lower(
        self,
        graph: TfliteSubgraph,
        operators: Sequence[TfliteOperator],
        values: Mapping[int, Value],
        wanted: Sequence[int],
        builder: Builder,
    ) -> list[Value]:
        """Lower operators of a subgraph into a graph of their own."""
        return _Lowering(self._model, graph, builder).part(operators, values, wanted)
