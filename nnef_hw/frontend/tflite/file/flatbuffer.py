"""TensorFlow Lite files to plain values: the only module that sees FlatBuffers; trusts nothing."""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError, UsageError
from nnef_hw.frontend.building.model_file import MAX_VOLUME, read_model_file
from nnef_hw.frontend.tflite.file.model import (
    ELEMENT_TYPES,
    ElementType,
    TfliteModel,
    TfliteOperator,
    TfliteSubgraph,
    TfliteTensor,
)

__all__ = ["read_model"]

_IDENTIFIER = b"TFL3"
_CUSTOM = 32
_NEW_CODE, _EXTERNAL_BUFFER = 3, 10
"""Numbers of fields: ``OperatorCode.builtin_code``, ``Tensor.external_buffer``."""
_NO_BUFFER = 0
_DAMAGES = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError,
            AssertionError)  # fmt: skip
"""What reading at wrong places may raise."""
_MAX_RANK = 8
_NO_OPTIONS = frozenset({"Init", "GetRootAs"})


def read_model(path: Path) -> TfliteModel:
    """Read a TensorFlow Lite file.

    Raises
    ------
    UsageError
        If there is no such file, or the ``tflite`` package is not installed.
    ModelError, UnsupportedError
        If the file is no such model, or damaged.
    """
    where = Location(str(path))
    try:
        schema = importlib.import_module("tflite")
        importlib.import_module("flatbuffers")
    except ImportError:
        raise UsageError(
            f"TensorFlow Lite models such as {str(path)!r} need the tflite package",
            remedy="pip install nnef-hw[tflite]",
        ) from None
    content = read_model_file(path, "no supported device holds such a model")
    if content[4:8] != _IDENTIFIER:
        raise ModelError(
            "the file is not a TensorFlow Lite model: it has no identifier TFL3",
            remedy="convert the model again",
            location=where,
        )
    try:
        return _Decoder(schema, content, path).model()
    except NnefHwError as error:
        raise type(error)(error.reason, remedy=error.remedy, location=where) from None
    except _DAMAGES:
        raise ModelError(
            "the file is damaged: parts of it lie outside of it",
            remedy="convert the model again",
            location=where,
        ) from None


