"""Single operators that Khronos' own converter made from ONNX, with onnxruntime's results."""

import json

import numpy as np
import pytest
from pass_list import PassList

from nnef_hw.frontend import load
from nnef_hw.reference import run_float

OPS = PassList("khronos-nnef-tools-ops")
WITHOUT_DATA = [
    "conv3d",
    "depth_to_space",
    "depth_to_space_crd",
    "max_pool3d",
    "space_to_depth",
]
FLATTENED = ["space_to_depth"]


@pytest.fixture(scope="module")
def folder(suites):
    return suites / "khronos-nnef-tools-ops"


@pytest.fixture(scope="module")
def index(folder):
    return {case["name"]: case for case in json.loads((folder / "index.json").read_text())}


def results(graph, inputs):
    found = run_float(graph, {name: x[np.newaxis] for name, x in inputs.items()})
    return [found[name][0] if inputs else found[name] for name in graph.outputs]


def assert_equal(found, expected):
    """Compare within float32 rounding of a sum: 1e-5 of the largest magnitude."""
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        scale = 1 + np.nanmax(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * scale)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [name for name in OPS.passing if name not in WITHOUT_DATA])
def test_operators_agree_with_onnxruntime(folder, index, name):
    graph, case = load(folder / name / "nnef"), index[name]
    with np.load(folder / name / "io.npz") as data:
        samples = {f"in_{key}": data[f"in_{key}"] for key in case["inputs"]}
        expected = [data[f"out_{key}"] for key in case["outputs"]]
    found = results(graph, dict(zip(graph.inputs, samples.values(), strict=True)))
    for mine, theirs in zip(found, expected, strict=True):
        assert_equal(mine, theirs)


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_operators_without_data(folder, index, name, rng):
    graph, case = load(folder / name / "nnef"), index[name]
    shapes = [list(graph.tensor(x).shape) for x in graph.inputs]
    assert shapes == list(case["inputs"].values())
    inputs = {
        x: rng.standard_normal(s).astype(np.float32)
        for x, s in zip(graph.inputs, shapes, strict=True)
    }
    (found,) = results(graph, inputs)
    (shape,) = case["outputs"].values()
    found = found.reshape(shape) if name in FLATTENED else found
    assert list(found.shape) == shape
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
    session = onnxruntime.InferenceSession(str(folder / name / "model.onnx"))
    feed = dict(zip((x.name for x in session.get_inputs()), inputs.values(), strict=True))
    assert_equal(found, session.run(None, feed)[0])


@pytest.mark.parametrize("name", OPS.exceptions)
def test_exceptions_are_valid_documents(folder, name):
    assert load(folder / name / "nnef").outputs


def test_every_operator_is_on_the_list(index):
    assert not OPS.missing(index)
    assert len(OPS.passing) >= 100
