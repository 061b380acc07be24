import re
import struct

import numpy as np
import pytest

from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.tensor_file import ItemType, read_tensor, write_tensor

WHERE = Location("w.dat")
GOOD = write_tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


def patched(offset, layout, *values):
    data = bytearray(GOOD)
    struct.pack_into(f"<{layout}", data, offset, *values)
    return bytes(data)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bool", "int8", "uint32"])
@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4), (1,) * 8], ids=str)
def test_dtypes_and_ranks_survive(rng, dtype, shape):
    array = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    result = read_tensor(write_tensor(array), WHERE).array

    assert result.shape == shape
    np.testing.assert_array_equal(result, array)
    assert not result.flags.writeable


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("bits", range(1, 65))
def test_every_integer_width_survives(rng, bits, signed):
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << min(bits, 63)) - 1)
    array = np.array([lo, hi, 0, *rng.integers(lo, hi, 8, endpoint=True)], np.int64)
    data = write_tensor(array if signed else array.astype(np.uint64), bits=bits)

    assert len(data) == 128 + -(-11 * bits // 8)
    np.testing.assert_array_equal(read_tensor(data, WHERE).array, array)


def test_odd_widths_are_packed_from_the_highest_bit():
    data = write_tensor(np.array([1, 2, 3], np.uint8), bits=4)

    assert data[128:] == b"\x12\x30"
    assert write_tensor(np.array([True, False, True]))[128:] == b"\xa0"


def test_header_is_the_specified_one():
    header = write_tensor(np.zeros((2, 3), np.int8), quantized=True)[:128]

    assert header[:4] == b"\x4e\xef\x01\x00"
    assert struct.unpack_from("<10I", header, 4) == (6, 2, 2, 3, 0, 0, 0, 0, 0, 0)
    assert struct.unpack_from("<IHH", header, 44) == (8, ItemType.QUANTIZED_SIGNED, 0)
    assert header[52:] == bytes(76)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "w.dat: the tensor file has 0 bytes, less than its header of 128"),
        (GOOD[:127], "the tensor file has 127 bytes"),
        (b"PK" + GOOD[2:], "the file begins with 50 4b, not with 4e ef"),
        (patched(2, "B", 2), "tensor file version 2.0 does not exist"),
        (patched(8, "I", 9), "rank 9 is above the 8"),
        (patched(8, "I", 1), "the header says 24 bytes, but shape [2] of 32-bit items needs 8"),
        (patched(12, "I", 1 << 31), "shape [2147483648, 3] of 32-bit items needs 25769803776"),
        (
            patched(4, "III", 4 << 28, 1, 1 << 28),
            "the header says 1073741824 bytes of data, but the file has 24; is it truncated?",
        ),
        (GOOD[:-1], "the header says 24 bytes of data, but the file has 23; is it truncated?"),
        (GOOD + b"\0", "the header says 24 bytes of data, but the file has 25"),
        (patched(48, "H", 6), "item type 6 does not exist"),
        (patched(44, "I", 24), "items of type float cannot have 24 bits"),
        (patched(44, "IH", 65, 4), "items of type signed cannot have 65 bits"),
        (patched(44, "IH", 0, 1), "items of type unsigned cannot have 0 bits"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_bad_files_are_refused(data, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        read_tensor(data, WHERE)


def test_vendor_types_are_refused():
    with pytest.raises(UnsupportedError, match="type 0x3040 of vendor 0x5452 are not supported"):
        read_tensor(patched(44, "IHH", 0xFFFFFFFF, 0x3040, 0x5452), WHERE)


def test_four_surplus_bytes_of_old_writers_are_ignored(caplog):
    np.testing.assert_array_equal(
        read_tensor(GOOD + bytes(4), WHERE).array, read_tensor(GOOD, WHERE).array
    )
    assert "w.dat: ignored 4 surplus bytes" in caplog.text


def test_deprecated_sign_flag_is_obeyed():
    data = bytearray(write_tensor(np.array([255], np.uint8)))
    data[52] = 1

    assert read_tensor(bytes(data), WHERE).array.tolist() == [-1]


def test_integers_beyond_int64_are_refused():
    with pytest.raises(UnsupportedError, match=re.escape("an integer is above 2**63 - 1")):
        read_tensor(write_tensor(np.array([1 << 63], np.uint64)), WHERE)
