"""One ONNX node being lowered: its arguments, and how it makes NNEF nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.building.builder import Builder, identifier
from nnef_hw.frontend.building.model_file import MAX_VOLUME
from nnef_hw.frontend.onnx.file.model import (
    Constant,
    ElementType,
    OnnxGraph,
    OnnxNode,
    as_data,
)
from nnef_hw.frontend.onnx.file.tensors import is_possible
from nnef_hw.frontend.onnx.lowering.element_types import cast, contains
from nnef_hw.ir import Tensor
from nnef_hw.ir.quantization import rearranged

__all__ = ["OnnxCall", "Operand", "Value"]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor and the element type it has in ONNX."""

    tensor: Tensor
    type: ElementType

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.tensor.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.tensor.shape)

    @property
    def volume(self) -> int:
        """Number of elements."""
        return math.prod(self.tensor.shape)

    @property
    def data(self) -> Array | None:
        """The value if it is constant."""
        return self.tensor.data


Operand = Value | float
"""An argument: a number becomes a constant of the first argument's type."""


class Surroundings(Protocol):
    """The scope that the subgraphs of a node see."""

    def lower(
        self,
        graph: OnnxGraph,
        values: Sequence[Value],
        builder: Builder | None = None,
        captured: Mapping[str, Value] | None = None,
    ) -> list[Value]:
        """Lower a subgraph for some arguments and return its results.

        Parameters
        ----------
        builder
            Builder that receives its nodes, by default the node's own.
        captured
            Values that it reads instead of those around it.
        """

    def attempt(
        self,
        graph: OnnxGraph,
        values: Sequence[Value],
        builder: Builder,
        captured: Mapping[str, Value],
    ) -> list[Value] | None:
        """Lower a subgraph as :meth:`lower` does; None, and no error, if that is not possible."""

    def captured(self, graph: OnnxGraph) -> dict[str, Value]:
        """Return the values from outside that a subgraph reads."""


