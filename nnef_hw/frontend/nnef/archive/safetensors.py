"""Tensors of ``.safetensors`` files: a JSON header, then the data of all of them."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, ModelError, UnsupportedError

__all__ = ["read_safetensors"]

_LENGTH = struct.Struct("<Q")
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2", "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
    "BOOL": "|b1",
}  # fmt: skip


def read_safetensors(data: memoryview, where: Location) -> dict[str, Array]:
    """Return the tensors by name: views of the file, 16-bit floats as float32.

    Raises
    ------
    ModelError
        If the header is damaged or contradicts the file's size.
    UnsupportedError
        If a tensor's items are of another type than NumPy's.
    """
    try:
        (length,) = _LENGTH.unpack_from(data)
        header = json.loads(bytes(data[_LENGTH.size :][:length]))
        body = data[_LENGTH.size + length :]
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _tensor(name, entry, body, where) for name, entry in entries.items()}
    except (struct.error, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"the safetensors file is damaged: {error}", remedy="get it again", location=where
        ) from None


def _tensor(name: str, entry: Any, body: memoryview, where: Location) -> Array:
    if entry["dtype"] not in _DTYPES:
        raise UnsupportedError(
            f"{name!r} holds items of type {entry['dtype']!r}, which are not supported",
            remedy="export it as F32",
            location=where,
        )
    dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(body) or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name!r} does not fit its place {begin}..{end}")
    array: Array = np.frombuffer(body[begin:end], dtype).reshape(shape)
    if entry["dtype"] == "BF16":
        array = (array.astype("<u4") << 16).view("<f4")
    elif entry["dtype"] == "F16":
        array = array.astype("<f4")
    array.flags.writeable = False
    return array
