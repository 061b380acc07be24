"""Files that lie, are cut off, or point elsewhere: one clear error, never a traceback."""

import random
import resource
import struct
import sys

import numpy as np
import pytest
from tflite_file import TfliteFile

from nnef_hw.cli import main
from nnef_hw.errors import ModelError, NnefHwError, UnsupportedError, UsageError
from nnef_hw.frontend import load


def network():
    """Return a quantized convolution, a pool, a reshape by a constant, and a linear layer."""
    model = TfliteFile()
    x = model.input("x", [1, 6, 6, 2], "int8", scale=0.1, zero=3, signature=[-1, 6, 6, 2])
    weights = model.constant(
        "w", np.ones([3, 3, 3, 2], np.int8), scale=[0.1, 0.2, 0.3], zero=0, axis=0
    )
    bias = model.constant("b", np.ones(3, np.int32), scale=[0.01, 0.02, 0.03])
    y = model.op(
        "CONV_2D", [x, weights, bias], "conv;relu", [1, 6, 6, 3], "int8",
        ("Conv2DOptions", {"StrideW": 1, "StrideH": 1, "FusedActivationFunction": 1}),
        scale=0.2, zero=-128,
    )  # fmt: skip
    y = model.op(
        "MAX_POOL_2D", [y], "pool", [1, 3, 3, 3], "int8",
        ("Pool2DOptions", {"StrideW": 2, "StrideH": 2, "FilterWidth": 2, "FilterHeight": 2}),
        scale=0.2, zero=-128,
    )  # fmt: skip
    shape = model.constant("shape", np.array([1, -1], np.int32))
    y = model.op("RESHAPE", [y, shape], "flat", [1, 27], "int8", scale=0.2, zero=-128)
    rows = model.constant("rows", np.ones([4, 27], np.int8), scale=0.05)
    options = ("FullyConnectedOptions", {})
    y = model.op("FULLY_CONNECTED", [y, rows, -1], "y", [1, 4], "int8", options, scale=0.4, zero=1)
    model.output(y)
    return model


CONTENT = network().content()


def test_the_model_is_valid(read):
    assert read(network()).rounding == "tflite"


@pytest.mark.parametrize("seed", range(8))
def test_mutated_files_give_a_graph_or_an_error_of_ours(seed, tmp_path):
    rng = random.Random(seed)
    path = tmp_path / "model.tflite"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(80):
        path.write_bytes(mutated(rng))
        error = problem(path)
        assert error is None or (error.exit_status == 2 and str(path) in str(error))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # in KiB


def problem(path):
    """Return the error of ours that loading gives, None if it gives a graph."""
    try:
        load(path)
    except NnefHwError as error:
        return error
    return None


def mutated(rng):
    """Return the file with other bytes, other words, or a part of it."""
    content = bytearray(CONTENT)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(8, len(content) - 4)
        kind = rng.choice(["byte", "word", "word", "cut"])
        if kind == "byte":
            content[place] = rng.randrange(256)
        elif kind == "cut":
            return bytes(content[:place])
        else:
            place &= ~3
            small = struct.unpack_from("<i", content, place)[0]
            numbers = [0, 1, -1, 2**31 - 1, -(2**31), 1 << 20, small + 4, small - 4, small * 2]
            word = rng.choice(numbers) & 0xFFFFFFFF
            struct.pack_into("<I", content, place, word)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it has no identifier TFL3"),
        (b"PK\x03\x04 an archive", "it has no identifier TFL3"),
        (b"\x1c\0\0\0TFL3", "the file is damaged"),
        (b"\xff\xff\xff\x7fTFL3" + bytes(64), "the file is damaged"),
    ],
)
def test_other_files_are_refused(tmp_path, content, reason, capsys):
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    assert main(["inspect", str(path)]) == 2
    message = capsys.readouterr().err
    assert reason in message
    assert str(path) in message


def test_a_missing_file_is_the_users_mistake(tmp_path):
    with pytest.raises(UsageError, match="there is no model"):
        load(tmp_path / "model.tflite")


def test_the_package_to_install_is_named(tmp_path, monkeypatch):
    path = network().save(tmp_path / "model.tflite")
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(UsageError, match=r"pip install nnef-hw\[tflite\]"):
        load(path)


