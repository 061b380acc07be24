"""Match an invocation's arguments with the operator's declaration, and check their types."""

from __future__ import annotations

from typing import Any, Protocol

from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.operators import nearest
from nnef_hw.frontend.nnef.syntax import (
    Argument,
    Array,
    ArrayType,
    Declaration,
    Expression,
    Identifier,
    Invocation,
    Literal,
    Parameter,
    PrimitiveType,
    TensorType,
    Tuple,
    TupleType,
    Type,
)
from nnef_hw.frontend.shapes import Call
from nnef_hw.ir import Tensor

__all__ = ["Scope", "bind"]

_PRIMITIVES = {bool: "logical", int: "integer", float: "scalar", str: "string"}


class Scope(Protocol):
    """Where tensors come from."""

    def tensor(self, identifier: Identifier) -> Tensor:
        """Return the tensor of a name; raise ModelError if there is none."""

    def literal(self, name: str, value: bool | int | float, location: Location) -> Tensor:
        """Make the constant tensor of a literal that stands for a tensor."""


def bind(invocation: Invocation, name: str, declaration: Declaration, scope: Scope) -> Call:
    """Check an invocation against a declaration.

    Raises
    ------
    ModelError
        At the first argument that does not fit.
    """
    return _Binder(invocation, name, declaration, scope).bind()


