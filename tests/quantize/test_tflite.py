"""Networks that TensorFlow Lite quantized: its codes, with our rounding and with its own."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tflite_models import with_tflite_parameters

from nnef_hw.cli import main
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.ir import Quantization
from nnef_hw.ir.layers import layer_of
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed, trace_fixed
from nnef_hw.testing import GraphBuilder

NETWORKS = ["mlperf_ic_resnet8", "mlperf_kws_dscnn", "mlperf_sww_ds1d"]


def stored_activations(reference):
    return {key.removeprefix("act/"): reference[key] for key in reference if "act/" in key}


@pytest.mark.zoo
@pytest.mark.parametrize("name", NETWORKS)
def test_layers_fed_tflites_codes_give_its_codes_almost_everywhere(name, zoo):
    """One rounding differs from two as often as the first one ends on a half: docs/numerics.md.

    A pool of 64 codes ends on one at every 64th result.
    """
    graph, reference = with_tflite_parameters(zoo / name)
    fixed = quantize(simplify(graph), None)
    expected = stored_activations(reference)
    equal = []
    for node in fixed.nodes:
        if node.op in {"softmax", "reshape"}:
            continue
        values = {key: expected[key].astype(np.int64) for key in node.inputs if key in expected}
        difference = np.abs(layer_of(fixed, node).run(values) - expected[node.name])
        assert difference.max() <= 1, node.name
        assert (difference == 0).mean() >= (0.98 if node.op == "avg_pool" else 0.995), node.name
        equal.append((difference == 0).reshape(-1))
    assert np.concatenate(equal).mean() >= 0.997


@pytest.mark.zoo
@pytest.mark.parametrize("name", NETWORKS)
def test_tflite_rounding_gives_every_code_of_its_reference_kernels(name, zoo):
    graph, reference = with_tflite_parameters(zoo / name)
    fixed = quantize(simplify(graph), None, Scheme(rounding="tflite"))
    expected = stored_activations(reference)
    found = trace_fixed(fixed, {"input": expected["input"].astype(np.int64)})
    for key in found.keys() & expected.keys():
        np.testing.assert_array_equal(found[key], expected[key], err_msg=key)
    assert len(found.keys() & expected.keys()) >= len(expected) - 1


@pytest.mark.zoo
@pytest.mark.parametrize("name", NETWORKS)
def test_tflite_rounding_gives_every_output_of_all_samples(name, zoo):
    graph, reference = with_tflite_parameters(zoo / name)
    fixed = quantize(simplify(graph), None, Scheme(rounding="tflite"))
    inputs = np.load(zoo / name / "samples.npz")["inputs"]
    codes = fixed.tensor("input").qtype.quantize(inputs)
    np.testing.assert_array_equal(codes[:4], reference["input_q_first"])
    np.testing.assert_array_equal(
        run_fixed(fixed, {"input": codes})["output"], reference["output_q"]
    )


@pytest.mark.zoo
def test_archives_with_tflites_integers_are_quantized_from_the_command_line(
    zoo, tmp_path, monkeypatch
):
    """What users do: a model with graph.quant, and a scheme with its rounding."""
    monkeypatch.chdir(tmp_path)
    graph, reference = with_tflite_parameters(zoo / "mlperf_sww_ds1d")
    save(graph, "model.nnef.tgz")
    Path("tflite.toml").write_text('rounding = "tflite"\n')
    assert main(["quantize", "model.nnef.tgz", "--scheme", "tflite.toml", "-o", "q.nnef.tgz"]) == 0
    fixed = load("q.nnef.tgz")
    codes = stored_activations(reference)["input"].astype(np.int64)
    found = run_fixed(fixed, {"input": codes})["output"]
    np.testing.assert_array_equal(found, reference["output_q"][:4])


def zero_points(**formats):
    """Quantizations of activations to signed bytes: scale and zero point by tensor."""
    args = {"bits": 8, "signed": True, "symmetric": False}
    return {
        name: Quantization(
            "zero_point_linear_quantize", {"scale": scale, "zero_point": zero, **args}
        )
        for name, (scale, zero) in formats.items()
    }


FORMATS = zero_points(
    x=(0.02, 3), a=(0.03, -9), b=(0.04, 0), r=(0.05, -128), p=(0.05, -128), l=(0.06, 7)
)  # fmt: skip


def small_network(rng, last="softmax"):
    """Two convolutions, their sum, an average, a linear layer and a function."""
    builder = GraphBuilder()
    builder.input("x", (1, 3, 6, 6))
    for name in "ab":
        weights, bias = rng.standard_normal((4, 3, 3, 3)) / 5, rng.standard_normal(4)
        builder.conv("x", weights, bias, name=name)
    y = builder.op("relu", builder.op("add", "a", "b", name="c"), name="r")
    y = builder.reshape(builder.pool("avg_pool", y, 4, name="p"), [1, 4])
    y = builder.op("linear", y, rng.standard_normal((5, 4)), 0.0, name="l")
    attrs = {"axes": [1]} if last == "softmax" else {}
    graph = builder.build(builder.op(last, y, name="y", **attrs))
    tensors = {
        name: dataclasses.replace(tensor, quant=FORMATS.get(name))
        for name, tensor in graph.tensors.items()
    }
    return simplify(graph.replaced(tensors=tensors))


@pytest.fixture
def noise(rng):
    return {"x": rng.standard_normal((20, 3, 6, 6))}


def test_networks_with_tflite_rounding_are_saved_and_loaded(rng, noise, tmp_path):
    fixed = quantize(small_network(rng), noise, Scheme(rounding="tflite"))
    save(fixed, tmp_path / "net.nnef.tgz")
    again = load(tmp_path / "net.nnef.tgz")
    assert graph_hash(again) == graph_hash(fixed)
    codes = {"x": rng.integers(-128, 128, (30, 3, 6, 6))}
    found = trace_fixed(again, codes)
    for name, expected in trace_fixed(fixed, codes).items():
        np.testing.assert_array_equal(found[name], expected)


def test_both_roundings_are_one_code_apart_at_most_in_every_layer(rng, noise):
    graph = small_network(rng)
    ours, tflites = (quantize(graph, noise, Scheme(rounding=r)) for r in ("half_up", "tflite"))
    values = trace_fixed(tflites, {"x": rng.integers(-128, 128, (30, 3, 6, 6))})
    for one, other in zip(ours.nodes, tflites.nodes, strict=True):
        known = {name: values[name] for name in one.inputs if name in values}
        offset = 128 if one.op == "softmax" else 0  # its codes are unsigned in ours
        difference = layer_of(ours, one).run(known) - layer_of(tflites, other).run(known) - offset
        assert np.abs(difference).max() <= 1, one.name


def test_averages_to_another_format_are_refused(rng, noise):
    graph = small_network(rng)
    other = dataclasses.replace(graph.tensor("p"), quant=zero_points(p=(0.04, 0))["p"])
    graph = graph.replaced(tensors={**graph.tensors, "p": other})
    with pytest.raises(UnsupportedError, match="avg_pool 'p' has another format than its input"):
        quantize(graph, noise, Scheme(rounding="tflite"))
