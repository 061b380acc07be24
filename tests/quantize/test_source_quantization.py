"""Models that their author quantized: formats and codes are kept, samples are not needed."""

import dataclasses
import re

import numpy as np
import pytest
from archives import unpack

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.softmax import SOFTMAX_QTYPE
from nnef_hw.errors import SampleError, UnsupportedError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load, save
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.quantize.calibration.source_quantization import unusable_formats
from nnef_hw.reference import (
    dequantize_outputs,
    quantize_inputs,
    run_fixed,
    run_float,
    trace_fixed,
    trace_float,
)
from nnef_hw.reference.real.quantize import decode
from nnef_hw.testing import GraphBuilder


def zero_point(scale, zero=0, bits=8, *, signed=True, symmetric=False):
    args = {"zero_point": zero, "scale": scale, "bits": bits, "signed": signed,
            "symmetric": symmetric}  # fmt: skip
    return Quantization("zero_point_linear_quantize", args)


def unsigned(scale, zero=0, bits=8):
    return zero_point(scale, zero, bits, signed=False)


def min_max(low, high, bits=8, *, signed=False, symmetric=False):
    args = {"min": low, "max": high, "bits": bits, "signed": signed, "symmetric": symmetric}
    return Quantization("min_max_linear_quantize", args)


def quantized(graph, **quants):
    """Return the graph with quantizations; those of constants decode their integer data."""
    tensors = dict(graph.tensors)
    for name, quant in quants.items():
        tensor = tensors[name]
        data = None if tensor.data is None else decode(tensor.data.astype(np.int64), quant)
        tensors[name] = dataclasses.replace(tensor, quant=quant, data=data)
    return graph.replaced(tensors=tensors)


STEPS = np.array([0.02, 0.01, 0.03])


@pytest.fixture
def network(rng):
    """A convolution, a pool and a linear layer with integer filters and biases."""
    builder = GraphBuilder()
    builder.input("x", (1, 2, 6, 6))
    builder.constant("w1", rng.integers(-128, 128, (3, 2, 3, 3)), label="w1")
    builder.constant("b1", rng.integers(-999, 999, (1, 3)), label="b1")
    builder.op(
        "conv",
        "x",
        "w1",
        "b1",
        name="c1",
        shape=(1, 3, 6, 6),
        groups=1,
        border="constant",
        padding=[(1, 1), (1, 1)],
        stride=[1, 1],
        dilation=[1, 1],
    )
    builder.op("relu", "c1", name="r1")
    builder.pool("max_pool", "r1", 2, name="p1")
    builder.reshape("p1", [1, 27], name="flat")
    builder.constant("w2", rng.integers(-127, 128, (4, 27)), label="w2")
    builder.constant("b2", rng.integers(-9999, 9999, (1, 4)), label="b2")
    builder.op("linear", "flat", "w2", "b2", name="y")
    return builder.build()  # fmt: skip


GIVEN = {
    "x": unsigned(0.05, 100),
    "w1": zero_point(STEPS),
    "b1": zero_point(0.05 * STEPS[None], bits=32),
    "c1": unsigned(0.9, 7),
    "r1": unsigned(0.9, 7),
    "p1": unsigned(0.9, 7),
    "flat": unsigned(0.9, 7),
    "w2": zero_point(0.001, symmetric=True),
    "b2": zero_point(0.9 * 0.001, bits=32),
    "y": zero_point(0.5, -20),
}


def test_formats_and_codes_are_those_given(network):
    fixed = quantize(simplify(quantized(network, **GIVEN)), None)
    conv, _, linear, _ = fixed.nodes

    assert fixed.tensor("x").qtype == QType(8, signed=False, scale=0.05, zero_point=100)
    assert fixed.tensor(conv.name).qtype == QType(8, signed=False, scale=0.9, zero_point=7)
    assert fixed.tensor("y").qtype == QType(8, signed=True, scale=0.5, zero_point=-20)
    assert fixed.tensor(conv.inputs[1]).qtype.scale == tuple(STEPS)
    assert fixed.tensor(linear.inputs[1]).qtype.scale == 0.001
    assert fixed.tensor(linear.inputs[1]).qtype.narrow
    for node, names in ((conv, ("w1", "b1")), (linear, ("w2", "b2"))):
        for stored, name in zip(node.inputs[1:], names, strict=True):
            codes, expected = fixed.constant(stored), network.constant(name)
            np.testing.assert_array_equal(codes.reshape(expected.shape), expected)


def test_fixed_results_are_within_one_code_of_real_ones(network, rng):
    graph = quantized(network, **GIVEN)
    canonical = simplify(graph)
    fixed = quantize(canonical, None)
    x = {"x": rng.uniform(-5, 7, (50, 2, 6, 6))}
    real = trace_float(canonical, x)
    codes = trace_fixed(fixed, quantize_inputs(fixed, x))

    np.testing.assert_array_equal(run_float(graph, x)["y"], real["y"])
    for name in ("r1", "y"):
        qtype = fixed.tensor(name).qtype
        difference = np.abs(qtype.quantize(real[name]) - codes[name])
        assert difference.max() <= 1
        assert (difference == 0).mean() > 0.98


