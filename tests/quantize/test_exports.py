"""Networks that torch quantized, as its exporter wrote them: real numbers and integers."""

import numpy as np
import pytest

from nnef_hw.run.executors import make_executor

# Codes that differ from torch's, of the real-valued and of the fixed network; none by more than 1.
NETWORKS = {
    "q8_cnn_pertensor": (0, 4),
    "q8_mlp_pertensor": (0, 0),
    "q8_cnn_perchannel": (8, 9),
    "q8_mlp_perchannel": (1, 1),
}


@pytest.mark.parametrize(("name", "different"), NETWORKS.items())
def test_quantized_networks_compute_what_torch_computes(exports, name, different):
    path = exports / name / f"{name}.tract.nnef.tgz"
    x, y = (np.load(exports / name / f"{key}.npy") for key in ("input", "output"))
    x, y = (array.reshape(-1, *array.shape[2:]) for array in (x, y))
    fixed = make_executor(path, "fixed")
    step = fixed.graph.tensor("output").qtype.scale

    for executor, most in zip((make_executor(path, "float"), fixed), different, strict=True):
        difference = np.abs(executor.run({"input": x})["output"] - y) / step
        np.testing.assert_allclose(difference, np.rint(difference), atol=1e-4)
        assert np.rint(difference).max() <= 1
        assert np.count_nonzero(np.rint(difference)) <= most