def of_relu(shape, data=None, **tensor):
    model = TfliteFile()
    x = model.input("x", [1, 4])
    w = model.tensor("w", shape, data=np.zeros(4, np.float32) if data is None else data, **tensor)
    model.output(model.op("ADD", [x, w], "y", [1, 4], options=("AddOptions", {})))
    return model


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (of_relu([1 << 30, 4]), "the tensor 'w' has shape"),
        (of_relu([1] * 9), "the tensor 'w' has shape"),
        (of_relu([5]), r"'w' of shape \[5\] has 16 bytes, but needs 20"),
        (of_relu([4], scale=[0.1, 0.2]), r"'w' of shape \[4\] has 2 scales along dimension 0"),
        (of_relu([4], scale=-1.0), "'w' has a scale that is not positive"),
        (of_relu([4], scale=float("nan")), "'w' has a scale that is not positive"),
        (of_relu([1, 3], np.zeros(3, np.float32)), r"operator 0, ADD 'y': .*3"),
    ],
)
def test_tensors_are_checked(model, reason, read):
    with pytest.raises(ModelError, match=reason):
        read(model)


def test_tensors_that_do_not_exist_are_refused(read):
    model = of_relu([4])
    model.operators[0][1] = [0, 77]
    with pytest.raises(ModelError, match="operator 0, ADD: an input is tensor 77, but there are 3"):
        read(model)


def test_loops_are_refused(read):
    model = of_relu([4])
    model.operators[0][1] = [0, 2]
    with pytest.raises(ModelError, match="the tensor 'y' is read before it is computed"):
        read(model)


def test_every_problem_is_reported_with_the_operator_and_what_to_do(read):
    model = TfliteFile()
    x = model.input("x", [1, 4])
    y = model.op("NON_MAX_SUPPRESSION_V4", [x], "first", [1, 4])
    z = model.op("MyOperator", [x], "second", [1, 4])
    model.output(model.op("ADD", [y, z], "sum", [1, 4], options=("AddOptions", {})))
    with pytest.raises(NnefHwError) as caught:
        read(model)
    first, second = str(caught.value).splitlines()
    assert "operator 0, NON_MAX_SUPPRESSION_V4 'first': the operator is not supported; " in first
    assert "operator 1, MyOperator 'second': the operator is not supported; replace it" in second


def test_computed_shapes_are_refused(read):
    model = TfliteFile()
    x, shape = model.input("x", [1, 4]), model.input("half", [2], "int32")
    shape = model.op("ADD", [shape, shape], "shape", [2], "int32", ("AddOptions", {}))
    model.output(model.op("RESHAPE", [x, shape], "y", [2, 2]))
    with pytest.raises(UnsupportedError, match="the shape 'shape' is computed when the network"):
        read(model)


@pytest.mark.parametrize("op", ["RESHAPE", "BROADCAST_TO"])
def test_an_input_that_says_a_shape_is_the_one_of_the_file(op, read, caplog):
    model = TfliteFile()
    x, shape = model.input("x", [1, 4]), model.input("a;b", [2], "int32")
    model.output(model.op(op, [x, shape], "y", [2, 2] if op == "RESHAPE" else [3, 4]))
    graph = read(model)
    assert graph.inputs == ("x",)
    expected = [2, 2] if op == "RESHAPE" else [3, 4]
    assert list(graph.tensor("y").shape) == expected
    assert f"input 'a' is a constant, the shape {expected} that 'y' has in the file" in caplog.text


@pytest.mark.parametrize("kind", ["other shape", "other reader", "open", "output"])
def test_an_input_that_says_more_than_a_shape_is_refused(kind, read):
    model = TfliteFile()
    x, shape = model.input("x", [1, 4]), model.input("shape", [2], "int32")
    y = model.op("RESHAPE", [x, shape], "y", [2, 2], signature=[-1, 2] if kind == "open" else None)
    model.output(y)
    if kind == "other shape":
        model.output(model.op("RESHAPE", [x, shape], "z", [4, 1]))
    elif kind == "other reader":
        model.output(model.op("ADD", [shape, shape], "z", [2], "int32", ("AddOptions", {})))
    elif kind == "output":
        model.output(shape)
    with pytest.raises(NnefHwError, match="the shape 'shape' is computed when the network"):
        read(model)


def test_open_extents_are_given(read):
    graph = read(network(), dims={"x.0": 1})
    assert graph.tensor("x").shape == (1, 6, 6, 2)
    with pytest.raises(UsageError, match="no input's shape leaves 'T' open; the open extents are"):
        read(network(), dims={"T": 3})
