"""One TensorFlow Lite operator being lowered: its arguments, and how it makes NNEF nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Protocol

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.arithmetic.tflite.numerics import tflite_limits
from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.building.builder import identifier as plain_identifier
from nnef_hw.frontend.building.model_file import MAX_VOLUME
from nnef_hw.frontend.tflite.file.model import (
    FLOAT32,
    INT32,
    ElementType,
    TfliteOperator,
    TfliteSubgraph,
    TfliteTensor,
)
from nnef_hw.frontend.tflite.lowering.conversions import Conversions, transposed
from nnef_hw.frontend.tflite.lowering.states import Handle, States
from nnef_hw.frontend.tflite.lowering.values import Complex, Value, channels_first
from nnef_hw.ir.quantization import rearranged

__all__ = ["Operand", "TfliteCall", "activate", "identifier"]

Operand = Value | float
"""An argument: a number becomes a constant."""


def identifier(name: str) -> str:
    """Return a name as NNEF can have it, of a fused operator its first: ``a/Relu;a/Conv2D``."""
    return plain_identifier(name.partition(";")[0])


class Surroundings(Protocol):
    """The model that an operator stands in."""

    def subgraph(self, index: int) -> TfliteSubgraph | None:
        """Return a subgraph by its number; None if there is none."""

    def lower(
        self,
        graph: TfliteSubgraph,
        operators: Sequence[TfliteOperator],
        values: Mapping[int, Value],
        wanted: Sequence[int],
        builder: Builder,
    ) -> list[Value]:
        """Lower operators of a subgraph into a graph of their own; return some of its tensors.

        Raises
        ------
        ModelError, UnsupportedError
            If one of them cannot be lowered.
        """


class TfliteCall:
    """An operator whose arguments are known.

    Parameters
    ----------
    inputs
        The arguments; None for optional ones left out.
    tensors
        All tensors of the subgraph.
    around
        The model's other subgraphs.
    """

    def __init__(
        self,
        operator: TfliteOperator,
        inputs: Sequence[Value | None],
        tensors: Sequence[TfliteTensor],
        builder: Builder,
        location: Location,
        conversions: Conversions,
        states: States,
        around: Surroundings,
    ) -> None:
        self.operator = operator
        self.builder = builder
        self.location = replace(location, text=operator.label)
        self.created: set[str] = set()
        """Names of the tensors that were made for this operator."""
        self._inputs = tuple(inputs)
        self._tensors = tensors
        self._conversions = conversions
        self.states = states
        self.around = around
        self._base = identifier(operator.name)

    @property
    def inputs(self) -> list[Value]:
        """All arguments of a variadic operator."""
        return [self.required(index) for index in range(len(self._inputs))]

    def with_input(self, value: Value, **options: object) -> TfliteCall:
        """Return a call of the same operator with another first argument, and other options."""
        operator = replace(self.operator, options={**self.operator.options, **options})
        call = TfliteCall(
            operator, [value, *self._inputs[1:]], self._tensors, self.builder,
            replace(self.location, text=""), self._conversions, self.states, self.around,
        )  # fmt: skip
        call.created = self.created
        return call

    def option(self, name: str, default: AttributeValue = 0) -> AttributeValue:
        """Return an option by its name in the schema; the default if there are no options.

        Raises
        ------
        ModelError
            If the options are those of another operator.
        """
        options = self.operator.options
        if options and name not in options:
            raise self.error(
                f"its options have no {name}: they are of another operator",
                "convert the model again",
            )
        return options.get(name, default)

    def input(self, index: int) -> Value | None:
        """Return an optional argument."""
        return self._inputs[index] if index < len(self._inputs) else None

    def required(self, index: int) -> Value:
        """Return an argument that must be there."""
        value = self.handle(index)
        if isinstance(value, Handle):
            raise self.error("an argument is a variable, not its value")
        if isinstance(value, Complex):
            raise self.unsupported(
                f"the argument {self.source(index).name!r} is of complex numbers",
                "take their REAL, IMAG or COMPLEX_ABS before",
            )
        return value

    def complex(self, index: int) -> Complex:
        """Return an argument that must be of complex numbers."""
        value = self.handle(index)
        if not isinstance(value, Complex):
            raise self.error(f"input {index} is not of complex numbers")
        return value

    def handle(self, index: int) -> Value:
        """Return an argument that must be there, and may be a variable."""
        value = self.input(index)
        if value is None:
            raise self.error(f"input {index} is missing")
        return value

    def source(self, index: int) -> TfliteTensor:
        """Return the tensor of an argument, as the file describes it."""
        self.handle(index)
        return self._tensors[self.operator.inputs[index]]

    def target(self, index: int = 0) -> TfliteTensor:
        """Return the tensor of a result, as the file describes it."""
        if index >= len(self.operator.outputs):
            raise self.error(f"output {index} is missing")
        return self._tensors[self.operator.outputs[index]]

    def constant_value(self, index: int, what: str) -> Array:
        """Return the value of an argument that must be constant, in TensorFlow Lite's order.

        Parameters
        ----------
        what
            Name of the argument in messages, such as ``the shape``.
        """
        value = self.plain(self.required(index))
        if value.data is None:
            raise self.unsupported(
                f"{what} {self.source(index).name!r} is computed when the network runs",
                "make it a constant; shapes of hardware are static",
            )
        return value.data

    def integers(self, index: int, what: str) -> list[int]:
        """Return constant integers, see :meth:`constant_value`."""
        data = self.constant_value(index, what)
        if data.dtype.kind == "f":
            raise self.error(f"{what} {self.source(index).name!r} are not integers")
        return [int(item) for item in data.reshape(-1)]

    def state(self, index: int) -> Value:
        """Return the value that the last inference left in an argument, a variable tensor."""
        tensor = self.variable(index)
        return self.states.read(tensor.index, f"{identifier(tensor.name)}_state", tensor)

    def keep(self, index: int, value: Value) -> None:
        """Keep a value in an argument that is a variable tensor, in its format."""
        self.states.assign(self.variable(index).index, self.formatted(index, value))

    def formatted(self, index: int, value: Value) -> Value:
        """Return a value in the format of an argument that is a variable tensor."""
        kept = self.emit("copy", value)
        quant = self.variable(index).quantization
        return replace(kept, tensor=self.builder.add(replace(kept.tensor, quant=quant)))

    def within(self, builder: Builder) -> TfliteCall:
        """Return the same call, whose nodes are made in another graph: the body of a loop."""
        inner = copy(self)
        inner.builder, inner.created = builder, set()
        return inner

    def variable(self, index: int) -> TfliteTensor:
        """Return the variable tensor of an argument, as the file describes it."""
        numbers = self.operator.inputs
        if index >= len(numbers) or numbers[index] < 0:
            raise self.error(f"input {index}, a state, is missing")
        return self._tensors[numbers[index]]

    def intermediate(self, index: int) -> TfliteTensor | None:
        """Return the tensor of a value inside of the operator; None if the file has none."""
        numbers = self.operator.intermediates
        known = index < len(numbers) and numbers[index] >= 0
        return self._tensors[numbers[index]] if known else None

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front."""
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis} is not in {-rank}..{rank - 1}")
        return axis % rank

    def error(self, reason: str, remedy: str | None = None) -> ModelError:
        """Make an error about an invalid operator."""
        return ModelError(f"{self.operator.label}: {reason}", remedy=remedy)

    def unsupported(self, reason: str, remedy: str | None = None) -> UnsupportedError:
        """Make an error about an operator that cannot be lowered."""
        return UnsupportedError(f"{self.operator.label}: {reason}", remedy=remedy)

    def emit(
        self, op: str, *operands: Operand, element: ElementType | None = None, **attrs: object
    ) -> Value:
        """Make a node with one result, whose axes are in the order of the first argument's.

        Parameters
        ----------
        element
            Type of the result; that of the first argument if not given.
        """
        return self.emit_many(op, *operands, count=1, element=element, **attrs)[0]

    def emit_many(
        self,
        op: str,
        *operands: Operand,
        count: int,
        element: ElementType | None = None,
        **attrs: object,
    ) -> list[Value]:
        """Make a node with several results."""
        first = next(operand for operand in operands if isinstance(operand, Value))
        values = [
            operand if isinstance(operand, Value) else self.number(operand, first)
            for operand in operands
        ]
        dtype = first.tensor.dtype if element is None else element.dtype
        try:
            tensors = self.builder.node(
                op,
                [value.tensor for value in values],
                attrs,
                f"{self._base}_{op}",
                [dtype] * count,
                location=self.location,
            )
        except ModelError as error:
            raise type(error)(
                f"{self.operator.label}: {error.reason}", remedy=error.remedy
            ) from None
        except (ArithmeticError, LookupError, ValueError) as error:
            raise self.error(f"{op} cannot be computed: {error}") from None
        for tensor in tensors:
            if tensor.volume > MAX_VOLUME:
                raise self.error(
                    f"the result has shape {list(tensor.shape)}, over {MAX_VOLUME} elements",
                    "no supported device holds it",
                )
        self.created.update(tensor.name for tensor in tensors)
        kind = first.type if element is None else element
        return [Value(tensor, kind, first.is_image) for tensor in tensors]

    def number(self, value: float, like: Value) -> Value:
        """Make a constant of rank 0."""
        kinds: dict[str, type[np.generic]] = {"integer": np.int64, "logical": np.bool_}
        data: Array = np.asarray(value, kinds.get(like.tensor.dtype, np.float64))
        return Value(self.builder.constant(self._base, data, location=self.location), like.type)

    def constant(self, data: object, element: ElementType = FLOAT32) -> Value:
        """Make a constant, in TensorFlow Lite's order of axes."""
        tensor = self.builder.constant(self._base, np.asarray(data), location=self.location)
        self.created.add(tensor.name)
        return Value(tensor, element)

    def shape_constant(self, data: object) -> Value:
        """Make a constant of integers, such as a shape."""
        return self.constant(np.asarray(data, np.int64), INT32)

    def image(self, value: Value) -> Value:
        """Return a value [N, spatial..., C] whose tensor is [N, C, spatial...]."""
        if value.rank < 2:
            raise self.error(f"an argument has shape {list(value.shape)}, which is no image")
        return self._conversions.image(value, self.location)

    def plain(self, value: Value) -> Value:
        """Return a value whose tensor has TensorFlow Lite's order of axes."""
        return self._conversions.plain(value, self.location)

    def transposed(self, value: Value, axes: Sequence[int]) -> Value:
        """Return a value with permuted axes, in TensorFlow Lite's order."""
        if list(axes) == list(range(value.rank)):
            return value
        plain = self.plain(value)
        if list(axes) == channels_first(value.rank) and not value.is_image:
            # What the image has already; the result counts its axes like the tensor.
            return replace(self.image(value), is_image=False)
        tensor = transposed(self.builder, plain.tensor, [*axes], "transposed", self.location)
        self.created.add(tensor.name)
        return Value(tensor, value.type)

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a value in another shape of the same volume.

        An image whose channels and batch stay remains one: only its pixels are counted otherwise.
        """
        if tuple(shape) == value.shape:
            return value
        if value.is_image and len(shape) > 2 and shape[0] == value.shape[0] and (
            shape[-1] == value.shape[-1]
        ):  # fmt: skip
            stored = [shape[0], shape[-1], *shape[1:-1]]
            return self._reshaped(value, stored)
        return self._reshaped(self.plain(value), list(shape))

    def _reshaped(self, value: Value, stored: list[int]) -> Value:
        tensor = value.tensor
        if tensor.data is None:
            return self.emit("reshape", value, shape=stored, axis_start=0, axis_count=-1)
        if tensor.volume != np.prod(stored, dtype=np.int64):
            raise self.error(
                f"the shape {stored} does not have the {tensor.volume} elements of "
                f"{list(tensor.shape)}"
            )
        made = self.builder.constant(
            tensor.name, tensor.data.reshape(stored), location=self.location
        )
        quant = tensor.quant and rearranged(
            tensor.quant, tensor.shape, lambda array: array.reshape(stored)
        )
        made = self.builder.add(
            replace(made, dtype=tensor.dtype, label=tensor.label if stored else None, quant=quant)
        )
        self.created.add(made.name)
        return replace(value, tensor=made)

    def aligned(self, *values: Value) -> list[Value]:
        """Return values of one rank and order of axes, which NNEF broadcasts as this operator does.

        Constants of one element fit anything as rank 0.
        """
        rank = max(value.rank for value in values)
        is_image = any(value.is_image for value in values)
        return [self._aligned(value, rank, is_image) for value in values]

    def _aligned(self, value: Value, rank: int, is_image: bool) -> Value:
        if value.data is not None and value.volume == 1 and value.rank < max(rank, 1):
            return self._reshaped(self.plain(value), [])
        if value.rank < rank:
            value = self.reshaped(self.plain(value), (1,) * (rank - value.rank) + value.shape)
        return self.image(value) if is_image else value

    def spread(
        self, op: str, *values: Value, element: ElementType | None = None, **attrs: object
    ) -> Value:
        """Make an element-wise node whose arguments broadcast as in TensorFlow Lite."""
        aligned = self.aligned(*values)
        result = self.emit(op, *aligned, element=element, **attrs)
        return replace(result, is_image=any(value.is_image for value in aligned))

    def activated(self, value: Value) -> Value:
        """Apply the activation that is fused into the operator."""
        return activate(self, value, self.option("FusedActivationFunction"))


_LIMITS = {1: (0.0, np.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""By the code of ``ActivationFunctionType``."""


