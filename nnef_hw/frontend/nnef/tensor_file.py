"""NNEF tensor files (``.dat``): a header of 128 bytes, then packed items in row-major order."""

from __future__ import annotations

import logging
import math
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import Location, ModelError, UnsupportedError

__all__ = ["ItemType", "TensorFile", "read_tensor", "write_tensor"]

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<2sBBII8IIHH32s44x")
_MAGIC = b"\x4e\xef"
_MAX_RANK = 8
_WHOLE_BITS = {8, 16, 32, 64}
_OLD_SURPLUS_BYTES = 4


class ItemType(IntEnum):
    """Khronos item types."""

    FLOAT = 0
    UNSIGNED = 1
    QUANTIZED_UNSIGNED = 2
    QUANTIZED_SIGNED = 3
    SIGNED = 4
    BOOL = 5


@dataclass(frozen=True, slots=True, eq=False)
class TensorFile:
    """Contents of a tensor file.

    Parameters
    ----------
    array
        float32, float64, int64 or bool; read-only.
    item_type, bits
        As in the header.
    """

    array: NDArray[Any]
    item_type: ItemType
    bits: int


def read_tensor(data: bytes, where: Location) -> TensorFile:
    """Decode a tensor file.

    Raises
    ------
    ModelError
        If the header contradicts itself or the file's size.
    UnsupportedError
        If the items are of a vendor's own type.
    """
    if len(data) < _HEADER.size:
        raise ModelError(
            f"the tensor file has {len(data)} bytes, less than its header of {_HEADER.size}",
            remedy="is it truncated?",
            location=where,
        )
    magic, major, minor, length, rank, *rest = _HEADER.unpack_from(data)
    extents, (bits, code, vendor, parameters) = rest[:_MAX_RANK], rest[_MAX_RANK:]
    if magic != _MAGIC:
        raise ModelError(
            f"the file begins with {magic.hex(' ')}, not with 4e ef as tensor files do",
            location=where,
        )
    if (major, minor) != (1, 0):
        raise ModelError(f"tensor file version {major}.{minor} does not exist", location=where)
    if rank > _MAX_RANK:
        raise ModelError(f"rank {rank} is above the {_MAX_RANK} of tensor files", location=where)
    item_type = _item_type(code, vendor, bits, where)
    shape = tuple(extents[:rank])
    count = math.prod(shape)
    if length != -(-count * bits // 8):
        raise ModelError(
            f"the header says {length} bytes, but shape {list(shape)} of {bits}-bit items "
            f"needs {-(-count * bits // 8)}",
            location=where,
        )
    surplus = len(data) - _HEADER.size - length
    if surplus == _OLD_SURPLUS_BYTES:
        logger.warning("%s: ignored 4 surplus bytes that old NNEF tools write", where)
    elif surplus:
        raise ModelError(
            f"the header says {length} bytes of data, but the file has {len(data) - _HEADER.size}",
            remedy="is it truncated?" if surplus < 0 else None,
            location=where,
        )
    if item_type == ItemType.UNSIGNED and any(parameters[:4]):
        item_type = ItemType.SIGNED  # deprecated way of saying so
    body = data[_HEADER.size : _HEADER.size + length]
    array = _decode(body, count, item_type, bits, where).reshape(shape)
    array.flags.writeable = False
    return TensorFile(array, item_type, bits)


def write_tensor(array: NDArray[Any], *, bits: int | None = None, quantized: bool = False) -> bytes:
    """Encode a tensor file.

    Parameters
    ----------
    array
        Floats, integers or bools of at most 8 dimensions.
    bits
        Width of an integer item, 1..64; by default that of the dtype. It is not checked that the
        values fit.
    quantized
        Integers are codes of real numbers.
    """
    if array.ndim > _MAX_RANK:
        raise ValueError(f"tensor files have at most {_MAX_RANK} dimensions, not {array.ndim}")
    little = array.dtype.newbyteorder("<")
    if array.dtype.kind == "f":
        item_type, bits = ItemType.FLOAT, array.dtype.itemsize * 8
        body = array.astype(little).tobytes()
    elif array.dtype.kind == "b":
        item_type, bits = ItemType.BOOL, 1
        body = np.packbits(array.reshape(-1)).tobytes()
    elif array.dtype.kind in "iu":
        signed = array.dtype.kind == "i"
        item_type = ItemType.SIGNED if signed else ItemType.UNSIGNED
        if quantized:
            item_type = ItemType.QUANTIZED_SIGNED if signed else ItemType.QUANTIZED_UNSIGNED
        bits = array.dtype.itemsize * 8 if bits is None else bits
        body = _pack(array, bits)
    else:
        raise ValueError(f"tensor files cannot hold items of {array.dtype}")
    extents = [*array.shape, *[0] * (_MAX_RANK - array.ndim)]
    header = _HEADER.pack(_MAGIC, 1, 0, len(body), array.ndim, *extents, bits, item_type, 0, b"")
    return header + body


def _item_type(code: int, vendor: int, bits: int, where: Location) -> ItemType:
    if vendor:
        raise UnsupportedError(
            f"items of type 0x{code:x} of vendor 0x{vendor:x} are not supported",
            remedy="export the model with float32 weights",
            location=where,
        )
    try:
        item_type = ItemType(code)
    except ValueError:
        raise ModelError(f"item type {code} does not exist", location=where) from None
    allowed = {ItemType.FLOAT: {16, 32, 64}, ItemType.BOOL: {1, 8}}.get(item_type, range(1, 65))
    if bits not in allowed:
        raise ModelError(
            f"items of type {item_type.name.lower()} cannot have {bits} bits", location=where
        )
    return item_type


def _decode(
    body: bytes, count: int, item_type: ItemType, bits: int, where: Location
) -> NDArray[Any]:
    if item_type == ItemType.FLOAT:
        dtype = np.float64 if bits == 64 else np.float32
        return np.frombuffer(body, f"<f{bits // 8}").astype(dtype)
    if item_type == ItemType.BOOL and bits == 1:
        return np.unpackbits(np.frombuffer(body, np.uint8), count=count).astype(np.bool_)
    if item_type == ItemType.BOOL:
        return np.frombuffer(body, np.uint8).astype(np.bool_)
    signed = item_type in {ItemType.SIGNED, ItemType.QUANTIZED_SIGNED}
    if bits in _WHOLE_BITS:
        array = np.frombuffer(body, f"<{'i' if signed else 'u'}{bits // 8}")
        if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
            raise UnsupportedError("an integer is above 2**63 - 1", location=where)
        return array.astype(np.int64)
    return _unpack(body, count, bits, signed=signed)


def _pack(array: NDArray[Any], bits: int) -> bytes:
    if not 1 <= bits <= 64:
        raise ValueError(f"items of tensor files have 1..64 bits, not {bits}")
    if bits in _WHOLE_BITS:
        return array.astype(f"<{array.dtype.kind}{bits // 8}").tobytes()
    shifts = np.arange(bits - 1, -1, -1)
    digits = (array.astype(np.int64).reshape(-1, 1) >> shifts) & 1
    return np.packbits(digits.astype(np.uint8).reshape(-1)).tobytes()


def _unpack(body: bytes, count: int, bits: int, *, signed: bool) -> NDArray[np.int64]:
    digits = np.unpackbits(np.frombuffer(body, np.uint8), count=count * bits).reshape(count, bits)
    values = np.zeros(count, np.int64)
    for column in digits.T:
        values = (values << 1) | column
    if signed:
        values -= digits[:, 0].astype(np.int64) << bits
    return values
