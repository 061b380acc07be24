"""TensorProto to arrays: every storage form, external files included; nothing is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.frontend.building.model_file import MAX_VOLUME
from nnef_hw.frontend.onnx.file.model import ELEMENT_TYPES, Constant, ElementType, as_data

if TYPE_CHECKING:
    from onnx import SparseTensorProto, TensorProto

__all__ = [
    "MAX_GENERATED",
    "decode_sparse_tensor",
    "decode_tensor",
    "is_possible",
    "type_name",
]


MAX_GENERATED = 1 << 24
"""Elements of a constant that a few numbers describe."""

_RAW = {
    "float": "<f4", "double": "<f8", "float16": "<f2", "bfloat16": "<u2", "bool": "|u1",
    "uint8": "|u1", "int8": "|i1", "uint16": "<u2", "int16": "<i2", "uint32": "<u4",
    "int32": "<i4", "uint64": "<u8", "int64": "<i8",
}  # fmt: skip
_EXTERNAL = 1


def is_possible(shape: Sequence[int], most: int = MAX_VOLUME) -> bool:
    """Whether extents are not negative, and neither one nor their product is too large."""
    return all(0 <= extent <= most for extent in shape) and math.prod(shape) <= most


def decode_tensor(proto: TensorProto, folder: Path) -> Constant:
    """Return a tensor's values.

    Parameters
    ----------
    folder
        Folder of the model, which must contain the external data.

    Raises
    ------
    ModelError
        If the data do not fit the shape, or are outside the folder.
    UnsupportedError
        If tensors of its element type cannot be represented.
    """
    name = proto.name or "?"
    element = ELEMENT_TYPES.get(proto.data_type)
    if element is None:
        raise UnsupportedError(f"the tensor {name!r} has the {type_name(proto.data_type)}")
    shape = tuple(proto.dims)
    volume = math.prod(shape)
    if not is_possible(shape):
        raise ModelError(
            f"the tensor {name!r} has shape {list(shape)}",
            remedy=f"extents must not be negative, and their product at most {MAX_VOLUME}",
        )
    if proto.HasField("segment"):
        raise UnsupportedError(f"the tensor {name!r} is stored in segments")
    if proto.data_location == _EXTERNAL:
        values = _unpack(_read_external(proto, name, folder, volume, element), element, volume)
    elif proto.HasField("raw_data"):
        values = _unpack(proto.raw_data, element, volume)
    else:
        values = _typed(proto, element, volume)
    if values is None or values.size != volume:
        raise ModelError(
            f"the data of the tensor {name!r} do not have the {volume} {element.name} elements "
            f"of shape {list(shape)}",
            remedy="the file is damaged; export it again",
        )
    if element.name == "uint64" and volume and int(values.max()) >= 1 << 63:
        raise UnsupportedError(
            f"the tensor {name!r} holds {values.max()}, which needs more than 64 signed bits"
        )
    return Constant(as_data(values, element).reshape(shape), element)


def decode_sparse_tensor(proto: SparseTensorProto, folder: Path) -> Constant:
    """Return the dense values of a sparse tensor; see :func:`decode_tensor`."""
    values = decode_tensor(proto.values, folder)
    indices = decode_tensor(proto.indices, folder).data
    name, shape = proto.values.name or "?", tuple(proto.dims)
    if not is_possible(shape):
        raise ModelError(f"the sparse tensor {name!r} has shape {list(shape)}")
    if indices.ndim == 2 and indices.shape[1] == len(shape) and math.prod(shape):
        inside = ((indices >= 0) & (indices < shape)).all()
        indices = np.ravel_multi_index(tuple(indices.T), shape) if inside else np.array([-1])
    count = values.data.size
    if indices.shape != (count,) or any((indices < 0) | (indices >= math.prod(shape))):
        raise ModelError(
            f"the indices of the sparse tensor {name!r} do not fit its {count} values and "
            f"shape {list(shape)}",
            remedy="the file is damaged; export it again",
        )
    data = np.zeros(math.prod(shape), values.data.dtype)
    data[indices] = values.data.reshape(-1)
    return Constant(data.reshape(shape), values.type)


def type_name(code: int) -> str:
    """Return the name in messages of an element type that is not supported."""
    from onnx import TensorProto

    if code in TensorProto.DataType.values():
        return f"element type {TensorProto.DataType.Name(code).lower()}, which is not supported"
    return f"element type {code}, which does not exist"


def _unpack(raw: bytes, element: ElementType, volume: int) -> Array | None:
    """Return the numbers in little-endian bytes; None if there are too few or too many."""
    if len(raw) != _size(element, volume):
        return None
    if element.bits < 8:
        return _unpack_bits(np.frombuffer(raw, np.uint8), element, volume)
    values = np.frombuffer(raw, _RAW[element.name])
    return _widen(values) if element.name == "bfloat16" else values


def _size(element: ElementType, volume: int) -> int:
    return -(-volume * element.bits // 8)


def _unpack_bits(packed: Array, element: ElementType, volume: int) -> Array:
    """Return numbers of 2 or 4 bits: the first in the lowest bits of its byte."""
    shifts = np.arange(0, 8, element.bits)
    codes = (packed[:, None].astype(np.int64) >> shifts) & ((1 << element.bits) - 1)
    return element.wrap(codes.reshape(-1)[:volume])


def _widen(values: Array) -> Array:
    """Return bfloat16 numbers, given by their bits, as float32."""
    return (values.astype(np.uint32) << 16).view(np.float32)


def _typed(proto: TensorProto, element: ElementType, volume: int) -> Array | None:
    """Return the numbers of the repeated field for this type."""
    fields: dict[str, Callable[[], Array]] = {
        "float": lambda: np.array(proto.float_data, np.float32),
        "double": lambda: np.array(proto.double_data, np.float64),
        "int64": lambda: np.array(proto.int64_data, np.int64),
        "uint64": lambda: np.array(proto.uint64_data, np.uint64),
        "uint32": lambda: np.array(proto.uint64_data, np.uint64),
    }
    if element.name in fields:
        return fields[element.name]()
    codes = np.array(proto.int32_data, np.int64)
    if element.bits < 8:
        fits = len(codes) == _size(element, volume)
        return _unpack_bits(codes & 255, element, volume) if fits else None
    if element.name == "float16":
        return (codes & 0xFFFF).astype(np.uint16).view(np.float16)
    return _widen(codes & 0xFFFF) if element.name == "bfloat16" else codes


def _read_external(
    proto: TensorProto, name: str, folder: Path, volume: int, element: ElementType
) -> bytes:
    """Return the bytes of a tensor that another file of the model's folder holds."""
    keys = {entry.key: entry.value for entry in proto.external_data}
    location = keys.get("location", "")
    where = f"the external data of the tensor {name!r}"
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    if not location or posix.is_absolute() or windows.anchor or ".." in windows.parts:
        raise ModelError(
            f"{where} are at {location!r}", remedy="they must be in the folder of the model"
        )
    try:
        path, root = (folder / location).resolve(), folder.resolve()
        if not path.is_relative_to(root):
            raise ModelError(
                f"{where} are at {location!r}, a link to {str(path)!r}",
                remedy="they must be in the folder of the model",
            )
        if not path.is_file():
            raise ModelError(
                f"{where} are missing: there is no file {location!r}",
                remedy="put it beside the model",
            )
        offset, length = _number(keys, "offset", 0), _number(keys, "length", None)
        needed = _size(element, volume)
        if length not in {None, needed} or offset is None:
            raise ModelError(f"{where} have {length} bytes, but its shape needs {needed}")
        if path.stat().st_size < offset + needed:
            raise ModelError(f"{where} reach beyond the end of {location!r}")
        with path.open("rb") as file:
            file.seek(offset)
            content: bytes = file.read(needed)
        return content
    except (OSError, ValueError) as error:
        raise ModelError(f"{where} at {location!r} cannot be read: {error}") from None


def _number(keys: dict[str, str], key: str, default: int | None) -> int | None:
    value = keys.get(key)
    if value is None:
        return default
    if not value.isdecimal():
        raise ValueError(f"{key} is {value!r}")
    return int(value)