class _Binder:
    def __init__(
        self, invocation: Invocation, name: str, declaration: Declaration, scope: Scope
    ) -> None:
        self._invocation = invocation
        self._name = name
        self._declaration = declaration
        self._scope = scope
        self._dtype = declaration.default_dtype
        if invocation.dtype is not None:
            if not declaration.generic:
                raise self._error(
                    f"the operator is not generic, but <{invocation.dtype}> was given",
                    invocation.location,
                    "leave it out",
                )
            if invocation.dtype in {"?", "string"}:
                raise self._error(
                    f"there is no tensor<{invocation.dtype}> in a graph",
                    invocation.location,
                    "write scalar, integer or logical, or leave it out",
                )
            self._dtype = invocation.dtype

    def bind(self) -> Call:
        arguments = self._match()
        inputs: list[Tensor] = []
        attrs: dict[str, Any] = {}
        for parameter in self._declaration.parameters:
            given = arguments.get(parameter.name)
            value = given.value if given else parameter.default
            if value is None:
                raise self._error(
                    f"the argument {parameter.name!r} is missing", self._invocation.location
                )
            if parameter.is_tensor:
                inputs += self._tensors(parameter, parameter.type, value, given is None)
            else:
                attrs[parameter.name] = self._attribute(parameter, parameter.type, value)
        if self._declaration.generic and not inputs and self._dtype is None:
            raise self._error("no tensors are given", self._invocation.location)
        return Call(
            op=self._declaration.name,
            name=self._name,
            inputs=tuple(inputs),
            attrs=attrs,
            dtypes=tuple(map(self._result_dtype, self._declaration.results)),
            places={name: argument.value.location for name, argument in arguments.items()},
            location=self._invocation.location,
        )

    def _error(self, reason: str, where: Location, remedy: str | None = None) -> ModelError:
        return ModelError(
            f"{self._invocation.operator} {self._name!r}: {reason}", remedy=remedy, location=where
        )

    def _match(self) -> dict[str, Argument]:
        parameters = self._declaration.parameters
        by_name = {parameter.name: parameter for parameter in parameters}
        matched: dict[str, Argument] = {}
        positional_ended = False
        for index, argument in enumerate(self._invocation.arguments):
            if argument.name is None:
                if positional_ended:
                    raise self._error(
                        "a positional argument stands behind a named one",
                        argument.location,
                        "name it, or move it to the front",
                    )
                name = self._positional(index, argument)
            else:
                positional_ended = True
                name = argument.name
                if name not in by_name:
                    raise self._error(
                        f"there is no argument {name!r}",
                        argument.location,
                        nearest(name, by_name)
                        or f"the arguments are {', '.join(map(repr, by_name))}",
                    )
            if name in matched:
                raise self._error(f"the argument {name!r} is given twice", argument.location)
            matched[name] = argument
        return matched

    def _positional(self, index: int, argument: Argument) -> str:
        parameters = self._declaration.parameters
        if index >= len(parameters):
            raise self._error(
                f"{len(self._invocation.arguments)} arguments are given, "
                f"the operator takes {len(parameters)}",
                argument.location,
            )
        parameter = parameters[index]
        if not parameter.is_tensor:
            raise self._error(
                f"the attribute {parameter.name!r} must be named",
                argument.location,
                f"write {parameter.name} = ...",
            )
        return parameter.name

    def _tensors(
        self, parameter: Parameter, expected: Type, value: Expression, is_default: bool
    ) -> list[Tensor]:
        if isinstance(expected, ArrayType):
            if not isinstance(value, Array):
                raise self._mismatch(parameter, expected, value)
            return [
                tensor
                for item in value.items
                for tensor in self._tensors(parameter, expected.item, item, is_default)
            ]
        assert isinstance(expected, TensorType)
        if isinstance(value, Identifier):
            tensor = self._scope.tensor(value)
        elif isinstance(value, Literal) and not isinstance(value.value, str):
            where = self._invocation.location if is_default else value.location
            tensor = self._scope.literal(f"{self._name}_{parameter.name}", value.value, where)
        else:
            raise self._mismatch(parameter, expected, value)
        if not self._fits(tensor.dtype, expected.item):
            wanted = self._dtype if expected.item == "?" else expected.item
            raise self._error(
                f"{parameter.name!r} must be a tensor<{wanted}>, "
                f"not {_describe(value, tensor.dtype)}",
                value.location,
                "write 1.0 instead of 1" if isinstance(value, Literal) else None,
            )
        return [tensor]

    def _attribute(self, parameter: Parameter, expected: Type, value: Expression) -> Any:
        if isinstance(expected, ArrayType) and isinstance(value, Array):
            return [self._attribute(parameter, expected.item, item) for item in value.items]
        if isinstance(expected, TupleType) and isinstance(value, Tuple):
            if len(expected.items) == len(value.items):
                pairs = zip(expected.items, value.items, strict=True)
                return tuple(self._attribute(parameter, kind, item) for kind, item in pairs)
        elif (
            isinstance(expected, PrimitiveType)
            and isinstance(value, Literal)
            and self._fits(_PRIMITIVES[type(value.value)], expected.name)
        ):
            return value.value
        raise self._mismatch(parameter, expected, value)

    def _fits(self, dtype: str, expected: str | None) -> bool:
        if expected is None:
            return True
        if expected == "?":
            if self._dtype is None:
                self._dtype = dtype
            return dtype == self._dtype
        return dtype == expected

    def _result_dtype(self, result: Parameter) -> str:
        kind = result.type.item if isinstance(result.type, ArrayType) else result.type
        assert isinstance(kind, TensorType)
        assert kind.item is not None
        dtype = self._dtype if kind.item == "?" else kind.item
        if dtype is None:
            raise self._error(
                "the data-type of the result is not known",
                self._invocation.location,
                f"write {self._invocation.operator}<scalar>(...)",
            )
        return dtype

    def _mismatch(self, parameter: Parameter, expected: Type, value: Expression) -> ModelError:
        if isinstance(value, Invocation):
            return UnsupportedError(
                f"{self._invocation.operator} {self._name!r}: nested invocations are not "
                "supported yet",
                remedy=f"assign {value.operator}(...) to a name first",
                location=value.location,
            )
        shown = str(expected)
        if self._dtype is not None:
            shown = shown.replace("?", self._dtype)
        return self._error(
            f"{parameter.name!r} must be {shown}, not {_describe(value)}",
            value.location,
            "write 1.0 instead of 1" if shown == "scalar" and _is_integer(value) else None,
        )


def _is_integer(value: Expression) -> bool:
    return isinstance(value, Literal) and type(value.value) is int


def _describe(value: Expression, dtype: str | None = None) -> str:
    if isinstance(value, Identifier):
        return f"the tensor<{dtype}> {value.name!r}" if dtype else f"the tensor {value.name!r}"
    if isinstance(value, Literal):
        shown = str(value.value).lower() if isinstance(value.value, bool) else repr(value.value)
        return f"the {_PRIMITIVES[type(value.value)]} {shown}"
    return "an array" if isinstance(value, Array) else "a tuple"
