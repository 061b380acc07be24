"""The tiny network of the command line's tests, on its way through the Python API."""

import numpy as np
import pytest
from cli_cases import tiny_graph, write_samples
from onnx import TensorProto, helper, numpy_helper

import nnef_hw as nh
from nnef_hw.frontend import save


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """Folder with ``tiny.nnef.tgz`` and ``samples.npz``."""
    folder = tmp_path_factory.mktemp("api")
    save(tiny_graph(), folder / "tiny.nnef.tgz")
    write_samples(folder / "samples.npz", [1, 6, 6], lambda rng, n: rng.integers(0, 4, n))
    return folder


@pytest.fixture(scope="session")
def model(sources):
    """The model."""
    return nh.load(sources / "tiny.nnef.tgz")


@pytest.fixture(scope="session")
def fixed(model, sources):
    """The same, quantized."""
    return model.quantize(sources / "samples.npz")


@pytest.fixture(scope="session")
def plan(fixed):
    """The same on a board."""
    return fixed.schedule("icebreaker")


@pytest.fixture(scope="session")
def build(plan, tmp_path_factory):
    """The same, built without a bitstream."""
    return plan.build(tmp_path_factory.mktemp("built") / "tiny", bitstream=False, frames="all")


@pytest.fixture
def proto():
    """A matrix product as an ONNX model."""
    weights = numpy_helper.from_array(np.eye(3, 2, dtype=np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "product", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
