"""Gates of recurrent cells as one layer or several: the same codes, from other hardware."""

import numpy as np
import pytest
from recurrent_graphs import onnx_layer

from nnef_hw.boards import find_board
from nnef_hw.errors import TargetError
from nnef_hw.frontend import load
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.hardware.devices import LUT_SHARE
from nnef_hw.ir import Tensor, verify
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.beats.activity import make_timeline
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.siblings import apart
from nnef_hw.streaming.search import solver
from nnef_hw.streaming.search.solver import schedule

pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")


@pytest.fixture
def cell(tmp_path, rng):
    """Return ``cell(kind)``: a recurrent layer of three steps, fixed."""

    def fixed(kind, steps=3):
        path = onnx_layer(kind, tmp_path / "layer.onnx", steps=steps, size=3, outputs=("Y_h",))
        graph = simplify(load(path))
        return quantize(graph, {"x": rng.normal(size=(20, *graph.tensor("x").shape))})

    return fixed


def layers(graph):
    return [layer.node.op for layer in lower(graph).layers if layer.node.op != "slice"]


@pytest.mark.parametrize(("kind", "shared", "gates"), [("GRU", 3, 4), ("LSTM", 2, 5)])
def test_the_codes_are_the_same(kind, shared, gates, cell, rng):
    graph = cell(kind)
    form = apart(graph)
    verify(form)
    assert layers(graph).count("linear") == shared
    assert layers(form).count("linear") == gates
    x = {"x": rng.integers(0, 256, (50, *graph.tensor("x").shape))}
    for name, codes in run_fixed(graph, x).items():
        np.testing.assert_array_equal(run_fixed(form, x)[name], codes)


def test_fifos_that_end_a_deadlock_have_to_fit(tmp_path, rng):
    """Joins of the fastest design that seems to fit need deeper FIFOs than waits show."""
    path = onnx_layer("LSTM", tmp_path / "layer.onnx", steps=32, size=16, outputs=("Y_h",))
    graph = simplify(load(path))
    fixed = quantize(graph, {"x": rng.normal(size=(8, *graph.tensor("x").shape))})
    device = (board := find_board("icebreaker")).device
    plan = schedule(fixed, board)
    assert plan.resources.lut <= LUT_SHARE * device.lut
    assert plan.resources.bram <= device.bram


def test_a_part_of_a_part(rng):
    """What is taken apart adds a slice that does not begin with the first channel."""
    body, net = Builder("body"), Builder("net")
    x, h = body.input(Tensor("x", (1, 3))), body.input(Tensor("h", (1, 2)))

    def linear(source, outputs, name):
        shape = (outputs, source.shape[1])
        weights = body.constant(f"{name}_w", rng.normal(size=shape))
        bias = body.constant(f"{name}_b", rng.normal(size=(1, outputs)))
        return body.node("linear", [source, weights, bias], {}, [name])[0]

    def part(source, begin, end, name):
        attrs = {"axes": [1], "begin": [begin], "end": [end], "stride": [1]}
        return body.node("slice", [source], attrs, [name])[0]

    seen = linear(x, 8, "seen")
    (total,) = body.node("add", [part(seen, 4, 8, "upper"), linear(h, 4, "kept")], {}, ["total"])
    (z,) = body.node("sigmoid", [part(total, 0, 2, "first")], {}, ["z"])
    (n,) = body.node("tanh", [part(total, 2, 4, "second")], {}, ["n"])
    (both,) = body.node("mul", [z, n], {}, ["both"])
    body.node("add", [both, part(seen, 0, 2, "lower")], {}, ["next"])
    inputs = [net.input(Tensor("x", (4, 3))), net.constant("begin", np.zeros((1, 2)))]
    attrs = {
        "body": body.build(["next"]), "scans": [(0, 1)], "full": 0, "states": ["next"],
        "outputs": [("next", "last", 0, 1)],
    }  # fmt: skip
    (result,) = net.node("scan", inputs, attrs, ["y"])
    fixed = quantize(simplify(net.build([result.name])), {"x": rng.normal(size=(20, 4, 3))})
    form = apart(fixed)
    verify(form)
    assert layers(form).count("linear") == 1 + layers(fixed).count("linear")
    codes = {"x": rng.integers(0, 256, (50, 4, 3))}
    np.testing.assert_array_equal(run_fixed(form, codes)["y"], run_fixed(fixed, codes)["y"])


def test_nothing_to_take_apart(cell):
    graph = cell("RNN")
    assert apart(graph) is graph


def test_what_does_not_depend_on_a_state_stays_one(cell):
    """The gates of x are computed ahead of the loop."""
    form = apart(cell("GRU"))
    widths = [
        form.tensor(layer.node.inputs[1]).shape[0]
        for layer in lower(form).layers
        if layer.node.op == "linear"
    ]
    assert sorted(widths) == [3, 3, 3, 9]


@pytest.mark.parametrize("kind", ["GRU", pytest.param("LSTM", marks=pytest.mark.nightly)])
def test_gates_are_apart_where_there_is_room(kind, cell, simulate):
    graph, target = cell(kind), find_board("ulx3s_85f")
    plan = schedule(graph, target)
    assert plan.apart
    simulate(plan, graph).check(3)
    again = Streaming().read_plan(plan.to_json(), graph)
    assert again.dumps() == plan.dumps()
    report = Streaming().report(plan, graph, target, make_timeline(plan))
    names = {layer.name for layer in report.layers}
    assert names == {block.name for block in plan.blocks}


@pytest.mark.parametrize("frames", [0, pytest.param(3, marks=pytest.mark.nightly)])
def test_gates_share_a_layer_where_there_is_none(frames, cell, simulate, monkeypatch):
    graph, planned = cell("GRU"), solver._schedule

    def refused(form, *args):
        if form is not graph:
            raise TargetError("too many LUTs")
        return planned(form, *args)

    monkeypatch.setattr(solver, "_schedule", refused)
    plan = schedule(graph, find_board("icebreaker"))
    assert not plan.apart
    if frames:
        simulate(plan, graph).check(frames)


def test_the_smallest_design_that_is_fast_enough_shares(cell):
    """It is no larger than that of all layers."""
    graph, target = cell("GRU"), find_board("ulx3s_85f")
    plan = schedule(graph, target, target_fps=1000)
    assert not plan.apart
    assert plan.resources.lut < schedule(graph, target).resources.lut
