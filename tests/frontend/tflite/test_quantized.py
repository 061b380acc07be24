"""Operators on codes: those that TensorFlow Lite's reference kernels give."""

import logging

import numpy as np
import pytest
from tflite_cases import RESULTS
from tflite_file import TfliteFile
from tflite_kernel_cases import FORMATS, convolution, kernel_cases
from tflite_kernels import each, multiplied, multiplier, single
from tflite_quantized_cases import quantized_cases

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend import save
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed

CASES = quantized_cases() | kernel_cases()
CODES = np.arange(-128, 128)


@pytest.mark.parametrize("name", CASES)
def test_networks_give_the_codes_of_the_reference_kernels(name, codes):
    case = CASES[name]
    with np.load(RESULTS) as stored:
        expected = stored[name].astype(np.int64)
    if name == "network-uint8":
        expected = expected - 128  # codes of a softmax are signed in hardware
    found = codes(case.model, *case.inputs)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def f32(value):
    return float(np.float32(value))


def scaled(factor):
    fixed, exponent = multiplier(factor)
    return lambda x: multiplied(x, fixed, exponent)


def of_function(op, source, target, options=(), dtype="int8"):
    model = TfliteFile()
    x = model.input("x", [1, 256], dtype, scale=source[0], zero=source[1])
    y = model.op(op, [x], "y", [1, 256], dtype, options, scale=target[0], zero=target[1])
    model.output(y)
    return model


def of_pair(op, s1, z1, s2, z2, so, zo, options=()):
    model = TfliteFile()
    a = model.input("a", [1, 300], "int8", scale=s1, zero=z1)
    b = model.input("b", [1, 300], "int8", scale=s2, zero=z2)
    model.output(model.op(op, [a, b], "y", [1, 300], "int8", options, scale=so, zero=zo))
    return model


def reduced(op, shape, axes, target):
    """Return a reduction of rows, columns or channels, and the shape of its result."""
    model = TfliteFile()
    left = [extent for axis, extent in enumerate(shape) if axis not in axes]
    x = model.input("x", shape, "int8", scale=0.05, zero=3)
    numbers = model.constant("axes", np.array(axes, np.int32))
    model.output(model.op(op, [x, numbers], "y", left, "int8", scale=target[0], zero=target[1]))
    return model


AXES = [[1, 2], [3], [1, 3], [1, 2, 3]]


@pytest.mark.parametrize("target", [(0.3, -9), (0.05, 3), (1.3, 5)])
@pytest.mark.parametrize("axes", AXES)
def test_sums(target, axes, codes, rng):
    """As ``QuantizedMeanOrSum`` says; the interpreter of 2.3.0 gives it wrong arguments."""
    scale = scaled(f32(0.05) / f32(target[0]))
    inputs = rng.integers(-128, 128, (10, 4, 5, 6))
    expected = each(scale, (inputs - 3).sum(axis=tuple(axes)), zero=target[1])
    found = codes(reduced("SUM", [1, 4, 5, 6], axes, target), inputs)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_factors_of_products_are_of_single_precision_and_those_of_squares_of_double(read):
    """Few codes tell them from each other."""
    s1, so = 0.05, 0.13
    square = of_pair("MUL", s1, 3, s1, 3, so, -100)
    difference = of_pair("SQUARED_DIFFERENCE", s1, 3, 0.04, 3, so, -100)
    *_, product = quantize(simplify(read(square)), None).nodes
    assert product.attrs["requant"].mult == multiplier(single(s1, s1, divisor=so))[:1]
    *_, product = quantize(simplify(read(difference)), None).nodes
    factor = (2 * f32(s1)) ** 2 / (2**14 * f32(so))
    assert product.attrs["requant"].mult == multiplier(factor)[:1]


DIFFERING = {
    "L2_NORMALIZATION": ((1 / 128, 0), ("L2NormOptions", {}), "end the network before it"),
    "LOG_SOFTMAX": ((1 / 16, 127), (), "its kernel takes logarithms of codes in 32 bits"),
    "NEG": ((0.05, 3), (), "its kernel negates codes"),
}


