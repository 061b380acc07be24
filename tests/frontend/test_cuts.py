"""Parts of NNEF graphs, between values of one's choice."""

import re

import numpy as np
import pytest

from nnef_hw.cli import main
from nnef_hw.errors import UsageError
from nnef_hw.frontend import load, save
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_float
from nnef_hw.testing import GraphBuilder

X = np.array([[-1.0, 2.0, -3.0, 4.0]])


@pytest.fixture
def path(tmp_path):
    """A front end, two heads, and a state that one of them reads."""
    g = GraphBuilder("net")
    x, z = g.input("x", (1, 4)), g.input("z", (1, 4))
    s = g.state("s", [[1.0, 2.0, 3.0, 4.0]])
    front = g.op("relu", g.op("neg", x, name="a"), name="front")
    g.op("add", front, z, name="y")
    kept = g.op("add", front, s, name="kept")
    g.update("s", kept)
    g.op("neg", kept, name="w")
    save(g.build("y", "w"), tmp_path / "net.nnef.tgz")
    return tmp_path / "net.nnef.tgz"


def test_what_computes_inputs_is_left_out(path):
    graph = load(path, inputs=["front"], outputs=["y"])
    assert (graph.inputs, graph.outputs, list(graph.states)) == (("z", "front"), ("y",), [])
    assert [node.op for node in graph.nodes] == ["add"]
    assert "a" not in graph.tensors
    assert run_float(graph, {"front": X, "z": X})["y"].tolist() == (2 * X).tolist()


def test_states_stay_that_results_depend_on(path):
    graph = load(path, inputs=["front"], outputs=["w"])
    assert (graph.inputs, graph.outputs, len(graph.states)) == (("front",), ("w",), 1)
    found = run_float(graph, {"front": np.stack([X[0], X[0]])})["w"]
    assert found.tolist() == (-np.array([X[0], 2 * X[0]]) - [1.0, 2.0, 3.0, 4.0]).tolist()


def test_results_alone(path):
    graph = load(path, outputs=["front", "a"])
    assert (graph.inputs, graph.outputs) == (("x",), ("front", "a"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ["fronts"]}, "there is no value 'fronts' to begin the graph at"),
        ({"outputs": ["yy"]}, "there is no value 'yy' to cut the graph at"),
        ({"inputs": ["a", "front"]}, "no result needs 'a', where the graph should begin"),
    ],
)
def test_refused(options, message, path):
    with pytest.raises(UsageError, match=re.escape(message)):
        load(path, **options)


def test_a_fixed_model_keeps_its_ends(path, tmp_path, rng):
    graph = simplify(load(path, outputs=["y"]))
    samples = {name: rng.normal(size=(8, 4)) for name in graph.inputs}
    save(quantize(graph, samples), tmp_path / "fixed.nnef.tgz")
    with pytest.raises(UsageError, match="the model is fixed"):
        load(tmp_path / "fixed.nnef.tgz", outputs=["y"])


def test_command_line(path, capsys):
    assert main(["simplify", str(path), "--inputs", "front", "--outputs", "y"]) == 0
    assert "input front: scalar[1, 4]" in capsys.readouterr().out
