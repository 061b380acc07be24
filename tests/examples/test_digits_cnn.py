"""examples/digits_cnn: what its training script exports is the network of the archive."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

import nnef_hw as nh

FOLDER = Path(__file__).parents[2] / "examples" / "digits_cnn"
SAMPLES = FOLDER / "samples.npz"


@pytest.fixture(scope="module")
def archive():
    return nh.load(FOLDER / "digits_cnn.nnef.tgz")


def parameters(model):
    """Return filters and biases in the order of the layers, without axes of 1."""
    graph = model.graph
    constants = (
        graph.tensor(name).data for node in graph.nodes for name in node.inputs
        if graph.tensor(name).label is not None
    )  # fmt: skip
    return [np.squeeze(value) for value in constants]


def test_the_export_has_the_same_integers_and_hardware(archive):
    exported = nh.load(FOLDER / "digits_cnn.onnx")
    for found, expected in zip(parameters(exported), parameters(archive), strict=True):
        np.testing.assert_array_equal(found, expected)
    both = [model.quantize(SAMPLES) for model in (exported, archive)]
    codes = [fixed.run_codes(SAMPLES)["output"] for fixed in both]
    np.testing.assert_array_equal(*codes)
    plans = [fixed.schedule("icebreaker") for fixed in both]
    assert plans[0].interval == plans[1].interval == 1152
    assert plans[0].latency == plans[1].latency == 2407
    assert plans[0].resources == plans[1].resources


def test_the_script_exports_as_it_did(archive, tmp_path):
    torch = pytest.importorskip("torch", reason="the extra train is not installed")
    pytest.importorskip("sklearn", reason="the extra train is not installed")
    spec = importlib.util.spec_from_file_location("train", FOLDER / "train.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    network = script.make_network()
    with torch.no_grad():
        for into, value in zip(network.parameters(), parameters(archive), strict=True):
            into.copy_(torch.from_numpy(np.array(value).reshape(into.shape)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter by tracing, which needs no library
        script.export(network, tmp_path / "digits_cnn.onnx")
    shipped, again = (nh.load(folder / "digits_cnn.onnx") for folder in (FOLDER, tmp_path))
    assert repr(shipped) == repr(again)
    np.testing.assert_array_equal(
        *(model.quantize(SAMPLES).run_codes(SAMPLES)["output"] for model in (shipped, again))
    )
