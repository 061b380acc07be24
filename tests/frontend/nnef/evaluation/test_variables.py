"""Where the data of variables come from, and what of them is refused."""

import json
import re
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.archive.archive import open_archive
from nnef_hw.frontend.nnef.archive.safetensors import read_safetensors
from nnef_hw.frontend.nnef.archive.tensor_file import write_q4_0, write_tensor
from nnef_hw.frontend.nnef.evaluation.variables import VariableReader
from nnef_hw.frontend.shapes import Call
from nnef_hw.ir import Tensor

WHERE = Location("m.safetensors")


def safetensors(**entries):
    """Write (dtype, shape, bytes) by name."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, data) in entries.items():
        place = [len(body), len(body) + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": place}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


@pytest.fixture
def read(tmp_path):
    """Read one variable from a folder of files."""

    def read(files, *, label="v", shape=(2,), dtype="scalar", tract=False):
        (tmp_path / "graph.nnef").write_text("")
        for name, data in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / name).write_bytes(data)
        call = Call("variable", "t", (), {"shape": list(shape), "label": label}, (dtype,))
        reader = VariableReader(open_archive(tmp_path), tract=tract)
        return reader.read(call, Tensor("t", shape, dtype))

    return read


def stored(*values, quantized=False, dtype=np.float32):
    return write_tensor(np.array(values, dtype), quantized=quantized)


@pytest.mark.parametrize("label", ["a/v", "a\\v", "/a/v"])
def test_labels_are_paths(read, label):
    tensor = read({"a/v.dat": stored(1, 2)}, label=label)

    assert tensor.data.tolist() == [1, 2]
    assert tensor.label == label


def test_labels_of_tract_hold_any_character(read):
    files = {"a b:0.dat": stored(1, 2)}

    assert read(files, label="a b:0", tract=True).data.tolist() == [1, 2]
    with pytest.raises(ModelError, match=re.escape("the label 'a b:0' is not a valid name")):
        read(files, label="a b:0")


@pytest.mark.parametrize(
    ("data", "declared", "dtype"),
    [
        (stored(1, 2), "scalar", "scalar"),
        (stored(1, 2, dtype=np.int32), "scalar", "integer"),
        (stored(1, 2, dtype=np.int8, quantized=True), "scalar", "integer"),
        (stored(1, 0, dtype=np.bool_), "scalar", "logical"),
        (stored(1, 2), "integer", "scalar"),
    ],
    ids=["float", "integer", "codes", "logical", "integer declared"],
)
def test_tracts_files_decide_on_the_data_type(read, data, declared, dtype):
    tensor = read({"v.dat": data}, dtype=declared, tract=True)

    assert tensor.dtype == dtype
    assert tensor.data.dtype.kind == {"scalar": "f", "integer": "i", "logical": "b"}[dtype]


def test_codes_that_nothing_explains_are_integers_or_refused(read):
    files = {"v.dat": stored(1, 255, dtype=np.uint8, quantized=True)}

    assert read(files, dtype="integer").data.tolist() == [1, 255]
    with pytest.raises(ModelError, match=re.escape('add a line to graph.quant: "t": zero_point')):
        read(files)


@pytest.mark.parametrize("tract", [False, True])
def test_numbers_that_are_none_are_refused(read, tract):
    with pytest.raises(ModelError, match=re.escape("v.dat holds nan at [1]")):
        read({"v.dat": stored(1, np.nan)}, tract=tract)


@pytest.mark.parametrize("tract", [False, True])
def test_infinity_is_a_number(read, tract):
    files = {"v.dat": stored(0, -np.inf)}

    assert read(files, tract=tract).data.tolist() == [0, -np.inf]


def test_integers_beyond_int64_are_refused(read):
    with pytest.raises(UnsupportedError, match=re.escape("an integer is above 2**63 - 1")):
        read({"v.dat": stored(0, 1 << 63, dtype=np.uint64)}, dtype="integer")


def test_blocks_are_scalars(read, rng):
    array = rng.normal(size=(3, 32)).astype(np.float32)
    tensor = read({"v.dat": write_q4_0(array)}, shape=(3, 32))

    np.testing.assert_allclose(tensor.data, array, atol=0.4)


def test_safetensors_stand_in_for_missing_files(read):
    files = {
        "m.safetensors": safetensors(v=("F32", [2], np.array([1, 2], "<f4").tobytes())),
        "w.dat": stored(3, 4),
    }

    assert read(files).data.tolist() == [1, 2]
    assert read(files, label="w").data.tolist() == [3, 4]
    with pytest.raises(ModelError, match=re.escape("the model has no file 'x.dat'")):
        read(files, label="x")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("F64", "<f8"), ("F32", "<f4"), ("F16", "<f2"), ("I64", "<i8"), ("U8", "u1"), ("BOOL", "?")],
)
def test_safetensors_of_every_dtype_are_read(name, dtype):
    array = np.array([[0, 1, 1]]).astype(dtype)
    found = read_safetensors(memoryview(safetensors(t=(name, [1, 3], array.tobytes()))), WHERE)

    np.testing.assert_array_equal(found["t"], array)
    assert not found["t"].flags.writeable


def test_short_floats_of_safetensors_are_widened():
    bits = np.array([1.5, -2.0], "<f4").view("<u4") >> 16
    data = safetensors(t=("BF16", [2], bits.astype("<u2").tobytes()))

    assert read_safetensors(memoryview(data), WHERE)["t"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the safetensors file is damaged"),
        (struct.pack("<Q", 1 << 60), "the safetensors file is damaged"),
        (struct.pack("<Q", 2) + b"[]", "the safetensors file is damaged"),
        (safetensors(t=("F32", [3], bytes(8))), "'t' does not fit its place 0..8"),
        (safetensors(t=("F32", [-1, -2], bytes(8))), "the safetensors file is damaged"),
        (safetensors(t=("F8_E4M3", [8], bytes(8))), "'t' holds items of type 'F8_E4M3'"),
        (safetensors(t=("F32", [2], bytes(8)))[:-1], "'t' does not fit its place 0..8"),
    ],
)
def test_bad_safetensors_are_refused(data, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        read_safetensors(memoryview(data), WHERE)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(0, 150), st.integers(0, 255)), max_size=5))
def test_damaged_safetensors_never_crash(patches):
    data = bytearray(safetensors(t=("F32", [2, 2], bytes(16)), u=("I8", [3], bytes(3))))
    for place, value in patches:
        data[place % len(data)] = value
    try:
        found = read_safetensors(memoryview(bytes(data)), WHERE)
    except ModelError:
        return
    assert sum(array.nbytes for array in found.values()) <= 2 * len(data)
