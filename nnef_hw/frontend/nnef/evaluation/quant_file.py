"""The quantization file ``graph.quant``: how the author of a model quantized its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError, raise_all
from nnef_hw.frontend.nnef.archive.archive import Archive
from nnef_hw.frontend.nnef.evaluation import arithmetic
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.language.parser import parse_quantization
from nnef_hw.frontend.nnef.language.syntax import (
    Argument,
    Array,
    Assignment,
    Binary,
    Expression,
    Invocation,
    Literal,
    Unary,
)
from nnef_hw.ir import Quantization, Tensor
from nnef_hw.reference.real.quantize import fake_quantize

__all__ = ["QUANTIZATION_FILE", "QuantizationLine", "read_quantization"]

QUANTIZATION_FILE = "graph.quant"

_PARAMETERS = {
    "linear_quantize": ("min", "max", "bits"),
    "logarithmic_quantize": ("max", "bits"),
    "min_max_linear_quantize": ("min", "max", "bits", "signed", "symmetric"),
    "zero_point_linear_quantize": ("zero_point", "scale", "bits", "signed", "symmetric"),
}
_TYPES = {
    "min": "scalar",
    "max": "scalar",
    "zero_point": "integer",
    "scale": "scalar",
    "bits": "integer",
    "signed": "logical",
    "symmetric": "logical",
}
_TENSORS = {"min", "max", "zero_point", "scale"}
_NAMES: dict[type, str] = {bool: "logical", int: "integer", float: "scalar", str: "string"}
_TRACT_DEFAULTS: Mapping[str, object] = MappingProxyType({"signed": True, "symmetric": False})
_MAX_BITS = 64
_MAX_INTEGER = 1 << 63


@dataclass(frozen=True, slots=True)
class QuantizationLine:
    """One line of the file.

    Parameters
    ----------
    name
        The tensor's identifier in the graph.
    quantization
        The quantization of the line, with its arguments checked.
    location
        Location of the line.
    """

    name: str
    quantization: Quantization
    location: Location

    def apply(self, tensor: Tensor) -> Tensor:
        """Return the tensor with the quantization; the values of a constant are rounded.

        An integer tensor is not quantized: a line that would change nothing is left out.

        Raises
        ------
        ModelError
            If the tensor is not a scalar, or its shape does not fit.
        """
        args = self.quantization.args
        quantization = self.of_shape(tensor.shape)
        if tensor.dtype == "scalar":
            data = tensor.data
            data = None if data is None else fake_quantize(data, quantization)
            return replace(tensor, data=data, quant=quantization)
        if tensor.dtype == "integer" and (args.get("scale"), args.get("zero_point")) == (1.0, 0):
            return tensor
        raise ModelError(
            f"{self.name!r} is a tensor<{tensor.dtype}>, only scalars are quantized",
            remedy="remove the line",
            location=self.location,
        )

    def of_shape(self, shape: tuple[int, ...]) -> Quantization:
        """Return the quantization of a tensor; ranges and scales broadcast to its shape.

        They do so from its first dimension. Khronos's converters write [C], a number for each
        channel, where that is another dimension: taken for the only one of that extent behind a
        first one of 1.

        Raises
        ------
        ModelError
            If a range or scale does not broadcast.
        """
        args = dict(self.quantization.args)
        for key, value in args.items():
            extents = np.shape(value)
            is_list = len(extents) == 1 and extents[0] > 1
            if is_list and shape[:1] == (1,) and shape.count(extents[0]) == 1:
                args[key] = np.reshape(value, (1,) * shape.index(extents[0]) + extents)
                continue
            fits = len(extents) <= len(shape) and all(
                n in {1, whole} for n, whole in zip(extents, shape, strict=False)
            )
            if not fits:
                raise ModelError(
                    f"{self.name!r} has shape {list(shape)}, to which {key!r} of shape "
                    f"{list(extents)} does not broadcast",
                    remedy="give one number, or an array along the first dimension "
                    "([[...]]: along the second)",
                    location=self.location,
                )
        return replace(self.quantization, args=args)


def read_quantization(archive: Archive, *, tract: bool = False) -> dict[str, QuantizationLine]:
    """Read the quantization file of a model; without one, nothing is quantized.

    Parameters
    ----------
    tract
        Whether the model is of tract's dialect: ``linear_quantize`` is signed there, numbers may
        be of the wrong type, ``signed`` and ``symmetric`` may be left out.

    Returns
    -------
    dict
        The lines by the tensors' identifiers.

    Raises
    ------
    ModelError, UnsupportedError, ErrorGroup
        If lines are wrong: an error for each.
    """
    if QUANTIZATION_FILE not in archive:
        return {}
    where = archive.location(QUANTIZATION_FILE)
    try:
        text = archive.read(QUANTIZATION_FILE).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ModelError(f"byte {error.start} is not UTF-8 text", location=where) from None
    lines: dict[str, QuantizationLine] = {}
    errors: list[NnefHwError] = []
    for assignment in parse_quantization(text, where.file):
        try:
            line = _Line(assignment, tract=tract).read()
            if line.name in lines:
                raise ModelError(
                    f"{line.name!r} is quantized twice, first in line "
                    f"{lines[line.name].location.line}",
                    remedy="keep one of the lines",
                    location=line.location,
                )
            lines[line.name] = line
        except NnefHwError as error:
            errors.append(error)
        except RecursionError:
            errors.append(
                ModelError("the value is nested too deeply", location=assignment.location)
            )
    raise_all(errors)
    return lines


class _Line:
    def __init__(self, assignment: Assignment, *, tract: bool) -> None:
        assert isinstance(assignment.target, Literal)
        assert isinstance(assignment.value, Invocation)
        self._name = str(assignment.target.value)
        self._call = assignment.value
        self._location = assignment.location
        self._tract = tract

    def read(self) -> QuantizationLine:
        op = self._call.operator
        if op not in _PARAMETERS:
            raise UnsupportedError(
                f"{self._name!r}: the quantization {op!r} is unknown",
                remedy=nearest(op, _PARAMETERS) or f"use one of {', '.join(_PARAMETERS)}",
                location=self._call.location,
            )
        arguments = self._match(_PARAMETERS[op])
        args: dict[str, object] = {}
        for key in _PARAMETERS[op]:
            if key in arguments:
                args[key] = self._value(key, arguments[key])
            elif self._tract and key in _TRACT_DEFAULTS:
                args[key] = _TRACT_DEFAULTS[key]
            else:
                raise self._error(
                    f"the argument {key!r} is missing", self._call.location, f"add {key} = ..."
                )
        self._check(args, {key: argument.value.location for key, argument in arguments.items()})
        if self._tract and op == "linear_quantize":
            op, args = "min_max_linear_quantize", {**args, **_TRACT_DEFAULTS}
        return QuantizationLine(self._name, Quantization(op, args), self._location)

    def _error(self, reason: str, where: Location, remedy: str | None = None) -> ModelError:
        return ModelError(f"{self._name!r}: {reason}", remedy=remedy, location=where)

    def _match(self, parameters: tuple[str, ...]) -> dict[str, Argument]:
        arguments: dict[str, Argument] = {}
        for argument in self._call.arguments:
            name = argument.name
            if name is None:
                raise self._error(
                    "all arguments must be named", argument.location, "write name = value"
                )
            if name not in parameters:
                raise self._error(
                    f"{self._call.operator} has no argument {name!r} here",
                    argument.location,
                    nearest(name, parameters)
                    or f"its arguments are {', '.join(map(repr, parameters))}",
                )
            if name in arguments:
                raise self._error(f"the argument {name!r} is given twice", argument.location)
            arguments[name] = argument
        return arguments

    def _value(self, key: str, argument: Argument) -> object:
        where = argument.value.location
        value = self._evaluated(argument.value)
        if not isinstance(value, list):
            return self._typed(key, value, where)
        if key not in _TENSORS:
            raise self._error(f"{key!r} must be {_TYPES[key]}, not an array", where)
        kind = float if _TYPES[key] == "scalar" else np.int64
        items = self._nested(key, value, where)
        try:
            array = np.array(items, kind)
        except ValueError:
            raise self._error(
                f"the array for {key!r} is jagged",
                where,
                "arrays along one dimension must have the same length",
            ) from None
        if not array.size:
            raise self._error(f"the array for {key!r} is empty", where)
        return array

    def _nested(self, key: str, value: object, where: Location) -> object:
        if isinstance(value, list):
            return [self._nested(key, item, where) for item in value]
        return self._typed(key, value, where)

    def _typed(self, key: str, value: Any, where: Location) -> Any:
        wanted = _TYPES[key]
        if _NAMES[type(value)] == wanted:
            return value
        if self._tract and wanted == "scalar" and type(value) is int:
            return float(value)
        is_whole = type(value) is float and value.is_integer() and abs(value) < _MAX_INTEGER
        if self._tract and wanted == "integer" and is_whole:
            return int(value)
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        is_integer = wanted == "scalar" and type(value) is int
        raise self._error(
            f"{key!r} must be {wanted}, not the {_NAMES[type(value)]} {shown}",
            where,
            f"write {value}.0" if is_integer else None,
        )

    def _evaluated(self, value: Expression) -> Any:
        """Return the value of a constant expression: a number, a logical or nested lists."""
        if isinstance(value, Literal):
            return value.value
        if isinstance(value, Array):
            return [self._evaluated(item) for item in value.items]
        if isinstance(value, Unary) and value.operator != "!":
            (number,) = self._numbers(value.operand)
            return arithmetic.unary(value.operator, number, value.location)
        if isinstance(value, Binary) and value.operator in {"+", "-", "*", "/", "^"}:
            left, right = self._numbers(value.left, value.right)
            return arithmetic.binary(value.operator, left, right, value.location)
        raise self._error(
            "only numbers, logicals, arrays of them and arithmetic are allowed here", value.location
        )

    def _numbers(self, *operands: Expression) -> list[int | float]:
        values = [self._evaluated(operand) for operand in operands]
        if {type(value) for value in values} not in ({int}, {float}):
            raise self._error(
                "operands must be numbers of one type", operands[0].location, "write 1.0, not 1"
            )
        return values

    def _check(self, args: AttributeMap, places: Mapping[str, Location]) -> None:
        if not 1 <= args["bits"] <= _MAX_BITS:
            raise self._error(
                f"'bits' must be in 1..{_MAX_BITS}, not {args['bits']}", places["bits"]
            )
        for key, holds, rule in _RULES:
            value = args.get(key)
            if value is not None and not holds(np.asarray(value)):
                shown = value.tolist() if isinstance(value, np.ndarray) else value
                raise self._error(f"{key!r} must be {rule}, not {shown}", places[key])
        if self._call.operator == "logarithmic_quantize" and not np.all(
            np.asarray(args["max"]) > 0
        ):
            raise self._error("'max' must be positive", places["max"])
        if "min" in args:
            low, high = np.asarray(args["min"]), np.asarray(args["max"])
            try:
                ordered = bool(np.all(np.less(*_aligned(low, high))))
            except ValueError:
                raise self._error(
                    f"'min' of shape {list(low.shape)} and 'max' of shape {list(high.shape)} do "
                    "not fit together",
                    places["max"],
                ) from None
            if not ordered:
                raise self._error("'min' must be less than 'max'", places["min"])


def _aligned(*arrays: Any) -> list[Any]:
    rank = max(array.ndim for array in arrays)
    return [array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays]


_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("scale", lambda x: bool(np.all(np.isfinite(x) & (x > 0))), "positive"),
    ("min", lambda x: bool(np.all(np.isfinite(x))), "finite"),
    ("max", lambda x: bool(np.all(np.isfinite(x))), "finite"),
)