def test_samples_change_nothing_that_is_given(network, rng):
    canonical = simplify(quantized(network, **GIVEN))
    x = {"x": rng.uniform(-5, 7, (20, 2, 6, 6))}
    with_samples, without = quantize(canonical, x), quantize(canonical, None)
    codes = quantize_inputs(without, x)

    for one, other in zip(with_samples.tensors.values(), without.tensors.values(), strict=True):
        assert one.qtype == other.qtype
    np.testing.assert_array_equal(
        run_fixed(with_samples, codes)["y"], run_fixed(without, codes)["y"]
    )


@pytest.mark.parametrize("omitted", ["b1", "b2", "p1", "flat", "c1"])
def test_what_follows_from_the_rest_may_be_left_out(network, omitted):
    formats = {key: quant for key, quant in GIVEN.items() if key != omitted}
    fixed = quantize(simplify(quantized(network, **formats)), None)

    assert fixed.tensor("r1").qtype == QType(8, signed=False, scale=0.9, zero_point=7)


@pytest.mark.parametrize(
    ("present", "message"),
    [
        ([], "model 'net' is not quantized and no samples were given; give representative"),
        (["x", "w1", "w2", "r1"], "model 'net' does not say how to quantize y_conv and no samples"),
        (["w1"], "does not say how to quantize x, r1, y_conv and"),
    ],
)
def test_missing_formats_need_samples(network, present, message):
    graph = quantized(network, **{key: GIVEN[key] for key in present})
    with pytest.raises(SampleError, match=re.escape(message)):
        fix_model(graph, None)


def test_missing_formats_come_from_samples(network, rng):
    graph = simplify(quantized(network, x=GIVEN["x"], w1=GIVEN["w1"]))
    fixed = quantize(graph, {"x": rng.uniform(-5, 7, (50, 2, 6, 6))})

    assert fixed.tensor("x").qtype.zero_point == 100
    np.testing.assert_array_equal(fixed.constant(fixed.nodes[0].inputs[1]), network.constant("w1"))
    assert fixed.tensor("y").qtype is not None


@pytest.mark.parametrize(
    ("quant", "expected"),
    [
        (min_max(-1.28, 1.27), QType(8, signed=False, scale=0.01, zero_point=128)),
        (min_max(-1.28, 1.27, signed=True), QType(8, signed=True, scale=0.01, zero_point=0)),
        (
            min_max(-1.27, 1.27, signed=True, symmetric=True),
            QType(8, signed=True, scale=0.01, zero_point=0, narrow=True),
        ),
        (
            Quantization("linear_quantize", {"min": 0.0, "max": 3.0, "bits": 4}),
            QType(4, signed=False, scale=0.2, zero_point=0),
        ),
    ],
)
def test_ranges_with_a_code_for_zero_are_formats(network, quant, expected):
    qtype = quantize(simplify(quantized(network, **{**GIVEN, "x": quant})), None).tensor("x").qtype

    assert qtype.scale == pytest.approx(expected.scale, rel=1e-9)
    assert dataclasses.replace(qtype, scale=expected.scale) == expected


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (0.5, 2.0), (-3.0, -1.0)])
def test_ranges_without_a_code_for_zero_are_widened_and_reported(network, limits, caplog):
    graph = simplify(quantized(network, **{**GIVEN, "x": min_max(*limits)}))
    qtype = quantize(graph, None).tensor("x").qtype
    lo, hi = qtype.dequantize([qtype.lo, qtype.hi])

    assert lo <= min(limits[0], 0) + 1e-9
    assert hi >= max(limits[1], 0) - 1e-9
    assert hi - lo < max(limits[1], 0) - min(limits[0], 0) + 2.01 * qtype.scale
    assert "x: no code in" in caplog.text


def test_logarithmic_activations_need_samples(network, caplog):
    quant = Quantization("logarithmic_quantize", {"max": 8.0, "bits": 4})
    with pytest.raises(SampleError, match="the format of 'x' must be chosen"):
        quantize(simplify(quantized(network, **{**GIVEN, "x": quant})), None)
    assert "x is quantized in logarithmic steps" in caplog.text


@pytest.mark.parametrize(
    ("name", "quant", "message"),
    [
        ("w1", zero_point(0.1, 900), "with zero point 900: without it, its codes have 11 bits"),
        ("x", unsigned(np.array([[0.1, 0.2]])), "'x' is quantized with a scale for each channel"),
        ("x", unsigned(0.1, bits=17), "'x' is quantized to 17 bits with zero point 0; use 2 to 16"),
        ("x", unsigned(0.1, 256), "zero point 256; use 2 to 16 bits, and a zero point in 0..255"),
    ],
)
def test_formats_without_hardware_are_refused(network, name, quant, message):
    graph = simplify(quantized(network, **{**GIVEN, name: quant}))
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        quantize(graph, None)
    found = [str(error) for error in unusable_formats(graph)]
    assert [message in text for text in found] == [True] * (name == "x")


