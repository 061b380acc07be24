import json
import re
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_list import PassList

from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.archive.tensor_file import (
    ItemType,
    read_tensor,
    write_q4_0,
    write_tensor,
)

WHERE = Location("w.dat")
GOOD = write_tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
SUITE = PassList("dat-files")


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
    dtype = np.int64 if signed else np.uint64
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    array = np.array([lo, hi, *rng.integers(lo, hi, 9, dtype, endpoint=True)], dtype)
    data = write_tensor(array, bits=bits)

    assert len(data) == 128 + -(-11 * bits // 8)
    result = read_tensor(data, WHERE).array
    np.testing.assert_array_equal(result, array)
    assert result.dtype.itemsize * 8 < max(2 * bits, 9)


@pytest.mark.parametrize("name", SUITE.passing)
def test_files_of_other_writers_are_read(suites, name):
    folder = suites / "dat-files"
    expected = np.load(folder / name.replace(".dat", ".npy"))
    result = read_tensor((folder / name).read_bytes(), WHERE)

    assert result.array.shape == expected.shape
    np.testing.assert_array_equal(result.array, expected)


def test_every_file_of_the_suite_is_on_the_list(suites):
    entries = json.loads((suites / "dat-files" / "index.json").read_text())

    assert not SUITE.missing(entry["file"] for entry in entries)


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
        (b"", "w.dat: the tensor file has 0 bytes, fewer than its header of 128"),
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


@pytest.mark.parametrize(
    ("code", "vendor", "message"),
    [
        (0x1000, 0x5452, "strings are not supported; export the model with float32 weights"),
        (0, 0x5452, "complex numbers are not supported"),
        (7, 0x5452, "items of type 0x7 of vendor 0x5452 are not supported"),
        (0, 0x1234, "items of type 0x0 of vendor 0x1234 are not supported"),
    ],
)
def test_vendor_types_without_a_use_are_refused(code, vendor, message):
    with pytest.raises(UnsupportedError, match=message):
        read_tensor(patched(44, "IHH", 64, code, vendor), WHERE)


def test_four_surplus_bytes_of_old_writers_are_ignored(caplog):
    np.testing.assert_array_equal(
        read_tensor(GOOD + bytes(4), WHERE).array, read_tensor(GOOD, WHERE).array
    )
    assert "w.dat: ignored 4 surplus bytes" in caplog.text


def test_deprecated_sign_flag_is_obeyed():
    data = bytearray(write_tensor(np.array([255], np.uint8)))
    data[52] = 1

    assert read_tensor(bytes(data), WHERE).array.tolist() == [-1]


def old_codes(codes, bits, item_type, low, high):
    data = bytearray(write_tensor(np.array(codes, np.uint64), bits=bits))
    struct.pack_into("<HHff", data, 48, item_type, 0, low, high)
    return bytes(data)


@pytest.mark.parametrize("item_type", [2, 0x10])
def test_deprecated_linear_range_is_read(item_type):
    file = read_tensor(old_codes([0, 3, 7], 3, item_type, -1.0, 0.75), WHERE)

    assert file.array.tolist() == [0, 3, 7]
    assert file.item_type == ItemType.QUANTIZED_UNSIGNED
    assert file.quant.op == "linear_quantize"
    assert file.quant.args == {"min": -1.0, "max": 0.75, "bits": 3}


@pytest.mark.parametrize("item_type", [3, 0x11])
@pytest.mark.parametrize(
    ("low", "kind"), [(0.0, ItemType.QUANTIZED_UNSIGNED), (-4.0, ItemType.QUANTIZED_SIGNED)]
)
def test_deprecated_logarithmic_range_is_read(item_type, low, kind):
    file = read_tensor(old_codes([0, 3, 7], 3, item_type, low, 4.0), WHERE)

    assert (file.quant.op, file.quant.args) == ("logarithmic_quantize", {"max": 4.0, "bits": 3})
    assert file.item_type == kind


@pytest.mark.parametrize(
    ("item_type", "low", "high"),
    [(2, 1.0, 1.0), (2, 0.0, np.inf), (2, np.nan, 1.0), (3, -1.0, 4.0), (0x11, 0.0, 0.0)],
)
def test_deprecated_ranges_without_sense_are_refused(item_type, low, high):
    with pytest.raises(ModelError, match=r"deprecated (linear|logarithmic) range .* no sense"):
        read_tensor(old_codes([0], 3, item_type, low, high), WHERE)


@pytest.mark.parametrize("shape", [(32,), (2, 3, 5)], ids=str)
def test_shapes_that_blocks_do_not_fit_are_refused(shape):
    data = bytearray(write_tensor(np.zeros(shape, np.float32)))
    struct.pack_into("<IHH", data, 44, 0xFFFFFFFF, 0x3040, 0x5452)

    with pytest.raises(ModelError, match="cannot be cut into blocks of 32 as Q4_0 needs"):
        read_tensor(bytes(data), WHERE)


def test_q4_0_keeps_the_greatest_value_of_each_block_and_the_others_nearly(rng):
    array = rng.normal(size=(3, 2, 32)).astype(np.float32)
    array[0, 0] = 0.0
    data = write_q4_0(array)
    result = read_tensor(data, WHERE).array
    steps = np.abs(array).max(axis=2, keepdims=True) / 8

    assert len(data) == 128 + 6 * 18
    assert (np.abs(result - array) <= 1.01 * steps).all()
    peaks = np.abs(array).argmax(axis=2, keepdims=True)
    np.testing.assert_allclose(*(np.take_along_axis(x, peaks, 2) for x in (result, array)), 1e-3)
    np.testing.assert_array_equal(read_tensor(write_q4_0(result), WHERE).array, result)


@pytest.mark.parametrize("code", [0x3080, 0x3081])
def test_q8_1_is_read(rng, code):
    codes = rng.integers(-128, 128, (2, 32)).astype(np.int8)
    scales = np.array([[0.5], [0.25]], "<f2")
    sums = np.zeros((2, 1), "<f2")
    body = np.hstack([part.view(np.uint8) for part in (scales, sums, codes)]).tobytes()
    data = bytearray(write_tensor(np.zeros((2, 32), np.float32)))[:128] + body
    struct.pack_into("<I", data, 4, len(body))
    struct.pack_into("<IHH", data, 44, 0xFFFFFFFF, code, 0x5452)

    np.testing.assert_array_equal(read_tensor(bytes(data), WHERE).array, codes * scales)


def test_whole_items_are_read_without_a_copy():
    data = memoryview(write_tensor(np.zeros(1 << 20, np.float32)))
    tracemalloc.start()
    read_tensor(data, WHERE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1 << 16


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(
    patches=st.lists(st.tuples(st.integers(0, 127), st.integers(0, 255)), max_size=6),
    words=st.lists(
        st.tuples(st.integers(1, 13), st.sampled_from([0, 1, 8, 1 << 31, (1 << 32) - 1])),
        max_size=3,
    ),
    kept=st.integers(0, 300),
)
def test_lying_headers_are_errors(patches, words, kept):
    data = bytearray(write_tensor(np.arange(40, dtype=np.float32).reshape(2, 20))[:kept])
    for word, value in words:
        if 4 * word + 4 <= len(data):
            struct.pack_into("<I", data, 4 * word, value)
    for place, value in patches:
        if place < len(data):
            data[place] = value
    try:
        file = read_tensor(bytes(data), WHERE)
    except ModelError:
        return
    assert file.array.nbytes <= 64 * len(data)
