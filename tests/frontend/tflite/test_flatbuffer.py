"""What a file says by leaving fields out, and fields that the package does not give as they are."""

import re

import numpy as np
import pytest
from tflite_file import TfliteFile

from nnef_hw.errors import ModelError, NnefHwError, UnsupportedError
from nnef_hw.frontend import load
from nnef_hw.frontend.tflite.lowering.registry import known_operators


def product(op="MUL", table="MulOptions", **weights):
    model = TfliteFile()
    operands = [model.input("x", [2]), model.tensor("w", [2], **weights)]
    model.output(model.op(op, operands, "y", [2], options=(table, {})))
    return model


TWO = {"data": np.array([2, 3], np.float32)}


@pytest.mark.parametrize("old_codes", [True, False], ids=["both", "new"])
def test_the_code_of_an_operator_is_the_larger_of_two_fields(old_codes, compute):
    model = product(**TWO)
    model.old_codes = old_codes
    np.testing.assert_array_equal(compute(model, [5, 7]), [10, 21])


@pytest.mark.parametrize("op", ["MUL", "STRIDED_SLICE"])
def test_versions_that_are_not_known_are_refused(op, read):
    model = product(op, None, **TWO)
    newest = known_operators()[op].newest
    model.versions[op] = newest + 1
    reason = (
        f"operator 0, {op} 'y': the file has version {newest + 1} of the operator, the newest that "
        f"is read is {newest}; convert the model with an older TensorFlow"
    )
    with pytest.raises(UnsupportedError, match=re.escape(reason)):
        read(model)


def test_the_newest_version_is_read(read):
    model = product(**TWO)
    model.versions["MUL"] = known_operators()["MUL"].newest
    assert read(model).nodes[0].op == "mul"


def test_a_custom_operator_does_not_become_the_one_whose_name_it_has(read):
    with pytest.raises(UnsupportedError, match="custom MUL 'y': the operator is not supported"):
        read(product("custom MUL", None, **TWO))


def test_options_of_another_operator_are_refused(read):
    model = product("MUL", "GatherOptions", **TWO)
    model.operators[0][4] = {"Axis": 1}
    with pytest.raises(ModelError, match="MUL 'y': its options have no FusedActivationFunction"):
        read(model)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ({"external_buffer": 1}, "the values of the tensor 'w' are in another file"),
        ({"details": 2}, "the tensor 'w' is quantized in a way of its own"),
        ({"details": 1, "scale": 0.1}, "the tensor 'w' is quantized in a way of its own"),
        ({"is_variable": True}, "the tensor 'w' is a variable with values of its own"),
    ],
)
def test_what_other_fields_say_is_refused(weights, reason, read):
    with pytest.raises(UnsupportedError, match=reason):
        read(product(**TWO, **weights))


def test_buffer_0_is_no_value(read):
    model = product(**TWO)
    model.buffers[0] = model.buffers[1]
    model.tensors[1]["buffer"] = 0
    with pytest.raises(NnefHwError, match="the tensor 'w' is read before it is computed"):
        read(model)


def test_values_behind_the_tables_come_before_a_buffers_own(compute):
    model = product(**TWO)
    model.are_behind = True
    np.testing.assert_array_equal(compute(model, [5, 7]), [10, 21])


def test_options_behind_the_tables(compute, rng):
    model = TfliteFile()
    x = model.input("x", [1, 1, 1, 1])
    w = model.constant("w", rng.normal(size=(1, 2, 2, 1)).astype(np.float32))
    operands = [x, w, model.constant("b", np.zeros(1, np.float32))]
    options = ("custom", np.array([1, 2, 2], "<i4").tobytes())
    model.output(model.op("Convolution2DTransposeBias", operands, "y", [1, 2, 2, 1],
                          options=options))  # fmt: skip
    expected = compute(model, np.ones((1, 1, 1, 1)))
    model.are_behind = True
    np.testing.assert_array_equal(compute(model, np.ones((1, 1, 1, 1))), expected)


def test_what_would_lie_behind_the_file_is_refused(tmp_path):
    model = product(**TWO)
    model.are_behind = True
    path = tmp_path / "model.tflite"
    path.write_bytes(model.content()[:-1])
    with pytest.raises(ModelError, match="the values of the tensor 'w' lie outside of the file"):
        load(path)
