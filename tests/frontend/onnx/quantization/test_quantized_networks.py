"""Trained networks that onnxruntime quantized, against its own integers."""

import logging
from functools import cache

import numpy as np
import pytest
from onnx_runtime import compare_layers, quantize, run_onnxruntime

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.quantize import Scheme
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.run.rtl import run_rtl
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
pytestmark = pytest.mark.zoo

_log = logging.getLogger(__name__)

STYLES = {
    "qdq": {"style": "QDQ"},
    "qdq-int8-channels": {"style": "QDQ", "activations": "QInt8", "per_channel": True},
    "qoperator": {"style": "QOperator"},
    "qoperator-int8-channels": {
        "style": "QOperator", "activations": "QInt8", "per_channel": True,
    },
}  # fmt: skip
WITH_ZERO_POINTS = {"uint8-weights": {"style": "QOperator", "weights": "QUInt8"}}
CHAINS = ("digits_mlp", "mnist_tiny_cnn", "mnist_lenet5")
DEEP = ("mlperf_kws_dscnn", "mlperf_ic_resnet8")
TABLES = {"softmax", "tanh"}
"""Functions that onnxruntime approximates by tables of its own."""


@pytest.fixture(scope="session")
def open_network(zoo, tmp_path_factory):
    """Return a function that quantizes a network: its path, and samples to test it with."""

    @cache
    def quantize_network(name, style):
        source = zoo / name / "model.onnx"
        x = np.load(zoo / name / "samples.npz")["inputs"].astype(np.float32)
        graph = load(source)
        x = x.reshape(len(x), *graph.tensor(graph.inputs[0]).shape[1:])
        path = tmp_path_factory.mktemp(name) / f"{style}.onnx"
        return quantize(source, path, x[:16], **{**STYLES, **WITH_ZERO_POINTS}[style]), x[16:]

    return quantize_network


def distances(found, expected, scale):
    """Return by how many codes results are apart, and log the share of those that are equal."""
    error = np.rint(np.abs(found - expected) / scale)
    _log.info("%.4f%% of %d codes are equal", 100 * (error == 0).mean(), error.size)
    return error


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", [*CHAINS, "jvowels_conv1d_tanh", *DEEP])
def test_layers_compute_the_codes_of_onnxruntime(name, style, open_network):
    path, x = open_network(name, style)
    count = unequal = 0
    for node, exact, codes in compare_layers(load(path), path, x[:8]):
        rounded = np.clip(np.floor(exact + 0.5), codes.min(), codes.max())
        differs = rounded != codes
        count, unequal = count + codes.size, unequal + differs.sum()
        assert np.abs(rounded - codes).max() <= 1
        if node is None or node.op not in TABLES:
            # The only cause is where onnxruntime rounds: halves to even, and in float32.
            assert np.abs(exact[differs] % 1 - 0.5).max(initial=0) < 1e-4
    _log.info("%.4f%% of %d codes are equal", 100 - 100 * unequal / count, count)
    assert unequal / count < 1e-3


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("name", "most", "share"),
    [
        ("digits_mlp", 0, 1.0),
        ("mnist_tiny_cnn", 0, 1.0),
        ("mnist_lenet5", 0, 1.0),
        ("jvowels_conv1d_tanh", 1, 0.98),
        ("mlperf_kws_dscnn", 1, 0.9),
        # With one scale before and behind its average, the means of 64 codes are often halves.
        ("mlperf_ic_resnet8", 20, 0.8),
    ],
)
def test_results_are_those_of_onnxruntime(name, style, most, share, open_network):
    path, x = open_network(name, style)
    graph, x = load(path), x[:16]
    (result,) = graph.outputs
    (expected,) = run_onnxruntime(path, [x]).values()
    found = run_float(graph, {graph.inputs[0]: x})[result]
    error = distances(found, expected, graph.tensor(result).quant.args["scale"])
    assert error.max() <= most
    assert (error == 0).mean() >= share


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("mult_bits", "share"), [(16, 0.93), (24, 0.99)])
@pytest.mark.parametrize("name", CHAINS)
def test_fixed_networks_need_no_samples(name, style, mult_bits, share, open_network):
    path, x = open_network(name, style)
    x = x[:100]
    (expected,) = run_onnxruntime(path, [x]).values()
    fixed, _ = fix_model(load(path), None, Scheme(mult_bits=mult_bits))
    (result,) = fixed.outputs
    codes = run_fixed(fixed, quantize_inputs(fixed, {fixed.inputs[0]: x}))
    found = dequantize_outputs(fixed, codes)[result].reshape(expected.shape)
    error = distances(found, expected, fixed.tensor(result).qtype.scale)
    assert error.max() <= 1
    assert (error == 0).mean() >= share


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "style", "last", "board", "target_fps"),
    [
        ("digits_mlp", "uint8-weights", None, "icebreaker", None),
        ("mnist_tiny_cnn", "qdq-int8-channels", None, "icebreaker", None),
        # The first layers of each kind, as small designs, which are simulated soon.
        pytest.param(
            "mlperf_kws_dscnn", "qdq", "dwconv2_relu", "ulx3s_85f", 1000, marks=pytest.mark.nightly
        ),
        pytest.param(
            "mlperf_ic_resnet8", "qdq", "add1_relu", "ulx3s_85f", 500, marks=pytest.mark.nightly
        ),
    ],
)
def test_hardware_is_the_quantized_network(name, style, last, board, target_fps, open_network):
    path, x = open_network(name, style)
    cut = [f"{last}_DequantizeLinear_Output"] if last else ()
    fixed, _ = fix_model(load(path, outputs=cut), None)
    plan = schedule(fixed, find_board(board), target_fps=target_fps)
    codes = quantize_inputs(fixed, {fixed.inputs[0]: x[: 2 if target_fps else 8]})
    outcome = run_rtl(to_verilog(Accelerator(plan, fixed)), plan, fixed, codes)
    [output] = fixed.outputs
    np.testing.assert_array_equal(outcome.codes[output], run_fixed(fixed, codes)[output])
    assert outcome.latency == plan.latency
