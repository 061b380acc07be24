"""Every operator on real numbers: what TensorFlow Lite's reference kernels give."""

import numpy as np
import pytest
from tflite_cases import RESULTS, operator_cases
from tflite_file import TfliteFile

from nnef_hw.errors import NnefHwError
from nnef_hw.frontend.tflite.lowering.registry import known_operators
from nnef_hw.reference import run_float

CASES = operator_cases()
ELSEWHERE = {
    "BROADCAST_TO", "CAST", "CEIL", "ELU", "FAKE_QUANT", "FILL", "LOGICAL_AND", "LOGICAL_NOT",
    "LOGICAL_OR", "QUANTIZE", "RANGE", "RANK", "REDUCE_ALL", "REDUCE_ANY", "ROUND",
    "ASSIGN_VARIABLE", "BATCH_TO_SPACE_ND", "CALL_ONCE", "Convolution2DTransposeBias",
    "READ_VARIABLE", "SPACE_TO_BATCH_ND", "VAR_HANDLE", "WHILE",
}  # fmt: skip
"""Operators that the reference kernels lack or that the tests below or of codes compare."""


@pytest.fixture(scope="module")
def results():
    with np.load(RESULTS) as stored:
        return dict(stored)


@pytest.mark.parametrize("name", CASES)
def test_operators_give_tensorflow_lites_results(name, read, compute, results):
    case = CASES[name]
    found = compute(case.model, *case.inputs)
    found = found if isinstance(found, list) else [found]
    for index, values in enumerate(found):
        expected = results[f"{name}/{index}"]
        assert values.shape == expected.shape
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


def test_every_operator_is_compared():
    compared = {op for case in CASES.values() for op in case.model.codes}
    assert compared | ELSEWHERE == {*known_operators()}


def one(op, x, shape, *constants, dtype="float32", options=()):
    model = TfliteFile()
    inputs = [model.input("x", x.shape, x.dtype.name)]
    inputs += [model.constant(f"c{n}", value) for n, value in enumerate(constants)]
    model.output(model.op(op, inputs, "y", shape, dtype, options))
    return model


NOISE = np.random.default_rng(4).normal(0, 2, (2, 3)).astype(np.float32)
TRUTH = NOISE > 0


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("CEIL", np.ceil),
        ("ROUND", np.rint),
        ("ELU", lambda x: np.where(x > 0, x, np.expm1(x))),
    ],
)
def test_functions_without_a_reference_kernel(op, function, compute):
    found = compute(one(op, NOISE, [2, 3]), NOISE)
    np.testing.assert_allclose(found, function(NOISE), rtol=1e-5)


def test_casts_cut_fractions_off(compute):
    model = one("CAST", NOISE, [2, 3], dtype="int32", options=("CastOptions", {"OutDataType": 2}))
    np.testing.assert_array_equal(compute(model, NOISE), np.trunc(NOISE))


def test_training_ranges_limit(compute):
    options = ("FakeQuantOptions", {"Min": -1.0, "Max": 2.0, "NumBits": 8})
    found = compute(one("FAKE_QUANT", NOISE, [2, 3], options=options), NOISE)
    np.testing.assert_allclose(found, np.clip(NOISE, -1, 2), rtol=1e-6)


@pytest.mark.parametrize(("op", "function"), [("LOGICAL_AND", np.logical_and),
                                              ("LOGICAL_OR", np.logical_or)])  # fmt: skip
def test_pairs_of_truth_values(op, function, compute):
    other = np.array([True, False, True])
    found = compute(one(op, TRUTH, [2, 3], other, dtype="bool"), TRUTH)
    np.testing.assert_array_equal(found, function(TRUTH, other))


def test_truth_values_are_negated(compute):
    found = compute(one("LOGICAL_NOT", TRUTH, [2, 3], dtype="bool"), TRUTH)
    np.testing.assert_array_equal(found, ~TRUTH)


@pytest.mark.parametrize(("op", "function"), [("REDUCE_ALL", np.all), ("REDUCE_ANY", np.any)])
def test_reductions_of_truth_values(op, function, compute):
    axis, options = np.array([1], np.int32), ("ReducerOptions", {"KeepDims": False})
    found = compute(one(op, TRUTH, [2], axis, dtype="bool", options=options), TRUTH)
    np.testing.assert_array_equal(found, function(TRUTH, axis=1))


def test_shapes_are_broadcast_to(compute):
    found = compute(one("BROADCAST_TO", NOISE, [4, 2, 3], np.array([4, 2, 3], np.int32)), NOISE)
    np.testing.assert_allclose(found, np.broadcast_to(NOISE, (4, 2, 3)))


@pytest.mark.parametrize(("begin", "count"), [(1, 1), (-2, 1), (-2, 2), (-2, 3)])
def test_ends_of_slices_are_counts_where_options_say_so(begin, count, compute):
    numbers = [np.array(pair, np.int32) for pair in ([0, begin], [2, count], [1, 1])]
    options = ("StridedSliceOptions", {"Offset": True})
    expected = NOISE[:, begin:][:, :count]
    found = compute(one("STRIDED_SLICE", NOISE, expected.shape, *numbers, options=options), NOISE)
    np.testing.assert_array_equal(found, expected)


