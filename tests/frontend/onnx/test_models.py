"""Trained networks and exporters' files: the same graph and numbers as from NNEF."""

import numpy as np
import pytest
from archives import unpack
from pass_list import PassList

from nnef_hw.cli import main
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.frontend.nnef.writing.digest import structure_hash
from nnef_hw.quantize import Scheme
from nnef_hw.reference import run_float
from nnef_hw.samples.samples import load_samples

NETWORKS = [
    "digits_mlp", "jvowels_conv1d_tanh", "mlperf_ic_resnet8", "mlperf_ic_resnet8_wide",
    "mlperf_kws_dscnn", "mlperf_kws_dscnn_savedmodel", "mlperf_sww_ds1d", "mnist_lenet5",
    "mnist_tiny_cnn", "tflm_hello_world",
]  # fmt: skip
BUILDABLE = [name for name in NETWORKS if "resnet" not in name]
EXPORTS = [
    "cnn", "gru", "lstm", "misc", "mlp", "ops", "resnetish", "rnn", "twoio", "unetish",
]  # fmt: skip
OPERATORS = PassList("khronos-nnef-tools-ops")
"""Models of Khronos's converter for its own tests."""


@pytest.fixture(params=NETWORKS)
def network(request, zoo):
    return zoo / request.param


def test_zoo_floats_are_as_expected(network):
    graph = load(network / "model.onnx")
    samples = load_samples(network / "samples.npz", graph)[:20]
    found = run_float(graph, samples.inputs)[graph.outputs[0]]
    expected = np.load(network / "expected.npz")["output"][:20]
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_zoo_graphs_are_those_of_nnef(network):
    onnx, nnef = load(network / "model.onnx"), load(network / "model.nnef.tgz")
    assert structure_hash(onnx) == structure_hash(nnef)


@pytest.mark.parametrize("name", BUILDABLE)
def test_zoo_fixed_graphs_are_those_of_nnef(name, zoo):
    hashes = []
    for model in ("model.onnx", "model.nnef.tgz"):
        graph = load(zoo / name / model)
        samples = load_samples(zoo / name / "samples.npz", graph)
        hashes.append(structure_hash(fix_model(graph, samples[:10], Scheme())[0]))
    assert hashes[0] == hashes[1]


@pytest.fixture(params=EXPORTS)
def export(request, exports):
    """Return a model's file, its graph, and its samples and results by name."""
    folder = exports / request.param
    path = folder / f"{request.param}.onnx"
    graph = load(path)
    inputs, outputs = (
        dict(zip(names, map(np.load, sorted(folder.glob(f"{side}*.npy"))), strict=True))
        for names, side in ((graph.inputs, "input"), (graph.outputs, "output"))
    )
    return path, graph, inputs, outputs


def test_exports_compute_what_torch_does(export):
    _, graph, inputs, outputs = export
    found = run_float(graph, inputs)
    for name, expected in outputs.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-6, atol=1e-6)


def test_converted_exports_compute_the_same(export, tmp_path):
    path, graph, inputs, _ = export
    assert main(["convert", str(path), str(tmp_path / "out.nnef.tgz")]) == 0
    converted = load(tmp_path / "out.nnef.tgz")
    expected = run_float(graph, inputs)
    found = run_float(converted, dict(zip(converted.inputs, inputs.values(), strict=True)))
    for one, other in zip(graph.outputs, converted.outputs, strict=True):
        np.testing.assert_allclose(found[other], expected[one], rtol=1e-6, atol=1e-6)


def test_converted_exports_are_what_khronos_reads(export, tmp_path):
    nnef = pytest.importorskip("nnef", reason="pip install nnef-hw[crosscheck]")
    path, *_ = export
    assert main(["convert", str(path), str(tmp_path / "out.nnef.tgz")]) == 0
    unpack(tmp_path / "out.nnef.tgz", tmp_path / "out")
    graph = nnef.load_graph(str(tmp_path / "out"))
    assert graph.operations[-1].name == load(tmp_path / "out.nnef.tgz").nodes[-1].op


@pytest.mark.parametrize("name", [*OPERATORS.passing, *OPERATORS.exceptions])
def test_single_operators_compute_what_onnxruntime_does(name, suites):
    folder = suites / "khronos-nnef-tools-ops" / name
    graph = load(folder / "model.onnx")
    if not (folder / "io.npz").exists():
        assert all(graph.tensor(output).volume for output in graph.outputs)
        return
    samples = np.load(folder / "io.npz")
    found = run_float(graph, {key: samples[f"in_{key}"] for key in graph.inputs})
    for output in graph.outputs:
        expected = samples[f"out_{output}"]
        result = found[output].reshape(expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
