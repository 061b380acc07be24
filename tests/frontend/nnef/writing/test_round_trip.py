"""What is saved loads again as the same graph, and the Khronos parser takes it."""

import zlib

import numpy as np
import pytest
from random_graphs import OPERATORS, RandomGraph

from nnef_hw.frontend.nnef import load_nnef, save_nnef
from nnef_hw.frontend.nnef.writing.expand import expand_compounds
from nnef_hw.reference import run_float


def rng_of(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def assert_same_graph(graph, again):
    """Compare all but the labels of constants that had none, and the width of floats."""
    assert (again.inputs, again.outputs) == (graph.inputs, graph.outputs)
    nodes, others = ([describe(node) for node in each.nodes] for each in (graph, again))
    assert nodes == others
    assert again.tensors.keys() == graph.tensors.keys()
    for name, tensor in graph.tensors.items():
        other = again.tensor(name)
        assert (other.shape, other.dtype) == (tensor.shape, tensor.dtype)
        assert tensor.label in {None, other.label}
        np.testing.assert_equal(other.data, tensor.data)
        assert quantization(other) == quantization(tensor)
    assert again.states.keys() == graph.states.keys()
    for name, state in graph.states.items():
        assert again.states[name].result == state.result
        np.testing.assert_array_equal(again.states[name].initial, state.initial)


def describe(node):
    return node.op, node.inputs, node.outputs, dict(node.attrs)


def quantization(tensor):
    if tensor.quant is None:
        return None
    return tensor.quant.op, {key: np.asarray(x).tolist() for key, x in tensor.quant.args.items()}


def assert_same_function(graph, again, rng):
    kinds = {"logical": bool, "integer": np.int64, "scalar": np.float64}
    inputs = {
        name: rng.integers(-5, 6, (2, *graph.tensor(name).shape)).astype(
            kinds[graph.tensor(name).dtype]
        )
        for name in graph.inputs
    }
    expected, found = run_float(graph, inputs), run_float(again, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


def round_trip(net, path, rng):
    graph = net.build()
    save_nnef(graph, path)
    again = load_nnef(path)
    assert_same_graph(graph, again)
    assert_same_function(graph, again, rng)
    second = path.with_name("second")
    save_nnef(again, second)
    assert (second / "graph.nnef").read_text() == (path / "graph.nnef").read_text()


@pytest.mark.parametrize("op", OPERATORS)
def test_operator_comes_back(op, tmp_path):
    rng = rng_of(op)
    net = RandomGraph(rng)
    for _ in range(3):
        net.apply(op)
    round_trip(net, tmp_path / "m", rng)


@pytest.mark.parametrize("seed", range(30))
def test_random_graph_comes_back(seed, tmp_path):
    rng = rng_of(seed)
    net = RandomGraph(rng)
    for index in rng.integers(len(OPERATORS), size=12):
        net.apply(OPERATORS[index])
    if seed % 3 == 0:
        net.keep_state()
    round_trip(net, tmp_path / "m", rng)


@pytest.mark.parametrize("expand", [False, True], ids=["flat", "primitives"])
@pytest.mark.parametrize("op", OPERATORS)
def test_khronos_parser_takes_operator(op, expand, tmp_path):
    khronos = pytest.importorskip("nnef", reason="pip install nnef-hw[crosscheck]")
    net = RandomGraph(rng_of(op))
    for _ in range(3):
        net.apply(op)
    net.keep_state()
    graph = expand_compounds(net.build()) if expand else net.build()
    save_nnef(graph, tmp_path / "m")
    read = khronos.load_graph(str(tmp_path / "m"))
    names = {item.name for item in read.tensors.values()}
    assert names >= {name for node in graph.nodes for name in node.outputs}
    for name, tensor in graph.tensors.items():
        if tensor.label is not None and tensor.quant is None:
            np.testing.assert_array_equal(read.tensors[name].data, tensor.data)
