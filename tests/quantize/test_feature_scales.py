"""Inputs with a scale and a zero point for each feature."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.ir import Quantization, format_graph, parse_graph, verify
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import Budget, Scheme, quantize, search_widths
from nnef_hw.quantize.calibration.feature_scales import scale_features
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.testing import GraphBuilder

MEANS = np.array([0.2, 12.0, 280.0, -4e-3, 2500.0])
DEVIATIONS = np.array([0.06, 3.0, 9.0, 5e-4, 700.0])
COUNT = len(MEANS)
TANH = {"vector": (1, COUNT), "sequence": (1, 8, COUNT), "channels": (1, COUNT, 8),
        "image": (1, COUNT, 4, 4), "image_last": (1, 4, 4, COUNT)}  # fmt: skip


def column(values, shape, axis):
    return values.reshape([-1 if n == axis else 1 for n in range(len(shape))])


def axis_of(form):
    return {"sequence": 2, "image_last": 3}.get(form, 1)


def network(form, rng, *, scaler=True, padding=0):
    """Return a network that normalizes its features, or has that in its weights already."""
    shape, axis = TANH[form], axis_of(form)
    g = GraphBuilder(form)
    x = g.input("x", shape)
    weights = rng.normal(size=(6, COUNT))
    bias = rng.normal(size=(1, 6))
    if scaler:
        x = g.op("sub", x, column(MEANS, shape, axis), name="centred")
        x = g.op("mul", x, column(1 / DEVIATIONS, shape, axis), name="scaled")
    else:
        bias = bias - (weights / DEVIATIONS) @ MEANS
        weights = weights / DEVIATIONS
    if form == "vector":
        x = g.op("linear", x, weights, bias, name="first")
        x = g.op("relu", x, name="hidden")
        return g.build(g.op("linear", x, rng.normal(size=(3, 6)), np.zeros((1, 3)), name="y"))
    if form == "sequence":
        x = g.op("matmul", x, weights.T[None], transposeA=False, transposeB=False, name="first")
        return g.build(g.op("relu", x, name="y"))
    if form == "image_last":
        x = g.op("transpose", x, axes=[0, 3, 1, 2], name="moved")
    kernel = [1] * (len(shape) - 2) if not padding else [3] * (len(shape) - 2)
    full = np.broadcast_to(weights.reshape(*weights.shape, *[1] * len(kernel)),
                           (*weights.shape, *kernel))  # fmt: skip
    x = g.conv(x, full / math.prod(kernel), bias, name="first", padding=padding)
    return g.build(g.op("relu", x, name="y"))


def samples(form, rng, count=400):
    shape, axis = TANH[form], axis_of(form)
    noise = rng.normal(size=(count, *shape[1:]))
    return column(MEANS, shape, axis) + column(DEVIATIONS, shape, axis) * noise


def quality(graph, fixed, x):
    """Return the signal to noise ratio of the output in dB."""
    [name] = graph.outputs
    real = run_float(graph, {"x": x})[name]
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, {"x": x})))[name]
    return 10 * np.log10(np.square(real).sum() / np.square(real - found).sum())


@pytest.mark.parametrize("scaler", [True, False])
@pytest.mark.parametrize("form", TANH)
def test_features_of_unlike_ranges_keep_their_accuracy(form, scaler, rng):
    graph = network(form, rng, scaler=scaler)
    canonical, x = simplify(graph), samples(form, rng)
    assert all(node.op != "conv" or node.attrs["groups"] == 1 for node in canonical.nodes)
    fixed = quantize(canonical, {"x": x[:200]})
    one = quantize(canonical, {"x": x[:200]}, Scheme(feature_scales=False))
    assert fixed.features["x"].axis == axis_of(form)
    assert not one.features
    assert quality(graph, fixed, x[200:]) > 12.0 + quality(graph, one, x[200:])


@pytest.mark.parametrize("form", ["channels", "image"])
def test_padding_is_one_code(form, rng):
    """Behind an offset the padding's zeros are codes of the layer that adds it."""
    graph = network(form, rng, scaler=False, padding=1)
    canonical = simplify(graph)
    x = samples(form, rng) - column(MEANS, TANH[form], 1)
    fixed = quantize(canonical, {"x": x[:200]})
    assert set(fixed.features["x"].zero_point) == {0}
    one = quantize(canonical, {"x": x[:200]}, Scheme(feature_scales=False))
    assert quality(graph, fixed, x[200:]) > 15.0 + quality(graph, one, x[200:])