@pytest.mark.parametrize("op", DIFFERING)
def test_kernels_that_hardware_has_not_are_refused(op, read):
    target, options, reason = DIFFERING[op]
    with pytest.raises(UnsupportedError, match=reason):
        simplify(read(of_function(op, (0.05, 3), target, options)))


def test_a_log_softmax_of_pixels_is_refused(read):
    """As one of a row is, whatever stands between the softmax and the logarithm."""
    model = TfliteFile()
    x = model.input("x", [1, 4, 4], "int8", scale=0.05)
    model.output(model.op("LOG_SOFTMAX", [x], "y", [1, 4, 4], "int8", scale=1 / 16, zero=127))
    with pytest.raises(UnsupportedError, match="log 'y': its kernel takes logarithms"):
        simplify(read(model))


def test_quotients_of_16_bits_are_refused(read):
    model = TfliteFile()
    a, b = (model.input(name, [1, 9], "int16", scale=0.001) for name in "ab")
    model.output(model.op("DIV", [a, b], "y", [1, 9], "int16", scale=0.1))
    with pytest.raises(UnsupportedError, match="div 'y': its kernel divides codes of 16 bits"):
        simplify(read(model))


def test_a_divisor_of_zero_counts_as_one_step(codes):
    """The kernel stops."""
    formats = 0.05, 3, 0.03, -20, 0.04, 5
    a, b = np.arange(-128, 172).clip(max=127).reshape(1, 300), np.full((1, 300), formats[3])
    found = codes(of_pair("DIV", *formats), a, b)
    np.testing.assert_array_equal(found, codes(of_pair("DIV", *formats), a, b + 1))


def test_quotients_far_below_a_step_are_zero_with_our_rounding(read):
    """With that of the kernel they are not: it shifts by more bits than there are."""
    graph = simplify(read(of_pair("DIV", 0.05, 0, 0.05, 0, 1.0, 0)))
    a, b = np.repeat(np.arange(-1, 2), 100), np.tile(np.arange(28, 128), 3)
    inputs = dict(zip(graph.inputs, (a[None], b[None]), strict=True))
    found, of_kernel = (
        run_fixed(quantize(graph, None, scheme), inputs)["y"][0]
        for scheme in (Scheme(rounding="half_up"), Scheme(rounding="tflite"))
    )
    assert not found.any()
    assert of_kernel.tolist() == [*[-128] * 100, *[1] * 100, *[127] * 100]


@pytest.mark.parametrize(("scales", "steps"), [((500.0, 1e-5, 1.0), 26), ((1e-7, 50.0, 1.0), -28)])
def test_quotients_that_the_kernel_has_no_shift_for_are_refused(scales, steps, read):
    first, second, target = scales
    model = of_pair("DIV", first, 0, second, 0, target, 0)
    with pytest.raises(UnsupportedError, match=rf"quotient 'y': .* 2\^{steps} steps of the result"):
        quantize(simplify(read(model)), None)


@pytest.mark.parametrize("op", ["EXP", "LOG"])
def test_functions_of_16_bits_that_kernels_fill_tables_for_are_refused(op, read):
    model = TfliteFile()
    x = model.input("x", [1, 9], "int16", scale=0.001)
    model.output(model.op(op, [x], "y", [1, 9], "int16", scale=2.0**-15))
    with pytest.raises(UnsupportedError, match="its kernel fills a table"):
        simplify(read(model))


def resized(dtype, size, target=None, **options):
    """Return an image of 2 x 3 pixels, resized."""
    model = TfliteFile()
    x = model.input("x", [1, 2, 3, 1], dtype, scale=0.05, zero=3)
    extents = model.constant("size", np.array(size, np.int32))
    scale, zero = target or (0.05, 3)
    model.output(model.op("RESIZE_BILINEAR", [x, extents], "y", [1, *size, 1], dtype,
                          ("ResizeBilinearOptions", options), scale=scale, zero=zero))  # fmt: skip
    return model


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (resized("uint8", [6, 9]), "unsigned codes in single precision"),
        (resized("int8", [1200, 3]), "from 2 to 1200 rows lead its kernel behind the image"),
    ],
)
def test_interpolations_that_no_hardware_does_as_the_kernel_are_refused(model, reason, read):
    with pytest.raises(UnsupportedError, match=reason) as error:
        simplify(read(model))
    assert "'y'" in str(error.value)