class OnnxCall:
    """An ONNX node whose arguments are known.

    Parameters
    ----------
    inputs
        The arguments; None for optional ones left out at the end or in between.
    around
        Scope of the node's subgraphs.
    """

    def __init__(
        self,
        node: OnnxNode,
        inputs: Sequence[Value | None],
        builder: Builder,
        location: Location,
        around: Surroundings,
    ) -> None:
        self.node = node
        self.builder = builder
        self.location = location
        self._place = replace(location, text=node.label)
        self.created: set[str] = set()
        """Names of the tensors that were made for this node."""
        self._inputs = tuple(inputs)
        self._base = identifier(next(filter(None, node.outputs), node.name))
        self.around = around

    def on(self, *inputs: Value | None, since: int | None = None, **attrs: object) -> OnnxCall:
        """Return the node with other arguments and attributes, sharing ``created``."""
        version = self.node.since if since is None else since
        node = replace(self.node, attrs={**self.node.attrs, **attrs}, since=version)
        other = OnnxCall(node, inputs, self.builder, self.location, self.around)
        other.created = self.created
        return other

    @property
    def since(self) -> int:
        """The version of the operator."""
        return self.node.since

    @property
    def arguments(self) -> tuple[Value | None, ...]:
        """All arguments; None for optional ones left out."""
        return self._inputs

    @property
    def inputs(self) -> list[Value]:
        """All arguments of a variadic operator."""
        return [self.required(index) for index in range(len(self._inputs))]

    def inputs_from(self, first: int) -> list[Value]:
        """All arguments from one on."""
        return [self.required(index) for index in range(first, len(self._inputs))]

    def wants(self, index: int) -> bool:
        """Whether an output is asked for."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def attr(self, name: str, default: AttributeValue = None) -> AttributeValue:
        """Return an attribute."""
        return self.node.attrs.get(name, default)

    def input(self, index: int) -> Value | None:
        """Return an optional argument."""
        return self._inputs[index] if index < len(self._inputs) else None

    def required(self, index: int) -> Value:
        """Return an argument that must be there."""
        value = self.input(index)
        if value is None:
            raise self.error(f"input {index} is missing")
        return value

    def constant_value(self, index: int, what: str) -> Array | None:
        """Return the value of an optional argument that must be constant.

        Parameters
        ----------
        what
            Name of the argument in messages, such as ``the shape``.
        """
        value = self.input(index)
        if value is None:
            return None
        if value.data is None:
            raise self.unsupported(
                f"{what} {value.tensor.name!r} is computed when the network runs",
                self._way_to_constant(value, index),
            )
        return value.data

    def _way_to_constant(self, value: Value, index: int) -> str:
        """Return how a value becomes a constant: by those inputs that are no samples."""
        sources = self.builder.sources(value.tensor.name)
        is_input = index > 0 and [tensor.name for tensor in sources] == [value.tensor.name]
        samples = [tensor for tensor in sources if tensor.dtype == "scalar" and not is_input]
        if samples or not sources:
            return "make it a constant; shapes of hardware are static"
        vectors = [tensor.name for tensor in sources if tensor.volume > 1]
        if vectors:
            names = " and ".join(map(repr, vectors))
            return f"make the input {names} a constant of the file; shapes of hardware are static"
        options = " ".join(f"--bind {tensor.name}=X" for tensor in sources)
        return f"give it a number: {options}"

    def integers(self, index: int, what: str) -> list[int] | None:
        """Return an optional list of constant integers, see :meth:`constant_value`."""
        data = self.constant_value(index, what)
        if data is not None and data.dtype.kind == "f":
            raise self.error(f"{what} {self.required(index).tensor.name!r} are not integers")
        return None if data is None else [int(item) for item in data.reshape(-1)]

    def integer(self, index: int, what: str) -> int:
        """Return a constant integer, of whatever type, see :meth:`constant_value`."""
        number = self.number(index, what)
        if not math.isfinite(number):
            raise self.error(f"{what} is {number}, not an integer")
        return int(number)

    def number(self, index: int, what: str) -> AttributeValue:
        """Return a constant number, see :meth:`constant_value`."""
        self.required(index)
        return self.optional_number(index, what)

    def optional_number(self, index: int, what: str) -> AttributeValue:
        """Return a constant number or None, see :meth:`constant_value`."""
        data = self.constant_value(index, what)
        if data is None:
            return None
        if data.size != 1:
            raise self.error(f"{what} has {data.size} elements, not 1")
        return data.reshape(-1)[0].item()

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front."""
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis} is not in {-rank}..{rank - 1}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """Return axes counted from the front."""
        result = [self.axis(axis, rank) for axis in axes]
        if len(set(result)) != len(result):
            raise self.error(f"axes {list(axes)} name one of {rank} dimensions twice")
        return result

    def error(self, reason: str, remedy: str | None = None) -> ModelError:
        """Make an error about an invalid node."""
        return ModelError(f"{self.node.label}: {reason}", remedy=remedy, location=self.location)

    def unsupported(self, reason: str, remedy: str | None = None) -> UnsupportedError:
        """Make an error about a node that cannot be lowered."""
        label = f"{self.node.label} of opset {self.node.opset}"
        return UnsupportedError(f"{label}: {reason}", remedy=remedy, location=self.location)

    def emit(
        self, op: str, *operands: Operand, element: ElementType | None = None, **attrs: object
    ) -> Value:
        """Make a node with one result.

        Parameters
        ----------
        element
            Type of the result; that of the first argument if not given.
        """
        return self.emit_many(op, *operands, elements=(element,), **attrs)[0]

    def emit_many(
        self, op: str, *operands: Operand, elements: Sequence[ElementType | None], **attrs: object
    ) -> list[Value]:
        """Make a node with several results; one type may stand for all of them."""
        first = next(operand for operand in operands if isinstance(operand, Value))
        values = [self._value(operand, first) for operand in operands]
        types = [first.type if element is None else element for element in elements]
        try:
            tensors = self.builder.node(
                op,
                [value.tensor for value in values],
                attrs,
                f"{self._base}_{op}",
                [element.dtype for element in types],
                location=self._place,
            )
        except (ArithmeticError, LookupError, ValueError) as error:
            raise self.error(f"{op} cannot be computed: {error}") from None
        for tensor in tensors:
            if not is_possible(tensor.shape):
                raise self.error(
                    f"the result has shape {list(tensor.shape)}, over {MAX_VOLUME} elements",
                    "no supported device holds it",
                )
        self.created.update(tensor.name for tensor in tensors)
        types = types if len(types) == len(tensors) else types * len(tensors)
        return [Value(*item) for item in zip(tensors, types, strict=True)]

    def constant(self, values: object, element: ElementType, *, like: Value | None = None) -> Value:
        """Make a constant.

        Parameters
        ----------
        like
            Value from which it was made, whose name and label it keeps.
        """
        data = as_data(values, element)
        name = self._base if like is None else like.tensor.name
        label = None if like is None else like.tensor.label
        tensor = self.builder.constant(name, data, location=self._place)
        tensor = self.builder.add(replace(tensor, dtype=element.dtype, label=label))
        self.created.add(tensor.name)
        return Value(tensor, element)

    def variable(self, constant: Constant) -> Value:
        """Make a parameter of the model as from an initializer; one number stays a constant."""
        value = self.constant(constant.data, constant.type)
        if not constant.data.ndim:
            return value
        tensor = replace(value.tensor, label=value.tensor.name)
        return Value(self.builder.add(tensor), value.type)

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a value in another shape of the same volume."""
        if tuple(shape) == value.shape:
            return value
        if value.data is not None:
            return self._moved(value, lambda array: array.reshape(tuple(shape)))
        return self.emit("reshape", value, shape=list(shape), axis_start=0, axis_count=-1)

    def transposed(self, value: Value, axes: Sequence[int]) -> Value:
        """Return a value with permuted axes."""
        if list(axes) == list(range(value.rank)):
            return value
        if value.data is not None:
            return self._moved(value, lambda array: array.transpose(tuple(axes)))
        return self.emit("transpose", value, axes=list(axes))

    def _moved(self, value: Value, function: Callable[[Array], Array]) -> Value:
        """Return a constant with its elements elsewhere; its quantization goes with them."""
        old = value.tensor
        assert old.data is not None
        new = self.constant(function(old.data), value.type, like=value)
        if old.quant is None:
            return new
        quant = rearranged(old.quant, old.shape, function)
        tensor = replace(new.tensor, data=function(old.data), quant=quant)
        return Value(self.builder.add(tensor), value.type)

    def aligned(self, *values: Value) -> list[Value]:
        """Return values of one rank: ONNX aligns shapes at the last dimension, NNEF at the first.

        Constants of one element fit anything as rank 0.
        """
        rank = max(value.rank for value in values)
        return [self._raised(value, rank) for value in values]

    def _raised(self, value: Value, rank: int) -> Value:
        missing = rank - value.rank
        if missing == 0 or value.rank == 0:
            return value
        if value.data is not None:
            shape = () if value.volume == 1 else (1,) * missing + value.shape
            return self.reshaped(value, shape)
        return self.emit("unsqueeze", value, axes=list(range(missing)))

    def spread(self, op: str, *values: Value, element: ElementType | None = None) -> Value:
        """Make an element-wise node whose arguments broadcast as in ONNX."""
        return self.emit(op, *self.aligned(*values), element=element)

    def convert(self, value: Value, element: ElementType) -> Value:
        """Return a value in another element type.

        Integers below 32 bits wrap. Other values of the run keep their precision within a kind:
        float16 is computed like float, int32 like int64; constants are rounded as the type demands.
        """
        if value.data is not None:
            return self.constant(cast(value.data, element), element, like=value)
        source = value.type
        if element.dtype == "logical":
            return value if source == element else self.emit("ne", value, 0, element=element)
        if source.dtype != element.dtype:
            value = self.emit("cast", value, element=element)
        if element.dtype == "integer" and element.bits < 32 and not contains(element, source):
            return self.wrapped(Value(value.tensor, element))
        return Value(value.tensor, element)

    def wrapped(self, value: Value) -> Value:
        """Return integers modulo 2^bits of their type."""
        element = value.type
        kept = self.emit("bit_and", value, (1 << element.bits) - 1)
        if not element.signed:
            return kept
        sign = 1 << (element.bits - 1)
        return self.emit("sub", self.emit("bit_xor", kept, sign), sign)

    def _value(self, operand: Operand, like: Value) -> Value:
        if isinstance(operand, Value):
            return operand
        return self.constant(operand, like.type)