@pytest.mark.parametrize("form", TANH)
def test_the_network_computes_the_same_real_numbers(form, rng):
    graph, x = simplify(network(form, rng)), {"x": samples(form, rng, 20)}
    scaled = scale_features(graph, x, Scheme())
    verify(scaled.graph)
    [name] = graph.outputs
    tensors = dict(scaled.graph.tensors)
    tensors["x"] = replace(tensors["x"], quant=None)  # which rounds
    found = run_float(scaled.graph.replaced(tensors=tensors), scaled.samples)[name]
    np.testing.assert_allclose(found, run_float(graph, x)[name], rtol=1e-9, atol=1e-9)


def test_codes_fill_their_range(rng):
    x = samples("vector", rng)
    fixed = quantize(simplify(network("vector", rng)), {"x": x})
    codes = quantize_inputs(fixed, {"x": x})["x"]
    scales = fixed.features["x"]
    exact = np.floor(x / np.array(scales.scale) + 0.5) + np.array(scales.zero_point)
    assert np.array_equal(codes, np.clip(exact, 0, 255))
    assert (codes.max(axis=0) - codes.min(axis=0) > 128).all()


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(np.random.default_rng(1).normal(size=(200, COUNT)), id="like ranges"),
        pytest.param(np.random.default_rng(1).integers(0, 256, (200, COUNT)), id="bytes"),
    ],
)
def test_inputs_that_need_none_have_one_format(x, rng):
    g = GraphBuilder()
    g.op("linear", g.input("x", (1, COUNT)), rng.normal(size=(4, COUNT)), 0.0)
    assert not quantize(simplify(g.build()), {"x": x.astype(float)}).features


def test_little_gain_is_no_reason(rng):
    """Six bits are not good enough, but scales for each feature are little better."""
    g = GraphBuilder()
    g.op("linear", g.input("x", (1, COUNT)), rng.normal(size=(4, COUNT)), 0.0)
    x = rng.normal(size=(200, COUNT)) * np.linspace(1, 3, COUNT)
    assert not quantize(simplify(g.build()), {"x": x}, Scheme(activation_bits=6)).features


def test_few_samples_tell_no_ranges_of_features(rng):
    x = samples("vector", rng, 30)
    assert quantize(simplify(network("vector", rng)), {"x": np.repeat(x, 2, axis=0)}).features
    assert not quantize(simplify(network("vector", rng)), {"x": x}).features


def test_layers_that_share_a_filter_get_their_own(rng):
    g = GraphBuilder()
    x = g.input("x", (1, COUNT))
    w = g.constant("w", rng.normal(size=(3, COUNT)) / DEVIATIONS, label="w")
    graph = simplify(
        g.build(*[g.op("linear", x, w, bias, name=f"y{bias:g}") for bias in (1.0, 2.0)])
    )
    x = samples("vector", rng)
    fixed = quantize(graph, {"x": x})
    assert fixed.features
    assert len({tensor.label for tensor in fixed.tensors.values() if tensor.label}) == 2
    real = run_float(graph, {"x": x})
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, {"x": x})))
    for name in graph.outputs:
        assert np.square(real[name] - found[name]).sum() < 1e-3 * np.square(real[name]).sum()


def test_what_others_read_has_one_format(rng):
    g = GraphBuilder()
    x = g.input("x", (1, COUNT))
    y = g.op("linear", x, rng.normal(size=(COUNT, COUNT)) / DEVIATIONS, 0.0)
    graph = simplify(g.build(g.op("add", x, y)))
    assert not quantize(graph, {"x": samples("vector", rng)}).features


