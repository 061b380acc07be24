"""Unrolled loops compute what loops do, out of operators of the standard."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.ir import Tensor, verify
from nnef_hw.passes.loops.unroll_scan import UnrollScan
from nnef_hw.reference import run_float


def cell(extent):
    """Body of ``h' = tanh(x * w + h)`` with a labelled w and two scaled copies of h'."""
    body = Builder("cell")
    x, scale, h = (body.input(Tensor(name, (2, extent))) for name in ("x", "scale", "h"))
    weights = np.linspace(-1, 1, 2 * extent).reshape(2, extent)
    w = body.add(Tensor("w", weights.shape, data=weights, label="cell/w"))
    (product,) = body.node("mul", [x, w], {}, ["product"])
    (total,) = body.node("add", [product, h], {}, ["total"])
    (after,) = body.node("tanh", [total], {}, ["after"])
    body.node("mul", [after, scale], {}, ["scaled"])
    return body.build(["after", "scaled"])


def network(outputs, step=1, length=6, body=None):
    """Scan ``x`` of shape [2, length] along axis 1."""
    extent = abs(step)
    builder = Builder("net")
    x = builder.input(Tensor("x", (2, length)))
    scale = builder.input(Tensor("scale", (2, extent)))
    start = builder.constant("start", np.full((2, extent), 0.25))
    attrs = {
        "body": body or cell(extent),
        "scans": [(1, step)],
        "full": 1,
        "states": ["after"],
        "outputs": list(outputs),
    }
    names = [f"y{index}" for index in range(len(outputs))]
    builder.node("scan", [x, scale, start], attrs, names, ["scalar"] * len(outputs))
    return builder.build(names)


def assert_same_function(before, after, rng):
    verify(after)
    inputs = {name: rng.normal(size=(3, *before.tensor(name).shape)) for name in before.inputs}
    expected, found = run_float(before, inputs), run_float(after, inputs)
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("step", [1, 2, 6, -1, -3], ids="step {}".format)
def test_outputs_stay_the_same(step, rng):
    extent = abs(step)
    outputs = [
        ("after", "full", 1, extent),
        ("scaled", "full", 1, -extent),
        ("after", "last", 0, 1),
        ("h", "last", 0, 1),
        ("after", "full", 1, extent),
        ("x", "full", 1, extent),
        ("w", "last", 0, 1),
    ]
    graph = network(outputs, step)
    unrolled = UnrollScan()(graph)
    assert {node.op for node in unrolled.nodes} <= load_library("standard").keys()
    assert unrolled.outputs == graph.outputs
    assert_same_function(graph, unrolled, rng)


def test_copies_of_the_body_share_its_constants():
    unrolled = UnrollScan()(network([("after", "last", 0, 1)]))
    constants = [tensor for tensor in unrolled.tensors.values() if tensor.data is not None]
    assert sorted(tensor.label or tensor.name for tensor in constants) == ["cell/w", "start"]
    assert [node.op for node in unrolled.nodes].count("tanh") == 6
    assert [node.op for node in unrolled.nodes].count("split") == 1


def test_loops_in_loops_are_unrolled(rng):
    inner = network([("after", "last", 0, 1), ("scaled", "full", 1, 1)], length=3)
    outer = Builder("outer")
    x, scale, h = (
        outer.input(Tensor(name, shape))
        for name, shape in {"x": (2, 3), "scale": (2, 1), "h": (2, 3)}.items()
    )
    start = outer.constant("start", np.zeros((2, 1)))
    attrs = inner.nodes[0].attrs
    _, joined = outer.node("scan", [x, scale, start], attrs, ["last", "joined"], ["scalar"] * 2)
    outer.node("add", [joined, h], {}, ["after"])
    builder = Builder("net")
    inputs = [builder.input(Tensor(n, s)) for n, s in {"x": (2, 6), "scale": (2, 1)}.items()]
    state = builder.constant("state", np.ones((2, 3)))
    attrs = {
        "body": outer.build(["after"]),
        "scans": [(1, -3)],
        "full": 1,
        "states": ["after"],
        "outputs": [("after", "full", 1, -3)],
    }
    builder.node("scan", [*inputs, state], attrs, ["y"])
    graph = builder.build(["y"])
    unrolled = UnrollScan()(graph)
    assert "scan" not in {node.op for node in unrolled.nodes}
    assert_same_function(graph, unrolled, rng)


def test_names_that_are_taken_stay_apart(rng):
    graph = network([("after", "full", 1, 1)])
    occupied = Tensor("y0_after_3", (1,), data=np.ones(1))
    crowded = replace(graph, tensors={**graph.tensors, occupied.name: occupied})
    unrolled = UnrollScan()(crowded)
    assert unrolled.tensors.keys() >= {"y0_after_2", "y0_after_4"}
    assert_same_function(graph, unrolled, rng)


def test_graph_without_loops_is_left_alone():
    builder = Builder("net")
    builder.node("relu", [builder.input(Tensor("x", (2,)))], {}, ["y"])
    graph = builder.build(["y"])
    assert UnrollScan()(graph) is graph


@pytest.mark.parametrize(("longest", "ops"), [(5, {"scan"}), (6, {"split", "mul", "add", "tanh"})])
def test_loops_of_more_steps_than_wanted_are_left_alone(longest, ops):
    graph = network([("after", "last", 0, 1)])
    unrolled = UnrollScan(longest)(graph)
    assert {node.op for node in unrolled.nodes} - {"copy"} == ops
    assert (unrolled is graph) == (longest == 5)