def test_only_results_that_nobody_reads_have_up_to_32_bits(network):
    wide = zero_point(1e-6, 5, bits=32)
    graph = simplify(quantized(network, **{**GIVEN, "y": wide}))
    assert quantize(graph, None).tensor("y").qtype.bits == 32
    assert unusable_formats(graph) == []
    graph = simplify(quantized(network, **{**GIVEN, "y": zero_point(1e-6, bits=33)}))
    error, *_ = unusable_formats(graph)
    assert "is quantized to 33 bits with zero point 0; use 2 to 32 bits" in str(error)
    graph = simplify(quantized(network, **{**GIVEN, "p1": wide, "flat": wide}))
    graph = graph.replaced(outputs=(*graph.outputs, "p1"))
    with pytest.raises(UnsupportedError, match=r"'\w+' is quantized to 32 bits .* 2 to 16 bits"):
        quantize(graph, None)


@pytest.mark.parametrize(
    "zero", [100, -128, np.array([0, 5, -100])], ids=["one", "lowest code", "channels"]
)
def test_zero_points_of_filters_are_taken_off_their_codes(network, zero):
    fixed = quantize(simplify(quantized(network, **{**GIVEN, "w1": zero_point(STEPS, zero)})), None)
    tensor = fixed.tensor(fixed.nodes[0].inputs[1])

    offset = np.reshape(zero, (-1, 1, 1, 1))
    np.testing.assert_array_equal(tensor.data, network.constant("w1") - offset)
    assert (tensor.qtype.bits, tensor.qtype.zero_point, tensor.qtype.narrow) == (9, 0, False)


@pytest.mark.parametrize(
    "quant",
    [
        min_max(-1.0, 1.0),
        zero_point(0.001, bits=16),
        zero_point(np.full((1, 2), [0.1, 0.2])),
        Quantization("logarithmic_quantize", {"max": 8.0, "bits": 8}),
    ],
    ids=["no zero", "wide", "input channels", "logarithmic"],
)
def test_filters_whose_codes_no_hardware_has_are_quantized_anew(network, quant, caplog):
    graph = simplify(quantized(network, **{**GIVEN, "w1": quant}))
    fixed = quantize(graph, None)
    tensor = fixed.tensor(fixed.nodes[0].inputs[1])

    real = graph.constant(graph.nodes[0].inputs[1])
    error = np.abs(tensor.qtype.dequantize(tensor.data) - real)
    assert (error <= 0.51 * np.reshape(tensor.qtype.scale, (3, 1, 1, 1))).all()
    assert "have no counterpart in hardware" in caplog.text


def test_biases_in_other_steps_are_rounded_to_those_of_the_sums(network):
    formats = {**GIVEN, "b1": zero_point(0.01, bits=32)}
    fixed = quantize(simplify(quantized(network, **formats)), None)

    expected = np.floor(network.constant("b1") * 0.01 / (0.05 * STEPS) + 0.5)
    np.testing.assert_array_equal(fixed.constant(fixed.nodes[0].inputs[2]), expected)


@pytest.mark.parametrize("function", ["tanh", "sigmoid", "hard_swish"])
def test_functions_need_no_format_without_samples(network, function, rng):
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    builder.op("linear", "x", np.eye(3), np.zeros((1, 3)), name="l")
    builder.op(function, "l", name="f")
    graph = quantized(builder.build(), x=zero_point(0.05), l=zero_point(0.05))
    fixed = quantize(simplify(graph), None)
    x = {"x": rng.uniform(-6, 6, (50, 3))}
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))

    np.testing.assert_allclose(found["f"], run_float(graph, x)["f"], atol=0.05)


def test_softmax_in_its_own_format_stays_the_last_operator():
    builder = GraphBuilder()
    builder.input("x", (1, 3))
    builder.op("softmax", "x", name="y", axes=[1])
    for quant, ops in (
        (zero_point(1 / 256, -128), ["softmax"]),
        (zero_point(1 / 128), ["softmax", "requantize"]),
    ):
        fixed = quantize(simplify(quantized(builder.build(), x=unsigned(0.1), y=quant)), None)
        assert [node.op for node in fixed.nodes] == ops
    assert fixed.tensor(fixed.nodes[0].name).qtype == SOFTMAX_QTYPE  # fmt: skip


def test_our_own_archives_mean_the_same_without_our_member(network, tmp_path, rng):
    """Other tools see graph.nnef and graph.quant only."""
    fixed = quantize(simplify(quantized(network, **GIVEN)), None)
    save(fixed, tmp_path / "fixed.nnef.tar")
    unpack(tmp_path / "fixed.nnef.tar", tmp_path / "plain")
    (tmp_path / "plain" / "fixed.json").unlink()
    again, _ = fix_model(load(tmp_path / "plain"), None)
    codes = quantize_inputs(fixed, {"x": rng.uniform(-5, 7, (50, 2, 6, 6))})

    np.testing.assert_array_equal(run_fixed(again, codes)["y"], run_fixed(fixed, codes)["y"])
