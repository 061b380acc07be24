"""Small TensorFlow Lite models, built where a test wants them."""

import numpy as np
import pytest

from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed, run_float

pytest.importorskip("tflite", reason="pip install nnef-hw[tflite]")


@pytest.fixture
def read(tmp_path):
    """Write a model and load it."""

    def read_model(model, **options):
        return load(model.save(tmp_path / "model.tflite"), **options)

    return read_model


@pytest.fixture
def compute(read):
    """Return the float results of a model for one array per input, in the file's shapes."""

    def compute_model(model, *arrays):
        graph = read(model)
        inputs = {
            name: np.asarray(x, np.float64) for name, x in zip(graph.inputs, arrays, strict=True)
        }
        found = run_float(graph, inputs)
        results = [found[name].reshape(graph.tensor(name).shape) for name in graph.outputs]
        return results[0] if len(results) == 1 else results

    return compute_model


@pytest.fixture
def codes(read):
    """Return the codes of a model's only output for codes of its inputs.

    Samples of one with states are sequences of one step.
    """

    def compute_codes(model, *arrays):
        graph = quantize(simplify(read(model)), None)
        inputs = {
            name: np.asarray(x, np.int64) for name, x in zip(graph.inputs, arrays, strict=True)
        }
        if graph.states:
            inputs = {name: x[:, np.newaxis, np.newaxis] for name, x in inputs.items()}
        return run_fixed(graph, inputs)[graph.outputs[0]]

    return compute_codes
