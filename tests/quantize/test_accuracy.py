"""Trained networks keep their accuracy: the promise of 8-bit quantization."""

import time
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.samples import Samples, load_samples, score

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"


def compare(graph, samples, scheme=None):
    """Scores of float and fixed on the evaluation samples, and their number."""
    canonical = simplify(graph)
    calibration, evaluation = samples.split()
    fixed = quantize(canonical, calibration.inputs, scheme or Scheme())
    codes = run_fixed(fixed, quantize_inputs(fixed, evaluation.inputs))
    name = graph.outputs[0]
    outputs = run_float(graph, evaluation.inputs)[name], dequantize_outputs(fixed, codes)[name]
    return *(score(y, evaluation.labels).value for y in outputs), len(evaluation)


def open_zoo(folder):
    graph = load(folder / "model.nnef.tgz")
    return graph, load_samples(folder / "samples.npz", graph)


@pytest.mark.zoo
@pytest.mark.parametrize(
    "name",
    ["digits_mlp", "mnist_tiny_cnn", "mnist_lenet5", "jvowels_conv1d_tanh", "mlperf_sww_ds1d"],
)
def test_trained_networks_keep_their_accuracy(zoo, name):
    """Half a point is the project's limit; one sample is the least that can differ."""
    real, fixed, count = compare(*open_zoo(zoo / name))
    assert fixed >= real - max(0.005, 1 / count) - 1e-9


@pytest.mark.zoo
@pytest.mark.parametrize(
    ("name", "real_accuracy"), [("mlperf_ic_resnet8", 0.85), ("mlperf_kws_dscnn", 0.87)]
)
def test_residual_and_depthwise_networks_keep_their_accuracy(zoo, name, real_accuracy):
    """Three tenths of a point at most."""
    real, fixed, count = compare(*open_zoo(zoo / name))
    assert real >= real_accuracy
    assert fixed >= real - max(0.003, 1 / count) - 1e-9


@pytest.mark.zoo
def test_regression_keeps_its_error(zoo):
    """Eight output bits of a sine alone have steps of 0.008; its samples come in order."""
    graph, samples = open_zoo(zoo / "tflm_hello_world")
    order = np.random.default_rng(0).permutation(len(samples))
    shuffled = Samples({"input": samples.inputs["input"][order]}, samples.labels[order])
    real, fixed, _ = compare(graph, shuffled)
    assert real < 0.013
    assert fixed < real + 0.01


@pytest.mark.zoo
def test_float_reference_agrees_with_other_engines(zoo):
    for folder in sorted(zoo.glob("*/expected.npz")):
        graph, samples = open_zoo(folder.parent)
        expected = np.load(folder)[graph.outputs[0]][:8]
        found = run_float(graph, samples[:8].inputs)[graph.outputs[0]]
        np.testing.assert_allclose(
            found, expected, rtol=1e-4, atol=2e-5, err_msg=folder.parent.name
        )


@pytest.mark.zoo
def test_fixed_reference_is_fast(zoo):
    """It checks whole sample sets against the hardware: over 1000 images a CPU second."""
    graph, samples = open_zoo(zoo / "mnist_tiny_cnn")
    fixed = quantize(simplify(graph), samples.inputs)
    codes = quantize_inputs(fixed, samples.inputs)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        run_fixed(fixed, codes)
        seconds.append(time.process_time() - start)
    assert len(samples) / min(seconds) > 1000


def test_example_keeps_its_accuracy():
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    real, fixed, count = compare(graph, load_samples(EXAMPLE / "samples.npz", graph))
    assert real >= 0.98
    assert fixed >= real - max(0.005, 1 / count) - 1e-9


@pytest.mark.parametrize(
    ("bits", "loss"), [((6, 8), 0.01), ((8, 6), 0.01), ((4, 8), 0.02), ((8, 16), 0.003)]
)
def test_example_with_other_widths(bits, loss):
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    samples = load_samples(EXAMPLE / "samples.npz", graph)
    real, fixed, _ = compare(graph, samples, Scheme(*bits))
    assert fixed >= real - loss


def test_example_fits_a_small_device():
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    parameters = sum(t.volume for t in graph.tensors.values() if t.data is not None)
    assert parameters < 3000
