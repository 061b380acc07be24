"""Codes of 16 bits, whose kernels are others than those of 8, and of 32, which hardware lacks."""

import numpy as np
import pytest
from tflite_file import TfliteFile
from tflite_quantized_cases import quantized_cases

from nnef_hw.errors import UnsupportedError
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.report.check import check_model
from nnef_hw.streaming.architecture import Streaming


def of_wide_sum(scales, **options):
    model = TfliteFile()
    a, b = (model.input(name, [1, 50], "int16", scale=scales[n]) for n, name in enumerate("ab"))
    options = ("AddOptions", options)
    model.output(model.op("ADD", [a, b], "y", [1, 50], "int16", options, scale=scales[2]))
    return model


@pytest.mark.parametrize("nearly", [1, 1.0003])
def test_sums_of_powers_of_two_are_refused(nearly, read):
    model = of_wide_sum([nearly * 2.0**-12, 2.0**-12, 2.0**-11])
    with pytest.raises(UnsupportedError, match=r"operator 0, ADD .*: its scales are powers"):
        read(model)


@pytest.mark.parametrize("nearly", [1.0008, 0.9])
def test_sums_of_other_scales_are_what_they_are_without_that_option(nearly, codes, rng):
    scales = [nearly * 2.0**-12, 2.0**-12, 2.0**-11]
    a, b = rng.integers(-32768, 32768, (2, 1, 50))
    expected = codes(of_wide_sum(scales, PotScaleInt16=False), a, b)
    np.testing.assert_array_equal(codes(of_wide_sum(scales), a, b), expected)


@pytest.mark.parametrize("bias", ["int32", "option"])
@pytest.mark.parametrize("op", ["CONV_2D", "TRANSPOSE_CONV"])
def test_sums_of_32_bits_behind_16_are_refused(op, bias, read):
    model = TfliteFile()
    x = model.input("x", [1, 4, 5, 2], "int16", scale=0.001)
    w = model.constant("w", np.ones((3, 1, 1, 2), np.int8), scale=0.01)
    operands = [x, w]
    if op == "TRANSPOSE_CONV":
        operands = [model.constant("shape", np.array([1, 4, 5, 3], np.int32)), w, x]
    values = {"StrideW": 1, "StrideH": 1}
    if bias == "int32":
        operands.append(model.constant("b", np.ones(3, np.int32), scale=0.00001))
    else:
        values["QuantizedBiasType"] = 2
    table = "Conv2DOptions" if op == "CONV_2D" else "TransposeConvOptions"
    y = model.op(op, operands, "y", [1, 4, 5, 3], "int16", (table, values), scale=0.002)
    model.output(y)
    with pytest.raises(UnsupportedError, match=f"{op} 'y': its sums have 32 bits, as its bias"):
        read(model)


def widened(scale):
    """Return a model that turns codes of 16 bits into ones of 32."""
    model = TfliteFile()
    x = model.input("x", [1, 4], "int16", scale=0.0625)
    model.output(model.op("QUANTIZE", [x], "y", [1, 4], "int32", scale=scale))
    return model


def test_codes_of_32_bits_are_results_for_the_host(read):
    graph = quantize(simplify(read(widened(2.0**-10))), None)
    [error] = check_model(read(widened(2.0**-10)), Streaming())
    assert error.reason == (
        "output 'y' has codes of 32 bits, but those that leave the hardware have at most 16"
    )
    assert error.remedy == "end the network before it (--outputs x), and let the host compute it"
    assert run_fixed(graph, {"x": np.array([[5, 0, -1, 2]])})["y"].tolist() == [[320, 0, -64, 128]]


def test_codes_of_32_bits_are_not_computed_with(read):
    model = widened(2.0**-10)
    model.outputs.clear()
    model.output(model.op("QUANTIZE", [1], "z", [1, 4], "int8", scale=0.5))
    with pytest.raises(UnsupportedError, match=r"'y' is quantized to 32 bits .*; use 2 to 16 bits"):
        quantize(simplify(read(model)), None)
    model = TfliteFile()
    x = model.input("x", [1, 4], "int32", scale=0.0625)
    model.output(model.op("QUANTIZE", [x], "y", [1, 4], "int8", scale=0.5))
    with pytest.raises(UnsupportedError, match=r"'x' is quantized to 32 bits .*; use 2 to 16 bits"):
        quantize(simplify(read(model)), None)


def test_steps_that_codes_of_32_bits_do_not_reach_are_refused(read):
    with pytest.raises(UnsupportedError, match="multiply codes of int16 by 65536: its kernel exc"):
        read(widened(2.0**-20))


def test_check_tells_what_only_integers_show(read):
    graph = read(quantized_cases()["ADD-int16"].model)
    [error] = check_model(graph, Streaming())
    assert "operands of 16 bits need tables of 65536 entries" in str(error)
