import re
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.softmax import SOFTMAX_QTYPE
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Quantization, Stage
from nnef_hw.passes import simplify
from nnef_hw.quantize import (
    FixedParams,
    LayerParams,
    Scheme,
    build_fixed,
    choose_params,
    observe,
    quantize,
)
from nnef_hw.quantize.calibration.scheme import CALIBRATIONS
from nnef_hw.reference import (
    dequantize_outputs,
    quantize_inputs,
    run_fixed,
    run_float,
    trace_fixed,
    trace_float,
)
from nnef_hw.testing import GraphBuilder


def small_network(rng, function="relu", *, pool="max_pool", softmax=False):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 8, 8))
    w = rng.standard_normal((6, 2, 3, 3)) / 4
    y = builder.conv("x", w, rng.standard_normal(6) / 4, name="c1", padding=1)
    y = builder.op(function, y, name="f1")
    y = builder.pool(pool, y, 2, name="p1")
    y = builder.conv(y, rng.standard_normal((6, 1, 3, 3)) / 2, name="c2", groups=6)
    y = builder.reshape(y, [1, 24])
    y = builder.op("linear", y, rng.standard_normal((5, 24)) / 4, rng.standard_normal((1, 5)))
    if softmax:
        y = builder.op("softmax", y, axes=[1])
    return simplify(builder.build())


def sqnr_db(real, fixed):
    return 10 * np.log10((real**2).mean() / ((real - fixed) ** 2).mean())


def run_both(graph, scheme, rng):
    x = {"x": rng.standard_normal((200, 2, 8, 8))}
    fixed = quantize(graph, x, scheme)
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))
    name = graph.outputs[0]
    return run_float(graph, x)[name], found[name]


