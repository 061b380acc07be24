"""Inputs that become states of a step network."""

import numpy as np
import pytest
from recurrent_graphs import gru

from nnef_hw.errors import UsageError
from nnef_hw.frontend import load, save
from nnef_hw.frontend.named_states import name_states
from nnef_hw.ir import open_states
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_float
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def step(tmp_path):
    """The file of a GRU of one step: x and h to y and h_next."""
    save(open_states(gru()), tmp_path / "gru.nnef.tgz")
    return tmp_path / "gru.nnef.tgz"


def test_a_named_state_is_a_variable(step, rng):
    graph = load(step, states={"h": "h_next"})
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    x = rng.normal(size=(3, 5, 3))
    np.testing.assert_allclose(
        run_float(graph, {"x": x})["y"], run_float(gru(), {"x": x})["y"], atol=1e-6
    )


def test_names_of_the_file_have_become_identifiers():
    net = GraphBuilder()
    net.op("add", net.input("x", (1, 2)), net.input("past_0_h", (1, 2)), name="present_0_h")
    net.op("relu", "present_0_h", name="y")
    graph = name_states(net.build("y", "present_0_h"), {"past.0.h": "/present.0/h"}, "net")
    assert graph.states["past_0_h"].result == "present_0_h"


def test_names_may_tell_the_states(step, caplog):
    assert list(load(step, states="auto").states) == ["h"]
    assert "states found by name: h=h_next" in caplog.text


def pairs(inputs, outputs):
    """States that are found between these names, all of one shape, and x and y of another."""
    net = GraphBuilder()
    net.op("relu", net.input("x", (1, 2)), name="y")
    for before, after in zip(inputs, outputs, strict=True):
        net.op("relu", net.input(before, (1, 3)), name=after)
    graph = net.build("y", *outputs)
    states = name_states(graph, "auto", "net").states
    return {name: state.result for name, state in states.items()}


@pytest.mark.parametrize(
    "names",
    [
        {"h_in": "h_out", "c_in": "c_out"},
        {"h0": "hn", "c0": "cn"},
        {"state": "stateN"},
        {"in_conv_state": "out_conv_state"},
        {"past.0.key": "present.0.key"},
        {"lstm_prev": "lstm_next"},
    ],
)
def test_pairs_of_names(names):
    assert pairs(names.keys(), names.values()) == names


def test_ambiguous_names_are_no_states():
    assert pairs(["h_in", "c_in", "h_prev"], ["h_out", "c_out", "h_next"]) == {"c_in": "c_out"}


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({"h_i": "h_next"}, "no input 'h_i' for the state h_i=h_next; inputs are x, h"),
        ({"h": "hnext"}, "no output 'hnext' for the state h=hnext; did you mean 'h_next'"),
        ({"h": "y"}, r"state 'h' has shape \[1, 4\], its next value 'y' \[1, 2\]"),
        ({"h": "h_next", "x": "y"}, r"state 'x' has shape \[1, 3\]"),
    ],
)
def test_states_that_cannot_be(step, states, message):
    with pytest.raises(UsageError, match=message):
        load(step, states=states)


def test_every_step_reads_something(rng):
    net = GraphBuilder()
    net.op("relu", net.input("h", (1, 2)), name="h_out")
    with pytest.raises(UsageError, match="all inputs are states: h; leave an input"):
        name_states(net.build(), {"h": "h_out"}, "net")
    net.op("add", "h_out", net.input("x", (1, 2)), name="y")
    with pytest.raises(UsageError, match="no names of an input and an output tell"):
        name_states(net.build("y"), "auto", "net")
    fixed = quantize(simplify(net.build("y")), {name: rng.normal(size=(5, 2)) for name in "hx"})
    with pytest.raises(UsageError, match="the model is fixed"):
        name_states(fixed, {"h": "y"}, "net")


def test_a_state_may_be_the_only_output():
    net = GraphBuilder()
    net.op("add", net.input("h", (1, 2)), net.input("x", (1, 2)), name="h_out")
    graph = name_states(net.build(), "auto", "net")
    assert (graph.inputs, graph.outputs, list(graph.states)) == (("x",), ("h_out",), ["h"])
