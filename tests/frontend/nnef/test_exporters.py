"""What torch_to_nnef writes for Khronos against the specification, read with a warning."""

import logging

import numpy as np
import pytest

from nnef_hw.errors import NnefHwError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

PARAMETERS = ("mean", "var", "bias", "weight")
X = np.random.default_rng(3).normal(size=(2, 2, 4, 5))


def statements(*shape, epsilon="variable<scalar>(label = 'eps', shape = [])"):
    """Return a batch normalization as the exporter writes one, and its parameters."""
    rng = np.random.default_rng(1)
    arrays = {name: rng.uniform(0.5, 2.0, shape).astype(np.float32) for name in PARAMETERS}
    lines = [
        f"{name} = variable<scalar>(label = '{name}', shape = {list(shape)});"
        for name in PARAMETERS
    ]
    lines.append(f"eps = {epsilon};")
    lines.append("y = batch_normalization(x, mean, var, bias, weight, epsilon = eps);")
    return lines, arrays | {"eps": np.float32(0.25)}


def expected(arrays):
    mean, var, bias, weight = (
        arrays[name].astype(np.float64).reshape(1, -1, 1, 1) for name in PARAMETERS
    )
    return (X - mean) / np.sqrt(var + 0.25) * weight + bias


@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2), (1, 1, 1, 2)])
@pytest.mark.parametrize(
    "epsilon",
    ["variable<scalar>(label = 'eps', shape = [])", "constant(shape = [1], value = [0.25])"],
)
def test_batch_normalizations_are_read(shape, epsilon, write_model, caplog):
    lines, arrays = statements(*shape, epsilon=epsilon)
    folder = write_model(*lines, shape="[1, 2, 4, 5]", **arrays)
    with caplog.at_level(logging.WARNING):
        graph = load_nnef(folder, lenient=True)
    np.testing.assert_allclose(run_float(graph, {"x": X})["y"], expected(arrays), rtol=1e-6)
    assert simplify(graph).nodes
    texts = [record.getMessage() for record in caplog.records]
    assert any("'epsilon' is a tensor; write epsilon = 0.25" in text for text in texts)
    assert any("lie along the last axis" in text for text in texts) == (
        len(shape) > 2 and shape[3] > 1
    )


def test_the_specification_forbids_both(write_model):
    lines, arrays = statements(1, 2)
    folder = write_model(*lines, shape="[1, 2, 4, 5]", **arrays)
    with pytest.raises(NnefHwError, match=r"'epsilon' must be scalar.*--lenient"):
        load_nnef(folder)


@pytest.mark.parametrize(
    ("epsilon", "what"),
    [("exp(x)", "which is computed"), ("constant(shape = [2], value = [0.1, 0.2])", r"\[2\]")],
)
def test_other_tensors_are_refused(epsilon, what, write_model):
    lines, arrays = statements(1, 2, epsilon=epsilon)
    folder = write_model(*lines, shape="[1, 2, 4, 5]", **arrays)
    with pytest.raises(
        NnefHwError, match=f"'epsilon' must be scalar, not the tensor 'eps'.*{what}"
    ):
        load_nnef(folder, lenient=True)
