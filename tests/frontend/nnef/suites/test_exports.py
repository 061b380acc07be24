"""Archives that real exporters wrote from PyTorch, against what PyTorch computed."""

import numpy as np
import pytest
from pass_list import PassList

from nnef_hw.frontend import load
from nnef_hw.frontend.nnef.reader import detect_dialect
from nnef_hw.reference import run_float

ARCHIVES = PassList("exports")
SYMBOLS = {"cnn_dynbatch": {"B": 3}}
DIALECTS = {
    "tract": "tract (torch_to_nnef)",
    "tract-opl": "tract",
    "khronos": "NNEF 1.0.5",
    "nnef_tools": "NNEF 1.0.5",
}


def samples(folder, kind):
    return [np.load(path) for path in sorted(folder.glob(f"{kind}*.npy"))]


def compute(graph, folder):
    """Return the graph's outputs and PyTorch's, all samples stacked."""
    inputs, expected = samples(folder, "input"), samples(folder, "output")
    found = [
        run_float(graph, dict(zip(graph.inputs, arrays, strict=True)))
        for arrays in zip(*inputs, strict=True)
    ]
    stacked = [np.stack([values[name] for values in found]) for name in graph.outputs]
    return list(zip(stacked, expected, strict=True))


@pytest.mark.parametrize("name", ARCHIVES.passing)
def test_outputs_are_those_of_pytorch(exports, name):
    model = name.partition("/")[0]
    graph = load(exports / name, dims=SYMBOLS.get(model))

    for found, expected in compute(graph, exports / model):
        assert found.shape == expected.shape
        difference = np.abs(found - expected)
        if model.startswith("q8"):
            quant = graph.tensor(graph.nodes[-1].inputs[0]).quant
            steps = np.rint(difference / quant.args["scale"])
            assert steps.max() <= (1 if model.endswith("perchannel") else 0)
            assert difference.max() <= steps.max() * quant.args["scale"] + 1e-6
        else:
            tolerance = 1e-3 if model.endswith("f16") else 1e-6
            assert (difference / np.maximum(1, np.abs(expected))).max() <= tolerance


@pytest.mark.parametrize("name", ARCHIVES.passing)
def test_the_dialect_is_found(exports, name):
    exporter = name.removesuffix(".nnef.tgz").rpartition(".")[2]

    assert detect_dialect(exports / name) == DIALECTS[exporter]


def test_every_archive_is_listed(exports):
    names = {f"{path.parent.name}/{path.name}" for path in exports.glob("*/*.nnef.tgz")}

    assert not ARCHIVES.missing(names)
