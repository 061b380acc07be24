"""NNEF tensor files (``.dat``): a header of 128 bytes, then packed items in row-major order."""

from __future__ import annotations

import logging
import math
import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.archive.bits import WHOLE_BITS, pack_bits, unpack_bits
from nnef_hw.frontend.nnef.archive.block_formats import BLOCK_FORMATS, BLOCK_VENDOR, encode_q4_0
from nnef_hw.ir import Quantization

__all__ = ["ItemType", "TensorFile", "read_tensor", "write_q4_0", "write_tensor"]

logger = logging.getLogger(__name__)

_HEADER = struct.Struct("<2sBBII8IIHH32s44x")
_MAGIC = b"\x4e\xef"
_MAX_RANK = 8
_BLOCK_BITS = 0xFFFFFFFF
_OLD_SURPLUS_BYTES = 4
_OLD_LINEAR, _OLD_LOGARITHMIC = 0x10, 0x11


class ItemType(IntEnum):
    """Khronos item types."""

    FLOAT = 0
    UNSIGNED = 1
    QUANTIZED_UNSIGNED = 2
    QUANTIZED_SIGNED = 3
    SIGNED = 4
    BOOL = 5

    @property
    def is_quantized(self) -> bool:
        """Whether items are codes of real numbers."""
        return self in {ItemType.QUANTIZED_UNSIGNED, ItemType.QUANTIZED_SIGNED}


_ALLOWED_BITS = {ItemType.FLOAT: {16, 32, 64}, ItemType.BOOL: {1, 8}}
_VENDOR_ITEMS = {0: "complex numbers", 4: "complex integers", 0x1000: "strings"}


@dataclass(frozen=True, slots=True, eq=False)
class TensorFile:
    """Contents of a tensor file.

    Parameters
    ----------
    array
        Read-only; a view of the file's bytes where items are as NumPy has them. float32 or
        float64, bool, or integers: of the stored width if that is 8, 16, 32 or 64, else 64 bits.
    item_type, bits
        Item type and width as in the header; ``FLOAT`` for block formats, whose values are decoded.
    quant
        How ``array``'s codes become real numbers if the header says so, as before NNEF 1.0.3.
    """

    array: Array
    item_type: ItemType
    bits: int
    quant: Quantization | None = None


