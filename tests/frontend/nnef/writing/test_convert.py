"""Models of real exporters, converted: the same function, in a document that anybody reads."""

import numpy as np
import pytest
from pass_list import PassList

from nnef_hw.frontend import detect_format, load, save
from nnef_hw.frontend.nnef.writing.expand import expand_compounds
from nnef_hw.passes.loops.unroll_scan import UnrollScan
from nnef_hw.reference import run_float

EXPORTS, OPERATORS = PassList("exports"), PassList("khronos-nnef-tools-ops")
SYMBOLS = {"cnn_dynbatch": {"B": 3}}
NUMPY = {"scalar": np.float32, "integer": np.int64, "logical": np.bool_}


def convert(path, target, *, expand):
    graph = load(path, dims=SYMBOLS.get(path.parent.name))
    unrolled = UnrollScan()(graph)
    save(expand_compounds(unrolled) if expand else unrolled, target)
    return graph


def assert_same_function(graph, target, rng, rtol):
    again = load(target)
    assert detect_format(target) == "NNEF 1.0.5"
    inputs = [
        rng.integers(0, 2, (1, *tensor.shape)).astype(NUMPY[tensor.dtype])
        if tensor.dtype != "scalar"
        else rng.normal(size=(1, *tensor.shape)).astype(np.float32)
        for tensor in map(graph.tensor, graph.inputs)
    ]
    expected = run_float(graph, dict(zip(graph.inputs, inputs, strict=True)))
    found = run_float(again, dict(zip(again.inputs, inputs, strict=True)))
    for one, other in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.fixture
def khronos():
    """The parser of the Khronos group."""
    return pytest.importorskip("nnef", reason="pip install nnef-hw[crosscheck]")


@pytest.mark.parametrize("expand", [False, True], ids=["flat", "primitives"])
@pytest.mark.parametrize("name", EXPORTS.passing)
def test_archive_of_an_exporter(name, expand, exports, tmp_path, rng):
    graph = convert(exports / name, tmp_path / "m", expand=expand)
    assert_same_function(graph, tmp_path / "m", rng, 1e-5 if expand else 1e-12)


@pytest.mark.parametrize("name", OPERATORS.passing)
def test_model_of_one_operator(name, suites, tmp_path, rng):
    path = suites / "khronos-nnef-tools-ops" / name / "nnef"
    graph = convert(path, tmp_path / "m", expand=False)
    assert_same_function(graph, tmp_path / "m", rng, 1e-12)


@pytest.mark.parametrize("expand", [False, True], ids=["flat", "primitives"])
@pytest.mark.parametrize("name", EXPORTS.passing)
def test_khronos_parser_takes_it(name, expand, exports, tmp_path, khronos):
    graph = convert(exports / name, tmp_path / "m", expand=expand)
    assert len(khronos.load_graph(str(tmp_path / "m")).inputs) == len(graph.inputs)