def test_formats_of_the_author_stay(rng):
    graph = simplify(network("vector", rng))
    args = {"zero_point": 3, "scale": 20.0, "bits": 8, "signed": False, "symmetric": False}
    tensors = dict(graph.tensors)
    object.__setattr__(tensors["x"], "quant", Quantization("zero_point_linear_quantize", args))
    fixed = quantize(graph.replaced(tensors=tensors), {"x": samples("vector", rng)})
    assert fixed.tensor("x").qtype == QType(8, signed=False, scale=20.0, zero_point=3)
    assert not fixed.features


def test_a_constant_feature_is_a_code(rng):
    x = samples("vector", rng)
    x[:, 1], x[:, 3] = 12.0, 0.0
    fixed = quantize(simplify(network("vector", rng)), {"x": x})
    real = dequantize_outputs(fixed, quantize_inputs(fixed, {"x": x}))["x"]
    assert (np.abs(real - x)[:, [1, 3]] <= 0.51 * np.array(fixed.features["x"].scale)[[1, 3]]).all()


def test_archives_and_texts_hold_the_scales(tmp_path, rng):
    fixed = quantize(simplify(network("vector", rng)), {"x": samples("vector", rng)})
    save(fixed, tmp_path / "fixed.nnef.tgz")
    read = load(tmp_path / "fixed.nnef.tgz")
    assert read.features == fixed.features
    text = parse_graph(format_graph(fixed))
    assert text.features == fixed.features
    other = FeatureScales(1, fixed.features["x"].scale, (1,) * COUNT)
    assert graph_hash(read) == graph_hash(fixed) == graph_hash(text)
    changed = parse_graph(format_graph(fixed))
    object.__setattr__(changed, "features", {"x": other})
    assert graph_hash(changed) != graph_hash(fixed)


def test_a_search_for_widths_judges_the_scaled_network(rng):
    graph, x = simplify(network("vector", rng)), samples("vector", rng)
    labels = run_float(graph, {"x": x})["y"].argmax(axis=1)
    found = search_widths(
        graph, {"x": x[:200]}, ({"x": x[200:]}, labels[200:]), Scheme(), Budget(5.0)
    )
    assert any(layer["weight_bits"] < 8 for layer in found.layers.values())


def test_steps_of_a_window_take_the_same_codes(rng):
    """And begin with zeros, which have another code in each feature."""
    shape = (1, COUNT, 9, 1)
    g = GraphBuilder("window")
    x = g.reshape(g.input("x", shape[:3]), shape)
    y = g.conv(x, rng.normal(size=(3, COUNT, 3, 1)) / DEVIATIONS[:, None, None], name="first")
    graph = simplify(g.build(g.conv(g.op("relu", y), rng.normal(size=(2, 3, 7, 1)), name="y")))
    x = MEANS[:, None] + DEVIATIONS[:, None] * rng.normal(size=(100, COUNT, 9))
    fixed = quantize(graph, {"x": x})
    step, _ = StreamTime(2).steps(fixed)
    assert step.features == fixed.features
    stream = MEANS[:, None] + DEVIATIONS[:, None] * rng.normal(size=(COUNT, 30))
    rows = stream.T[np.newaxis, :, :, np.newaxis]
    found = run_fixed(step, quantize_inputs(step, {"x": rows}))["y"][0]
    padded = np.concatenate([np.zeros((COUNT, 8)), stream], axis=1)
    windows = np.stack([padded[:, n : n + 9] for n in range(30)])
    expected = run_fixed(fixed, quantize_inputs(fixed, {"x": windows}))["y"]
    assert np.array_equal(found[8:].reshape(22, 2), expected[8:].reshape(22, 2))
    [state] = [s for s in step.states.values() if s.initial.shape[1] == COUNT]
    codes = fixed.features["x"].quantize(np.zeros(shape[:3]), shape[:3], fixed.tensor("x").qtype)
    assert np.array_equal(state.initial.reshape(COUNT, -1)[:, 0], codes[0, :, 0])


@pytest.mark.parametrize(
    ("scale", "zero_point", "error"),
    [((1.0,), (1, 2), "a scale and a zero point"), ((0.0,), (1,), "positive and finite")],
)
def test_scales_are_checked(scale, zero_point, error):
    with pytest.raises(ValueError, match=error):
        FeatureScales(1, scale, zero_point)