def test_interpolation_does_not_change_the_format(read):
    with pytest.raises(UnsupportedError, match="has another format than its input"):
        read(resized("int8", [6, 9], (0.1, 0)))


@pytest.mark.parametrize(("source", "target"), FORMATS)
@pytest.mark.parametrize("op", ["LOGISTIC", "TANH", "EXP"])
def test_functions_of_real_numbers(op, source, target, codes):
    functions = {"LOGISTIC": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh, "EXP": np.exp}
    real = functions[op]((CODES - source[1]) * f32(source[0]))
    expected = np.clip(np.floor(real / f32(target[0]) + 0.5) + target[1], -128, 127)
    found = codes(of_function(op, source, target), CODES[None])
    np.testing.assert_array_equal(found[0], expected)


def test_limits_that_codes_cannot_exceed_cost_nothing(read):
    """RELU6 of a format that ends at 6 is a ReLU, which the convolution does itself."""
    graph = simplify(read(convolution(activation="RELU6", target=6 / 87).model))
    assert [(node.op, node.attrs.get("activation")) for node in graph.nodes] == [
        ("transpose", None), ("conv", "relu"), ("transpose", None),
    ]  # fmt: skip


def linear(weights_dtype=np.int8):
    rng = np.random.default_rng(3)
    model = TfliteFile()
    x = model.input("x", [1, 40], "int8", scale=0.05, zero=-7)
    weights = rng.integers(-127, 128, (8, 40)).astype(weights_dtype)
    w = model.constant("w", weights, scale=0.013)
    b = model.constant("b", rng.integers(-500, 500, 8).astype(np.int32), scale=0.00065)
    options = ("FullyConnectedOptions", {})
    y = model.op("FULLY_CONNECTED", [x, w, b], "y", [1, 8], "int8", options, scale=0.3, zero=4)
    model.output(y)
    return model, weights.astype(np.int64), np.frombuffer(model.buffers[2], np.int32)


def test_linear_layers_round_once(codes, rng):
    model, weights, bias = linear()
    x = rng.integers(-128, 128, (50, 40))
    fixed, exponent = multiplier(f32(0.05) * f32(0.013) / f32(0.3))
    sums = (x + 7) @ weights.T + bias
    total = 31 - exponent
    expected = each(lambda s: (s * fixed + (1 << (total - 1))) >> total, sums, zero=4)
    np.testing.assert_array_equal(codes(model, x), expected)


def test_a_scheme_may_ask_for_another_rounding(read):
    graph = simplify(read(linear()[0]))
    assert quantize(graph, None).nodes[0].attrs["requant"].rounds_once
    other = quantize(graph, None, Scheme(rounding="half_up"))
    assert type(other.nodes[0].attrs["requant"]).__name__ == "Requant"


def test_converting_warns_that_nnef_cannot_say_how_sums_are_rounded(read, tmp_path, caplog):
    graph = read(linear()[0])
    with caplog.at_level(logging.WARNING):
        save(graph, tmp_path / "linear.nnef.tgz")
    [text] = [record.getMessage() for record in caplog.records]
    assert "NNEF cannot say how the model rounds sums" in text
    assert text.endswith('a --scheme that has rounding = "tflite"')


def test_models_of_real_numbers_have_no_rounding(read):
    model = TfliteFile()
    model.output(model.op("RELU", [model.input("x", [1, 4])], "y", [1, 4]))
    assert read(model).rounding is None


def test_activations_with_several_scales_are_refused(read):
    model = of_function("RELU", ([0.1] * 256, 0), (0.1, 0))
    model.tensors[0]["axis"] = 1
    with pytest.raises(UnsupportedError, match="the tensor 'x' has a scale for each channel"):
        read(model)