def test_constants_are_made_of_shapes(compute):
    """Of rank, range and filling: arange(0, 4, rank) plus five twos."""
    model = TfliteFile()
    x = model.input("x", [2, 2])
    rank = model.op("RANK", [x], "rank", [], "int32")
    bounds = [model.constant(f"n{n}", np.array(n, np.int32)) for n in (0, 4)]
    steps = model.op("RANGE", [*bounds, rank], "steps", [2], "int32")
    shape = model.constant("shape", np.array([2, 2], np.int32))
    twos = model.op("FILL", [shape, model.constant("two", np.array(2, np.int32))], "f", [2, 2],
                    "int32")  # fmt: skip
    total = model.op("ADD", [twos, steps], "total", [2, 2], "int32", ("AddOptions", {}))
    cast = model.op("CAST", [total], "cast", [2, 2], options=("CastOptions", {"OutDataType": 0}))
    model.output(model.op("ADD", [x, cast], "y", [2, 2], options=("AddOptions", {})))
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(compute(model, x), np.add(x, [2, 4]))


def in_blocks(op="CONV_2D", ends=(0, 2), shape=(4, 2, 4, 2), **options):
    """Return an image [1, 5, 6, 2] that is cut into blocks of 2 x 2, and an operator behind it."""
    model = TfliteFile()
    x = model.input("x", [1, 5, 6, 2])
    block = model.constant("block", np.array([2, 2], np.int32))
    pads = model.constant("pads", np.array([[1, ends[0]], [0, ends[1]]], np.int32))
    x = model.op("SPACE_TO_BATCH_ND", [x, block, pads], "cut", [4, 3, 4, 2])
    operands = [x]
    if op == "CONV_2D":
        w = model.constant("w", np.ones((2, 1, 2, 2), np.float32))
        operands += [w, model.constant("b", np.zeros(2, np.float32))]
    table = ("Conv2DOptions", {"StrideW": 1, "StrideH": 1, **options}) if op == "CONV_2D" else ()
    model.output(model.op(op, operands, "y", list(shape), options=table))
    return model


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (in_blocks(Padding=0), "CONV_2D 'y': its input is cut into blocks by SPACE_TO_BATCH_ND"),
        (in_blocks("RELU", shape=(4, 3, 4, 2)), "RELU 'y': its input is cut into blocks"),
        (in_blocks(Padding=1, shape=(4, 3, 3, 2)), "the output 'y' is cut into blocks"),
        (in_blocks(ends=(1, 2)), r"the block \[2, 2\] does not divide the padded shape"),
        (in_blocks(ends=(-1, 2)), r"the block \[2, 2\] and the padding \[1, -1, 0, 2\] do not fit"),
    ],
)
def test_what_stands_between_blocks_is_a_convolution(model, reason, read):
    with pytest.raises(NnefHwError, match=reason):
        read(model)


def transposed(custom, strides, padding, shape, rng):
    """Return a transposed convolution, by MediaPipe's operator or TensorFlow Lite's own."""
    model = TfliteFile()
    x = model.input("x", [1, 3, 4, 2])
    w = model.constant("w", rng.normal(size=(3, 2, 3, 2)).astype(np.float32))
    b = model.constant("b", rng.normal(size=3).astype(np.float32))
    if custom:
        packed = np.array([padding + 1, *strides], "<i4").tobytes()
        operands, op, options = [x, w, b], "Convolution2DTransposeBias", ("custom", packed)
    else:
        wanted = model.constant("shape", np.array(shape, np.int32))
        values = {"StrideW": strides[0], "StrideH": strides[1], "Padding": padding}
        operands, op = [wanted, w, x, b], "TRANSPOSE_CONV"
        options = ("TransposeConvOptions", values)
    model.output(model.op(op, operands, "y", shape, options=options))
    return model


def test_a_transposed_convolution_whose_shape_is_an_input(read, rng):
    model = transposed(False, (2, 2), 0, [1, 6, 8, 3], rng)
    x = rng.normal(size=(1, 3, 4, 2))
    expected = run_float(read(model), {"x": x})
    wanted = model.operators[0][1][0]
    model.tensors[wanted]["buffer"] = 0
    model.inputs.insert(0, wanted)
    np.testing.assert_array_equal(run_float(read(model), {"x": x})["y"], expected["y"])


@pytest.mark.parametrize(
    ("strides", "padding", "shape"),
    [((2, 1), 0, [1, 3, 8, 3]), ((2, 2), 0, [1, 6, 8, 3]), ((2, 1), 1, [1, 4, 9, 3])],
)
def test_transposed_convolutions_of_mediapipe(strides, padding, shape, compute, rng):
    x = rng.normal(size=(1, 3, 4, 2))
    found, expected = (
        compute(transposed(custom, strides, padding, shape, np.random.default_rng(3)), x)
        for custom in (True, False)
    )
    np.testing.assert_array_equal(found, expected)


def test_options_of_mediapipe_that_say_nothing(read):
    model = transposed(True, (2, 2), 0, [1, 6, 8, 3], np.random.default_rng(3))
    model.operators[0][4] = b"1234"
    with pytest.raises(NnefHwError, match="Bias 'y': its options do not say padding and strides"):
        read(model)