def read_tensor(data: bytes | memoryview, where: Location) -> TensorFile:
    """Decode a tensor file.

    Raises
    ------
    ModelError
        If the header contradicts itself or the file's size.
    UnsupportedError
        If the items are of a vendor's own type that has no use here.
    """
    if len(data) < _HEADER.size:
        raise ModelError(
            f"the tensor file has {len(data)} bytes, fewer than its header of {_HEADER.size}",
            remedy="is it truncated?",
            location=where,
        )
    magic, major, minor, length, rank, *fields = _HEADER.unpack_from(data)
    extents, (bits, code, vendor, parameters) = fields[:_MAX_RANK], fields[_MAX_RANK:]
    if magic != _MAGIC:
        raise ModelError(
            f"the file begins with {magic.hex(' ')}, not with 4e ef as tensor files do",
            location=where,
        )
    if (major, minor) != (1, 0):
        raise ModelError(f"tensor file version {major}.{minor} does not exist", location=where)
    if rank > _MAX_RANK:
        raise ModelError(f"rank {rank} is above the {_MAX_RANK} of tensor files", location=where)
    shape = tuple(extents[:rank])
    body = memoryview(data)[_HEADER.size :]
    if vendor == BLOCK_VENDOR and code in BLOCK_FORMATS:
        blocks = BLOCK_FORMATS[code]
        items = f"shape {list(shape)} of {blocks.name} items"
        body = _trimmed(body, length, blocks.check(shape, where), items, where)
        array: Array = blocks.read(body, shape)
        array.flags.writeable = False
        return TensorFile(array, ItemType.FLOAT, bits)
    item_type, quant = _item_type(code, vendor, bits, parameters, where)
    items = f"shape {list(shape)} of {bits}-bit items"
    body = _trimmed(body, length, -(-math.prod(shape) * bits // 8), items, where)
    array = _decode(body, math.prod(shape), item_type, bits).reshape(shape)
    array.flags.writeable = False
    return TensorFile(array, item_type, bits, quant)


def write_tensor(array: Array, *, bits: int | None = None, quantized: bool = False) -> bytes:
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
    if array.dtype.kind == "f":
        item_type, bits = ItemType.FLOAT, array.dtype.itemsize * 8
        body = array.astype(array.dtype.newbyteorder("<")).tobytes()
    elif array.dtype.kind == "b":
        item_type, bits = ItemType.BOOL, 1
        body = np.packbits(array.reshape(-1)).tobytes()
    elif array.dtype.kind in "iu":
        signed = array.dtype.kind == "i"
        item_type = ItemType.SIGNED if signed else ItemType.UNSIGNED
        if quantized:
            item_type = ItemType.QUANTIZED_SIGNED if signed else ItemType.QUANTIZED_UNSIGNED
        bits = array.dtype.itemsize * 8 if bits is None else bits
        body = pack_bits(array, bits)
    else:
        raise ValueError(f"tensor files cannot hold items of {array.dtype}")
    return _header(array.shape, len(body), bits, item_type, 0) + body


def write_q4_0(array: Array) -> bytes:
    """Encode real numbers [N, ...] as a tensor file of Q4_0 blocks, 4.5 bits each."""
    body = encode_q4_0(array)
    return _header(array.shape, len(body), _BLOCK_BITS, 0x3040, BLOCK_VENDOR) + body


def _header(shape: tuple[int, ...], length: int, bits: int, code: int, vendor: int) -> bytes:
    if len(shape) > _MAX_RANK:
        raise ValueError(f"tensor files have at most {_MAX_RANK} dimensions, not {len(shape)}")
    extents = [*shape, *[0] * (_MAX_RANK - len(shape))]
    return _HEADER.pack(_MAGIC, 1, 0, length, len(shape), *extents, bits, code, vendor, b"")


def _trimmed(body: memoryview, length: int, needed: int, items: str, where: Location) -> memoryview:
    """Return the data without the surplus of old writers, its length checked."""
    if length != needed:
        raise ModelError(
            f"the header says {length} bytes, but {items} needs {needed}",
            location=where,
        )
    surplus = len(body) - length
    if surplus == _OLD_SURPLUS_BYTES:
        logger.warning("%s: ignored 4 surplus bytes that old NNEF tools write", where)
    elif surplus:
        raise ModelError(
            f"the header says {length} bytes of data, but the file has {len(body)}",
            remedy="is it truncated?" if surplus < 0 else None,
            location=where,
        )
    return body[:length]


def _item_type(
    code: int, vendor: int, bits: int, parameters: bytes, where: Location
) -> tuple[ItemType, Quantization | None]:
    if vendor:
        block_format = _VENDOR_ITEMS.get(code) if vendor == BLOCK_VENDOR else None
        what = block_format or f"items of type 0x{code:x} of vendor 0x{vendor:x}"
        raise UnsupportedError(
            f"{what} are not supported",
            remedy="export the model with float32 weights",
            location=where,
        )
    try:
        item_type = {
            _OLD_LINEAR: ItemType.QUANTIZED_UNSIGNED,
            _OLD_LOGARITHMIC: ItemType.QUANTIZED_SIGNED,
        }.get(code) or ItemType(code)
    except ValueError:
        raise ModelError(f"item type {code} does not exist", location=where) from None
    if bits not in _ALLOWED_BITS.get(item_type, range(1, 65)):
        raise ModelError(
            f"items of type {item_type.name.lower()} cannot have {bits} bits", location=where
        )
    if item_type == ItemType.UNSIGNED and any(parameters[:4]):
        return ItemType.SIGNED, None  # deprecated form
    if item_type.is_quantized and (any(parameters[:8]) or code > max(ItemType)):
        return _old_codes(item_type, bits, parameters, where)
    return item_type, None


def _old_codes(
    item_type: ItemType, bits: int, parameters: bytes, where: Location
) -> tuple[ItemType, Quantization]:
    """Read the range that headers held until NNEF 1.0.3: codes are 0..2**bits - 1 in it."""
    low, high = struct.unpack_from("<ff", parameters)
    finite = math.isfinite(low) and math.isfinite(high)
    if item_type == ItemType.QUANTIZED_UNSIGNED and finite and low < high:
        args = {"min": low, "max": high, "bits": bits}
        return ItemType.QUANTIZED_UNSIGNED, Quantization("linear_quantize", args)
    if item_type == ItemType.QUANTIZED_SIGNED and finite and high > 0 and low in {0, -high}:
        # The sign bit, if there is one, is the first bit of a code, not a two's complement.
        kind = ItemType.QUANTIZED_SIGNED if low else ItemType.QUANTIZED_UNSIGNED
        return kind, Quantization("logarithmic_quantize", {"max": high, "bits": bits})
    kind_of_range = "linear" if item_type == ItemType.QUANTIZED_UNSIGNED else "logarithmic"
    raise ModelError(
        f"the header's deprecated {kind_of_range} range {low:g}..{high:g} makes no sense",
        remedy="describe the quantization in graph.quant",
        location=where,
    )


def _decode(body: memoryview, count: int, item_type: ItemType, bits: int) -> Array:
    if item_type == ItemType.FLOAT:
        array: Array = np.frombuffer(body, f"<f{bits // 8}")
        return array.astype(np.float32) if bits == 16 else array
    if item_type == ItemType.BOOL and bits == 1:
        return np.unpackbits(np.frombuffer(body, np.uint8), count=count).astype(np.bool_)
    if item_type == ItemType.BOOL:
        return np.frombuffer(body, np.uint8).astype(np.bool_)
    signed = item_type in {ItemType.SIGNED, ItemType.QUANTIZED_SIGNED}
    if bits in WHOLE_BITS:
        return np.frombuffer(body, f"<{'i' if signed else 'u'}{bits // 8}")
    return unpack_bits(body, count, bits, signed=signed)