def activate(call: TfliteCall, value: Value, code: int) -> Value:
    """Apply an activation function: NONE, RELU, RELU_N1_TO_1 or RELU6.

    The others have no kernel that computes them where they are fused. Limits that codes of a
    quantized result cannot exceed are left out.
    """
    if not code:
        return value
    if code not in _LIMITS:
        raise call.unsupported(
            f"the fused activation {code} is not supported",
            "use RELU, RELU6 or none, and the function as an operator of its own",
        )
    lo, hi = _LIMITS[code]
    quant = call.target().quantization
    if quant is None:
        return call.emit("relu", value) if hi == np.inf else call.emit("clamp", value, lo, hi)
    element = call.target().type
    assert element is not None
    least, most = element.limits
    low, high = tflite_limits(lo, hi, quant.args["scale"], quant.args["zero_point"])
    if high >= most:
        return call.emit("relu", value) if lo == 0 else _clamped(call, value, low, most)
    return _clamped(call, value, low, high) if low > least else _clamped(call, value, least, high)


def _clamped(call: TfliteCall, value: Value, low: float, high: float) -> Value:
    """Clamp codes of the result's format: a sum of the same operator has it, too."""
    quant = call.target().quantization
    assert quant is not None
    if value.tensor.name in call.created:
        value = replace(value, tensor=call.builder.add(replace(value.tensor, quant=quant)))
    scale, zero_point = quant.args["scale"], quant.args["zero_point"]
    limits = [float((code - zero_point) * scale) for code in (low, high)]
    return call.emit("clamp", value, *limits)