@pytest.mark.parametrize("pool", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("function", ["relu", "tanh", "sigmoid", "gelu", "leaky_relu"])
def test_fixed_results_are_close_to_real_ones(function, pool, rng):
    builder = small_network(rng, "relu" if function == "leaky_relu" else function, pool=pool)
    assert sqnr_db(*run_both(builder, Scheme(), rng)) > 28


@pytest.mark.parametrize("weight_bits", [2, 4, 8])
@pytest.mark.parametrize("activation_bits", [2, 5, 8, 12, 16])
def test_widths_sweep(weight_bits, activation_bits, rng):
    """Noise falls with the narrower of both widths, about 6 dB a bit."""
    graph = small_network(rng, pool="avg_pool")
    scheme = Scheme(weight_bits, activation_bits)
    real, fixed = run_both(graph, scheme, rng)
    least = 6 * min(weight_bits + 1, activation_bits) - 19
    assert sqnr_db(real, fixed) > least


def test_wider_activations_are_more_precise(rng):
    graph = small_network(rng)
    noise = [sqnr_db(*run_both(graph, Scheme(8, bits), rng)) for bits in (3, 5, 8, 16)]
    assert noise == sorted(noise)


@pytest.mark.parametrize("mult_bits", [8, 12, 24])
def test_multiplier_widths(mult_bits, rng):
    graph = small_network(rng)
    fixed = quantize(graph, {"x": rng.random((20, 2, 8, 8))}, Scheme(mult_bits=mult_bits))
    requant = fixed.nodes[0].attrs["requant"]
    assert requant.mult_bits == mult_bits
    assert max(requant.mult) >= 2 ** (mult_bits - 1)


def test_fixed_graphs_hold_what_their_stage_demands(rng):
    graph = small_network(rng, "tanh", softmax=True)
    fixed = quantize(graph, {"x": rng.standard_normal((50, 2, 8, 8))})
    assert fixed.stage == Stage.FIXED
    nodes = {node.name: node for node in fixed.nodes}
    assert nodes["f1"].attrs["table"].shape == (256,)
    assert fixed.tensor(fixed.outputs[0]).qtype == SOFTMAX_QTYPE
    assert fixed.tensor("p1").qtype == fixed.tensor("f1").qtype
    source, weights, bias = (fixed.tensor(name) for name in nodes["c1"].inputs)
    assert weights.qtype.narrow
    assert weights.data.min() >= -127
    assert bias.shape == (1, 6)
    expected = [source.qtype.scale * s for s in weights.qtype.scale]
    np.testing.assert_allclose(bias.qtype.scale, expected)


def test_fused_relu_has_zero_point_zero(rng):
    fixed = quantize(small_network(rng), {"x": rng.standard_normal((50, 2, 8, 8))})
    qtype = fixed.tensor("f1").qtype
    assert (qtype.zero_point, fixed.nodes[0].attrs["requant"].lo) == (0, 0)


def test_degenerate_networks_do_not_crash(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2, 4, 4))
    w = np.zeros((3, 2, 3, 3))
    w[1] = 1e-30
    y = builder.op("relu", builder.conv("x", w, np.array([[-1.0, 0.0, 2.0]])))
    y = builder.op("tanh", builder.conv(y, np.zeros((2, 3, 1, 1))))
    builder.op("softmax", y, axes=[1])
    graph = simplify(builder.build())
    for samples in (np.zeros((3, 2, 4, 4)), np.full((3, 2, 4, 4), 1e-20), rng.random((3, 2, 4, 4))):
        fixed = quantize(graph, {"x": samples})
        found = trace_fixed(fixed, quantize_inputs(fixed, {"x": samples}))
        assert (found[graph.outputs[0]] == 128).all()


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_functions_may_reach_infinity(calibration, rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.op("log", builder.op("relu", "x"), name="y")
    graph = simplify(builder.build())
    x = {"x": rng.standard_normal((50, 4))}
    fixed = quantize(graph, x, Scheme(calibration=calibration))
    found = run_fixed(fixed, quantize_inputs(fixed, {"x": np.array([[-1.0, 0.0, 1.0, 1.5]])}))["y"]
    assert found[0, :2].tolist() == [0, 0]
    assert fixed.tensor("y").qtype.dequantize(found[0, 2]) == pytest.approx(0.0, abs=0.05)


def test_layers_behind_infinite_values_have_finite_weights(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    y = builder.op("log", builder.op("relu", "x"))
    builder.op("linear", y, rng.standard_normal((3, 4)), 0.0, name="y")
    graph = simplify(builder.build())
    x = {"x": rng.standard_normal((50, 4))}
    fixed = quantize(graph, x)
    ones = quantize_inputs(fixed, {"x": np.ones((1, 4))})
    found = dequantize_outputs(fixed, run_fixed(fixed, ones))
    assert np.abs(found["y"]).max() < 1.0


def test_an_output_much_smaller_than_its_input_does_not_crash(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.op("linear", "x", np.array([[1.0, -1.0]]), 0.0, name="y")
    graph = simplify(builder.build())
    x = np.repeat(1000 * rng.random((50, 1)), 2, axis=1) + 1e-9 * rng.random((50, 2))
    fixed = quantize(graph, {"x": x})
    assert fixed.tensor("y").qtype.scale >= x.max() / 255 / 127 / 256 * 0.999


@pytest.mark.parametrize("function", ["floor", "sign", "softmax"])
def test_tables_of_every_code_read_eight_bits_in_wide_networks(function, rng):
    graph = small_network(rng, "relu" if function == "softmax" else function, softmax=True)
    fixed = quantize(graph, {"x": rng.random((20, 2, 8, 8))}, Scheme(activation_bits=16))
    bits = {node.op: fixed.tensor(node.inputs[0]).qtype.bits for node in fixed.nodes}
    assert bits[function] == bits["softmax"] == 8
    assert fixed.tensor("x").qtype.bits == fixed.tensor("c2").qtype.bits == 16


@pytest.mark.parametrize("bits", [9, 12, 16])
def test_what_interpolated_tables_read_keeps_its_width(bits, rng):
    fixed = quantize(small_network(rng, "tanh"), {"x": rng.random((20, 2, 8, 8))},
                     Scheme(activation_bits=bits))  # fmt: skip
    (node,) = (node for node in fixed.nodes if node.op == "tanh")
    assert fixed.tensor(node.inputs[0]).qtype.bits == bits
    assert node.attrs["table"].shape == (257,)


@pytest.mark.parametrize("function", ["tanh", "sigmoid", "silu"])
def test_interpolation_costs_little_of_sixteen_bits(function, rng):
    assert sqnr_db(*run_both(small_network(rng, function), Scheme(8, 16), rng)) > 39


def test_operands_of_other_formats_are_mapped_with_sixteen_bits(rng):
    """An operand that others read too has a format of its own in front of a concatenation."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 2, 8, 8))
    y = builder.conv(x, 3 * rng.standard_normal((2, 2, 1, 1)), name="c")
    builder.op("concat", x, y, axis=1, name="both")
    graph = simplify(builder.build("both", "c"))
    samples = {"x": rng.standard_normal((50, 2, 8, 8))}
    fixed = quantize(graph, samples, Scheme(8, 16))
    codes = trace_fixed(fixed, quantize_inputs(fixed, samples))
    (node,) = (node for node in fixed.nodes if node.op == "requantize")
    source, target = (fixed.tensor(name).qtype for name in (node.inputs[0], node.name))
    assert source.bits == target.bits == 16
    exact = source.dequantize(codes[node.inputs[0]]) / target.scale + target.zero_point
    assert np.abs(codes[node.name] - exact).max() < 1.5


@pytest.mark.parametrize("function", ["floor", "softmax"])
def test_given_formats_that_are_too_wide_for_tables_are_refused_with_the_location(function, rng):
    attrs = {"axes": [1]} if function == "softmax" else {}
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", (1, 2, 8, 8)), rng.standard_normal((6, 2, 3, 3)), name="c1")
    graph = simplify(builder.build(builder.op(function, x, name="f1", **attrs)))
    args = {"min": -4.0, "max": 4.0, "bits": 10}
    tensor = replace(graph.tensor("c1"), quant=Quantization("linear_quantize", args))
    graph = graph.replaced(tensors={**graph.tensors, "c1": tensor})
    message = (
        f"net.nnef:2: {function} 'f1': its input has 10 bits, its table has at most 8; "
        "give the input a format of at most 8 bits"
    )
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        quantize(graph, {"x": rng.random((5, 2, 8, 8))})


def test_observed_means_are_those_of_all_samples(rng):
    graph = small_network(rng)
    x = {"x": rng.standard_normal((150, 2, 8, 8))}
    found, trace = observe(graph, x), trace_float(graph, x)
    for name, values in trace.items():
        np.testing.assert_allclose(found[name].mean, values.mean(axis=0, keepdims=True), atol=1e-12)


def test_biases_take_back_the_mean_error_of_rounded_weights(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 64))
    builder.op("linear", "x", rng.standard_normal((8, 64)), 0.0, name="y")
    graph = simplify(builder.build())
    x = {"x": rng.random((500, 64))}
    fixed = quantize(graph, x, Scheme(weight_bits=3, activation_bits=16))
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))["y"]
    error = np.abs((found - run_float(graph, x)["y"]).mean(axis=0)).max()
    assert error < 0.003


def test_importer_round_trip_of_a_networks_own_integers(rng):
    """Integers taken out of a fixed graph and put in again give the same graph."""
    graph = small_network(rng, "tanh", pool="avg_pool")
    samples = {"x": rng.standard_normal((30, 2, 8, 8))}
    first = quantize(graph, samples)
    layers = {}
    for node in first.nodes:
        if node.op in {"conv", "linear"}:
            weights, bias = (first.tensor(name) for name in node.inputs[1:])
            layers[node.name] = LayerParams(weights.data, bias.data, weights.qtype)
    formats = {name: t.qtype for name, t in first.tensors.items() if t.data is None}
    second = build_fixed(graph, FixedParams(formats, layers))
    codes = quantize_inputs(first, samples)
    for name, expected in trace_fixed(first, codes).items():
        np.testing.assert_array_equal(trace_fixed(second, codes)[name], expected)
    for old, new in zip(first.nodes, second.nodes, strict=True):
        assert old.attrs.get("requant") == new.attrs.get("requant")
    assert choose_params(graph, samples).activations.keys() == formats.keys()


def test_importer_takes_signed_formats_and_one_weight_scale(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.op("linear", "x", np.ones((3, 4)), 0.0, name="y")
    source, target = QType(8, True, 0.02, zero_point=-3), QType(8, True, 0.05, zero_point=7)
    weights, bias = rng.integers(-128, 128, (3, 4)), rng.integers(-900, 900, 3)
    layer = LayerParams(weights, bias, QType(8, True, 0.01))
    fixed = build_fixed(
        simplify(builder.build()), FixedParams({"x": source, "y": target}, {"y": layer})
    )
    x = rng.integers(-128, 128, (50, 4))
    real = ((x + 3) @ weights.T + bias) * 0.02 * 0.01
    found = run_fixed(fixed, {"x": x})["y"]
    assert np.abs(found - target.quantize(real)).max() <= 1
    assert (found == target.quantize(real)).mean() > 0.95
    assert fixed.nodes[0].attrs["requant"].mult.__len__() == 1


def test_importer_gives_layers_that_share_a_filter_their_own(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    builder.constant("w", rng.standard_normal((4, 4)), "w")
    y = builder.op("relu", builder.op("linear", "x", "w", 0.0))
    builder.op("linear", y, "w", 0.0)
    graph = simplify(builder.build())
    fixed = quantize(graph, {"x": 10 * rng.standard_normal((50, 4))})
    first, second = (node.inputs[1] for node in fixed.nodes)
    assert first != second
    assert fixed.tensor(first).label != fixed.tensor(second).label


def test_scales_too_far_apart_are_refused_with_the_location(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 1))
    builder.op("linear", "x", np.ones((1, 1)), 0.0, name="y")
    layer = LayerParams(np.ones((1, 1), np.int64), np.zeros(1, np.int64), QType(8, True, 1e9))
    params = FixedParams({"x": QType(8, False, 1.0), "y": QType(8, False, 1e-9)}, {"y": layer})
    with pytest.raises(
        UnsupportedError, match=r"net\.nnef:1: linear 'y': .* too large for 16 bits"
    ):
        build_fixed(simplify(builder.build()), params)


def summed_probabilities(channels, rng, **attrs):
    builder = GraphBuilder()
    x = builder.input("x", (1, channels, 1, 4))
    y = builder.op("softmax", x, name="p", axes=[1])
    return simplify(builder.build(builder.conv(y, rng.normal(size=(3, channels, 1, 1)), **attrs)))


@pytest.mark.parametrize(("channels", "places"), [(16, 10), (64, 12), (256, 14)])
def test_probabilities_that_are_summed_up_are_as_fine_as_they_can_be(channels, places, rng):
    """The more there are, the less is each: all lose as little."""
    graph = summed_probabilities(channels, rng)
    x = rng.normal(0, 0.3, (64, channels, 1, 4))
    fixed = quantize(graph, {"x": x}, Scheme(calibration="minmax"))
    assert fixed.tensor("p").qtype == QType(8, False, 2.0**-places)
    found = dequantize_outputs(fixed, trace_fixed(fixed, quantize_inputs(fixed, {"x": x})))
    real = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert 10 * np.log10((real**2).sum() / ((real - found["p"]) ** 2).sum()) > 35


def test_probabilities_have_as_many_bits_as_the_scheme_says(rng):
    graph = summed_probabilities(8, rng)
    samples = {"x": rng.normal(0, 5, (16, 8, 1, 4))}
    for bits, qtype in [(4, QType(8, False, 2.0**-8)), (12, QType(12, False, 2.0**-12))]:
        fixed = quantize(graph, samples, Scheme(activation_bits=bits))
        assert fixed.tensor("p").qtype == qtype


def test_probabilities_that_leave_have_a_format_that_no_sample_decides(rng):
    builder = GraphBuilder()
    y = builder.op("softmax", builder.input("x", (1, 64)), name="p", axes=[1])
    graph = simplify(builder.build(builder.op("unsqueeze", y, shape=(1, 64, 1), axes=[2])))
    fixed = quantize(graph, {"x": rng.normal(size=(8, 64))}, Scheme())
    [name] = [node.name for node in fixed.nodes if node.op == "softmax"]
    assert fixed.tensor(name).qtype == SOFTMAX_QTYPE
