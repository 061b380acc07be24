"""Trained networks keep their accuracy on samples that calibration did not see."""

import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.samples.samples import Samples, load_samples
from nnef_hw.samples.scoring import score

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"


def open_zoo(folder):
    graph = load(
        next(folder.glob("*.nnef.tgz")) if folder == EXAMPLE else folder / "model.nnef.tgz"
    )
    return graph, load_samples(folder / "samples.npz", graph)


@cache
def opened(folder):
    """A network, its samples and the score of the real network: several tests need them."""
    graph, samples = open_zoo(folder)
    _, evaluation = samples.split()
    real = score(run_float(graph, evaluation.inputs)[graph.outputs[0]], evaluation.labels).value
    return graph, samples, real


def fixed_score(graph, samples, scheme):
    """Return the score of the fixed network, their number, and its graph."""
    calibration, evaluation = samples.split()
    fixed = quantize(simplify(graph), calibration.inputs, scheme)
    codes = run_fixed(fixed, quantize_inputs(fixed, evaluation.inputs))
    outputs = dequantize_outputs(fixed, codes)[graph.outputs[0]]
    return score(outputs, evaluation.labels).value, len(evaluation), fixed


def require(real, fixed, count, loss):
    """Require a loss in points at most; one sample is the least that can differ."""
    assert fixed >= real - max(loss / 100, 1 / count) - 1e-9


@pytest.mark.zoo
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("digits_mlp", 0.97),
        ("jvowels_conv1d_tanh", 0.97),
        pytest.param("mlperf_ic_resnet8", 0.85, marks=pytest.mark.nightly),
        pytest.param("mlperf_kws_dscnn_savedmodel", 0.90, marks=pytest.mark.nightly),
        ("mlperf_sww_ds1d", 0.85),
        ("mnist_lenet5", 0.99),
        ("mnist_tiny_cnn", 0.98),
    ],
)
def test_eight_bits_lose_less_than_a_third_of_a_point(name, least, zoo):
    """The least accuracies of ic and kws are those of MLPerf Tiny's closed division."""
    graph, samples, real = opened(zoo / name)
    fixed, count, _ = fixed_score(graph, samples, Scheme())
    require(real, fixed, count, 0.3)
    assert fixed >= least


@pytest.mark.zoo
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mlperf_ic_resnet8", marks=pytest.mark.nightly),
        pytest.param("mlperf_kws_dscnn_savedmodel", marks=pytest.mark.nightly),
        pytest.param("mnist_lenet5", marks=pytest.mark.nightly),
        "mnist_tiny_cnn",
    ],
)
def test_four_bit_weights_lose_less_than_one_point_and_a_half(name, zoo):
    graph, samples, real = opened(zoo / name)
    fixed, count, _ = fixed_score(graph, samples, Scheme(weight_bits=4))
    require(real, fixed, count, 1.5)


SEARCHED = {
    "conv1_relu": 4, "dwconv1_relu": 5, "conv2_relu": 4, "dwconv2_relu": 5, "conv3_relu": 4,
    "dwconv3_relu": 4, "conv4_relu": 3, "dwconv4_relu": 3, "conv5_relu": 3, "fc1": 3,
}  # fmt: skip


@pytest.mark.zoo
@pytest.mark.nightly
def test_searched_widths_of_keyword_spotting_need_less_than_16_kilobytes(zoo):
    """What --bits auto --accuracy-drop 1.0 finds; it takes a minute to find."""
    graph, samples, real = opened(zoo / "mlperf_kws_dscnn_savedmodel")
    layers = {name: {"weight_bits": bits} for name, bits in SEARCHED.items()}
    fixed, count, graph = fixed_score(graph, samples, Scheme(layers=layers))
    require(real, fixed, count, 1.0)
    layers = (node for node in graph.nodes if node.op in {"conv", "linear"})
    filters = [graph.tensor(node.inputs[1]) for node in layers]
    bits = sum(x.volume * x.qtype.bits for x in filters)
    assert bits < 8 * 16384


@pytest.mark.zoo
def test_regression_keeps_its_error(zoo):
    """Eight output bits of a sine alone have steps of 0.008; its samples come in order."""
    graph, samples = open_zoo(zoo / "tflm_hello_world")
    order = np.random.default_rng(0).permutation(len(samples))
    shuffled = Samples({"input": samples.inputs["input"][order]}, samples.labels[order])
    _, evaluation = shuffled.split()
    real = score(run_float(graph, evaluation.inputs)[graph.outputs[0]], evaluation.labels).value
    fixed, _, _ = fixed_score(graph, shuffled, Scheme())
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
    graph, samples, _ = opened(zoo / "mnist_tiny_cnn")
    fixed = quantize(simplify(graph), samples[:50].inputs, Scheme(weight_rounding="nearest"))
    codes = quantize_inputs(fixed, samples.inputs)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        run_fixed(fixed, codes)
        seconds.append(time.process_time() - start)
    assert len(samples) / min(seconds) > 1000


@pytest.mark.parametrize(
    ("bits", "loss"),
    [((8, 8), 0.3), ((6, 8), 0.6), ((8, 6), 0.6), ((4, 8), 1.0), ((3, 8), 2.0), ((8, 12), 0.3)],
)
def test_example_keeps_its_accuracy(bits, loss):
    graph, samples, real = opened(EXAMPLE)
    fixed, count, _ = fixed_score(graph, samples, Scheme(*bits))
    assert real >= 0.98
    require(real, fixed, count, loss)


@pytest.mark.parametrize(
    ("arguments", "loss"),
    [
        ({"power_of_two": True}, 0.6),
        ({"symmetric": True}, 0.6),
        ({"mult_bits": 4}, 0.6),
        ({"mult_bits": 1}, 1.0),
        ({"per_channel": False, "equalize": True}, 0.6),
        ({"calibration": "minmax", "weight_rounding": "nearest", "correct_bias": False}, 0.6),
        ({"calibration": "percentile"}, 0.6),
        ({"calibration": "entropy"}, 1.0),
    ],
    ids=str,
)
def test_example_with_other_schemes(arguments, loss):
    graph, samples, real = opened(EXAMPLE)
    fixed, count, _ = fixed_score(graph, samples, Scheme(**arguments))
    require(real, fixed, count, loss)


def test_example_fits_a_small_device():
    graph, _, _ = opened(EXAMPLE)
    parameters = sum(t.volume for t in graph.tensors.values() if t.data is not None)
    assert parameters < 3000
