"""Loops that go on in the next inference."""

import numpy as np
import pytest
from recurrent_graphs import looped

from nnef_hw.errors import UnsupportedError, UsageError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.named_states import name_states
from nnef_hw.ir import Tensor, verify
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float


@pytest.mark.parametrize(("steps", "last"), [(1, False), (1, True), (2, False), (3, False)])
def test_steps_are_those_of_the_whole_loop(steps, last, rng):
    x = rng.normal(size=(4, 6, 3))
    graph = name_states(looped(steps, last=last), "loops", "net")
    verify(graph)
    assert list(graph.states) == ["y_state0"]
    expected = run_float(looped(6), {"x": x})["y"]
    for net in (graph, simplify(graph)):
        found = run_float(net, {"x": x.reshape(4, 6 // steps, steps, 3)})["y"]
        np.testing.assert_allclose(found.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (looped(1, step=-1), "loop 'y' cannot be continued: it runs backwards"),
        (
            looped(1, initial=lambda net: net.input(Tensor("h0", (1, 1, 3)))),
            "loop 'y' cannot be continued: its initial state is computed",
        ),
    ],
)
def test_loops_that_cannot_go_on(graph, message):
    with pytest.raises(UnsupportedError, match=message):
        name_states(graph, "loops", "net")


def test_there_must_be_a_loop():
    net = Builder("net")
    net.node("relu", [net.input(Tensor("x", (1, 3)))], {}, ["y"])
    with pytest.raises(UsageError, match="the model has no loops to continue"):
        name_states(net.build(["y"]), "loops", "net")