class _Decoder:
    """Tables to plain values; what is read in all is bounded by a multiple of the file's size."""

    def __init__(self, schema: Any, content: bytes, path: Path) -> None:
        self._schema, self._content, self._path = schema, content, path
        self._left = 16 * len(content) + 4096

    def model(self) -> TfliteModel:
        """Return the whole model."""
        root = self._schema.Model.GetRootAs(self._content)
        if root.Version() != 3:
            raise UnsupportedError(f"the model has version {root.Version()} of the schema, not 3")
        self._buffers = [*self._items(root.BuffersLength, root.Buffers)]
        self._codes = [(self._operator_name(x), x.Version()) for x in
                       self._items(root.OperatorCodesLength, root.OperatorCodes)]  # fmt: skip
        subgraphs = tuple(
            self._subgraph(x) for x in self._items(root.SubgraphsLength, root.Subgraphs)
        )
        if not subgraphs:
            raise ModelError("the model has no subgraph", remedy="convert the model again")
        return TfliteModel(str(self._path), subgraphs)

    def _spend(self, count: int) -> int:
        """Return a number of items to read, if so many fit into what may still be read."""
        if not 0 <= 4 * count <= self._left:
            raise ModelError(
                "the file is damaged: its vectors have more items than it has room for",
                remedy="convert the model again",
            )
        self._left -= 4 * count
        return count

    def _items(self, length: Callable[[], int], item: Callable[[int], Any]) -> Iterator[Any]:
        for index in range(self._spend(length() + 1) - 1):
            yield item(index)

    def _integers(self, length: Callable[[], int], array: Callable[[], Any]) -> tuple[int, ...]:
        count = self._spend(length())
        return tuple(int(x) for x in array()) if count else ()

    def _text(self, value: bytes | None, what: str) -> str:
        self._spend(len(value or b"") // 4)
        try:
            return (value or b"").decode()
        except UnicodeDecodeError:
            raise ModelError(
                f"{what} is not UTF-8 text", remedy="convert the model again"
            ) from None

    def _operator_name(self, code: Any) -> str:
        """Return the name of the larger of two codes, of which files may give only one.

        The package's ``BuiltinCode`` does not tell: below 127 it gives the older field.
        """
        number = max(code.DeprecatedBuiltinCode(), _integer(code, _NEW_CODE, "Int32Flags"))
        known = _names(self._schema.BuiltinOperator)
        if number == _CUSTOM:
            name = self._text(code.CustomCode(), "the name of a custom operator") or "CUSTOM"
            return f"custom {name}" if name in known.values() else name
        return known.get(number, f"operator code {number}")

    def _subgraph(self, graph: Any) -> TfliteSubgraph:
        tensors = [
            self._tensor(index, x)
            for index, x in enumerate(self._items(graph.TensorsLength, graph.Tensors))
        ]
        inputs = self._integers(graph.InputsLength, graph.InputsAsNumpy)
        outputs = self._integers(graph.OutputsLength, graph.OutputsAsNumpy)
        operators = [
            self._operator(index, x, tensors)
            for index, x in enumerate(self._items(graph.OperatorsLength, graph.Operators))
        ]
        wrong = {*inputs, *outputs} - {*range(len(tensors))}
        if wrong:
            raise ModelError(
                f"an input or output of the model is tensor {min(wrong)}, but there are "
                f"{len(tensors)}",
                remedy="convert the model again",
            )
        name = self._text(graph.Name(), "the name of a subgraph")
        return TfliteSubgraph(name, tuple(tensors), inputs, outputs, tuple(operators))

    def _operator(self, index: int, proto: Any, tensors: list[TfliteTensor]) -> TfliteOperator:
        code = proto.OpcodeIndex()
        if not 0 <= code < len(self._codes):
            raise ModelError(
                f"operator {index} has code {code}, but the model has {len(self._codes)}",
                remedy="convert the model again",
            )
        op, version = self._codes[code]
        inputs = self._integers(proto.InputsLength, proto.InputsAsNumpy)
        outputs = self._integers(proto.OutputsLength, proto.OutputsAsNumpy)
        between = self._integers(proto.IntermediatesLength, proto.IntermediatesAsNumpy)
        places = range(len(tensors))
        kinds = (
            ("input", {*inputs} - {-1}), ("output", {*outputs}), ("intermediate", {*between} - {-1})
        )  # fmt: skip
        for kind, found in kinds:
            wrong = sorted(found - set(places))
            if wrong:
                raise ModelError(
                    f"operator {index}, {op}: an {kind} is tensor {wrong[0]}, "
                    f"but there are {len(tensors)}",
                    remedy="convert the model again",
                )
        name = tensors[outputs[0]].name if outputs else ""
        options = self._options(proto)
        return TfliteOperator(index, op, inputs, outputs, options, name, version, between)

    def _options(self, proto: Any) -> Fields:
        """Return the options by name: scalars, text, and vectors as lists.

        What a custom operator has are bytes, ``CustomOptions``.
        """
        start, size = proto.LargeCustomOptionsOffset(), proto.LargeCustomOptionsSize()
        if start > 1:
            self._spend(size // 4)
            return {"CustomOptions": self._behind(start, size, "the options of an operator")}
        if proto.CustomOptionsLength():
            items = self._integers(proto.CustomOptionsLength, proto.CustomOptionsAsNumpy)
            return {"CustomOptions": bytes(items)}
        kind = _names(self._schema.BuiltinOptions).get(proto.BuiltinOptionsType())
        table = proto.BuiltinOptions()
        found = getattr(self._schema, kind or "", None)
        if table is None or found is None or kind == "NONE":
            return {}
        options = found()
        options.Init(table.Bytes, table.Pos)
        values: dict[str, object] = {}
        methods = [key for key in vars(found) if key[0].isupper() and key not in _NO_OPTIONS]
        for key in methods:
            if key.endswith(("Length", "AsNumpy", "IsNone", "HasIdentifier")) or "RootAs" in key:
                continue
            if f"{key}AsNumpy" in methods:
                values[key] = list(
                    self._integers(
                        getattr(options, f"{key}Length"), getattr(options, f"{key}AsNumpy")
                    )
                )
            elif f"{key}Length" not in methods:
                value = getattr(options, key)()
                text = isinstance(value, bytes)
                values[key] = self._text(value, f"the option {key}") if text else value
        return values

    def _tensor(self, index: int, proto: Any) -> TfliteTensor:
        name = self._text(proto.Name(), f"the name of tensor {index}") or f"tensor_{index}"
        shape = self._integers(proto.ShapeLength, proto.ShapeAsNumpy)
        signature = self._integers(proto.ShapeSignatureLength, proto.ShapeSignatureAsNumpy)
        open_axes = {axis for axis, extent in enumerate(signature[: len(shape)]) if extent < 0}
        open_axes |= {axis for axis, extent in enumerate(shape) if extent < 0}
        shape = tuple(1 if extent < 0 else extent for extent in shape)
        code = proto.Type()
        element = ELEMENT_TYPES.get(code)
        kind = _names(self._schema.TensorType).get(code, f"type {code}").lower()
        attributes: Fields = {}
        problem: NnefHwError | None = None
        try:
            if len(shape) > _MAX_RANK or math.prod(shape) > MAX_VOLUME:
                raise ModelError(
                    f"the tensor {name!r} has shape {list(shape[:_MAX_RANK])}",
                    remedy=f"at most {_MAX_RANK} extents, whose product is at most {MAX_VOLUME}",
                )
            attributes = self._quantization(proto, name, shape)
            if element is not None:
                if proto.Sparsity() is not None:
                    raise UnsupportedError(
                        f"the tensor {name!r} is sparse", remedy="store its weights densely"
                    )
                attributes["data"] = self._data(proto, name, shape, element)
                if attributes["data"] is not None and proto.IsVariable():
                    raise UnsupportedError(
                        f"the tensor {name!r} is a variable with values of its own",
                        remedy="assign them with CALL_ONCE",
                    )
                if attributes["data"] is None and len(attributes.get("scale", ())) > 1:
                    raise UnsupportedError(
                        f"the tensor {name!r} has a scale for each channel",
                        remedy="quantize activations with one; only constants may have several",
                    )
        except NnefHwError as error:
            problem = error
        return TfliteTensor(
            index, name, element, kind, shape, frozenset(open_axes),
            is_variable=bool(proto.IsVariable()), problem=problem, **attributes,
        )  # fmt: skip

    def _quantization(self, proto: Any, name: str, shape: tuple[int, ...]) -> Fields:
        quant = proto.Quantization()
        if quant is not None and quant.DetailsType():
            # Scales and zero points are then of no account, if there are any.
            raise UnsupportedError(
                f"the tensor {name!r} is quantized in a way of its own",
                remedy="quantize it with scales and zero points",
            )
        if quant is None or not quant.ScaleLength():
            return {}
        count = self._spend(quant.ScaleLength())
        scale = np.asarray(quant.ScaleAsNumpy(), np.float64)
        zeros = np.zeros(count, np.int64)
        if quant.ZeroPointLength():
            self._spend(2 * quant.ZeroPointLength())
            zeros = np.asarray(quant.ZeroPointAsNumpy(), np.int64)
        # Converters give biases the axis of their filter.
        axis = quant.QuantizedDimension() if len(shape) > 1 else 0
        if zeros.size not in {1, count}:
            raise ModelError(f"the tensor {name!r} has {count} scales, {zeros.size} zero points")
        if count > 1 and (not 0 <= axis < len(shape) or shape[axis] != count):
            raise ModelError(
                f"the tensor {name!r} of shape {list(shape)} has {count} scales along "
                f"dimension {axis}"
            )
        if not (np.isfinite(scale) & (scale > 0)).all():
            # Converters write 0 for tensors that are not quantized in truth.
            if not scale.any():
                return {}
            raise ModelError(
                f"the tensor {name!r} has a scale that is not positive",
                remedy="quantize the model again",
            )
        return {"scale": scale, "zero_point": np.broadcast_to(zeros, scale.shape), "axis": axis}

    def _data(
        self, proto: Any, name: str, shape: tuple[int, ...], element: ElementType
    ) -> Array | None:
        """Return the items of a constant; None if the tensor has none."""
        if _integer(proto, _EXTERNAL_BUFFER, "Uint32Flags"):
            raise UnsupportedError(
                f"the values of the tensor {name!r} are in another file",
                remedy="convert the model into one file",
            )
        place = proto.Buffer()
        if not 0 <= place < len(self._buffers):
            raise ModelError(
                f"the tensor {name!r} has buffer {place}, but the model has {len(self._buffers)}"
            )
        buffer = self._buffers[place]
        if place == _NO_BUFFER:
            return None
        if buffer.Offset() > 1:
            what = f"the values of the tensor {name!r}"
            raw = np.frombuffer(self._behind(buffer.Offset(), buffer.Size(), what), np.uint8)
        elif buffer.DataLength():
            raw = np.asarray(buffer.DataAsNumpy(), np.uint8)
        else:
            return None
        volume = math.prod(shape)
        needed = (volume * element.bits + 7) // 8
        if raw.size != needed:
            raise ModelError(
                f"the tensor {name!r} of shape {list(shape)} has {raw.size} bytes, but needs "
                f"{needed}"
            )
        self._spend(raw.size // 4)
        return _unpacked(raw, element, volume).reshape(shape)

    def _behind(self, start: int, size: int, what: str) -> bytes:
        """Return bytes that lie behind the tables, which files above 2 GiB need."""
        if start + size > len(self._content):
            raise ModelError(f"{what} lie outside of the file", remedy="convert the model again")
        return self._content[start : start + size]


def _unpacked(raw: NDArray[np.uint8], element: ElementType, volume: int) -> Array:
    """Return stored items as float32, float64, int64 or bool."""
    if not element.storage:
        nibbles = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[:volume].astype(np.int64)
        return nibbles - 16 * (nibbles > 7)
    items = raw.view(element.storage)
    kinds: dict[str, type[np.generic]] = {"integer": np.int64, "logical": np.bool_}
    return np.asarray(items, kinds.get(element.dtype, f"f{max(element.bits // 8, 4)}"))


def _integer(table: Any, field: int, kind: str) -> int:
    """Return a field of a table by its number; 0 if the table does not have it.

    For fields that the package does not know, or does not give as they are.
    """
    types = importlib.import_module("flatbuffers").number_types
    place = table._tab.Offset(4 + 2 * field)
    return int(table._tab.Get(getattr(types, kind), place + table._tab.Pos)) if place else 0


@cache
def _names(kind: type) -> dict[int, str]:
    """Return the names of an enumeration of the schema by number."""
    return {value: name for name, value in vars(kind).items() if isinstance(value, int)}
