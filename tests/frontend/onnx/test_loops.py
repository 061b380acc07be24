"""Loops that are recurrences become a ``scan``; all others are unrolled and share their weights."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime says what is right")

STEPS, INPUTS, UNITS = 5, 3, 4

READS = {
    "index": ["xt = Gather <axis = 0> (x, t)"],
    "list of one": [
        "u = Unsqueeze(t, zero)", "xu = Gather <axis = 0> (x, u)", "xt = Squeeze(xu, zero)",
    ],
    "slice": [
        "b = Unsqueeze(t, zero)", "e = Add(b, one1)", "xs = Slice(x, b, e, zero)",
        "xt = Squeeze(xs, zero)",
    ],
    "backwards": ["r = Sub(last, t)", "xt = Gather <axis = 0> (x, r)"],
    "negative": ["n = Neg(t)", "r = Sub(n, one)", "xt = Gather <axis = 0> (x, r)"],
    "every other": ["dt = Add(t, t)", "r = Mod(dt, steps)", "xt = Gather <axis = 0> (x, r)"],
}  # fmt: skip
"""Ways to read the input of turn t."""


def lines(statements):
    return "\n".join(statements)


def loop(read=READS["index"], *, counter="t", more=(), steps=STEPS, trips=None):
    """Return a model of h = tanh(x[t] W + h R + b) in the form of tf2onnx, with counters."""
    model = onnx.parser.parse_model(f"""
    <ir_version: 8, opset_import: ["" : 18]>
    net (float[{steps},1,{INPUTS}] x) => (float[1,{UNITS}] last_h, float[{steps},1,{UNITS}] all)
    <int64 trips = {{{trips or 9223372036854775807}}}, bool go = {{1}}, int64 nought = {{0}}> {{
      begun = Constant <value = float[1,{UNITS}] {{0.5, 0, -0.5, 0.25}}> ()
      size = Shape(x)
      c1, c2, last_h, total, whole, all = Loop (trips, go, nought, nought, begun, nought, x) <
        body = turn (int64 i, bool c, int64 k, int64 t, float[1,{UNITS}] h, int64 m, xx)
            => (bool d, int64 k2, int64 t2, float[1,{UNITS}] h2, int64 m, xx, float[1,{UNITS}] y) {{
          t2 = Add(t, one)
          k2 = Add(k, one)
          {lines(read).replace("(x,", "(xx,").replace("t)", f"{counter})")}
          a = MatMul(xt, W)
          q = MatMul(h, R)
          s = Add(a, q)
          {lines(more or ["s1 = Identity(s)"])}
          s2 = Add(s1, B)
          h2 = Tanh(s2)
          d = Less(t2, steps)
          y = Identity(h2)
        }}
      >
    }}""")
    rng = np.random.default_rng(0)
    [node] = [node for node in model.graph.node if node.op_type == "Loop"]
    body = node.attribute[0].g
    constants = {
        "W": rng.normal(0, 0.5, (INPUTS, UNITS)), "R": rng.normal(0, 0.5, (UNITS, UNITS)),
        "B": rng.normal(0, 0.2, UNITS),
    }  # fmt: skip
    for name, data in constants.items():
        body.initializer.append(numpy_helper.from_array(data.astype(np.float32), name))
    integers = {"one": 1, "last": steps - 1, "steps": steps, "zero": [0], "one1": [1]}
    for name, value in integers.items():
        body.initializer.append(numpy_helper.from_array(np.asarray(value, np.int64), name))
    return model


def loaded(model, tmp_path):
    """Return the graph of a model that computes what ONNX says of noise."""
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    graph = load(path)
    shapes = [[d.dim_value for d in x.type.tensor_type.shape.dim] for x in model.graph.input]
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    names = [item.name for item in model.graph.input]
    session = onnxruntime.InferenceSession(path)
    wanted = session.run(None, dict(zip(names, arrays, strict=True)))
    for form in (graph, simplify(graph)):
        found = run_float(form, dict(zip(form.inputs, arrays, strict=True)))
        for name, value in zip(form.outputs, wanted, strict=True):
            np.testing.assert_allclose(found[name].reshape(value.shape), value, atol=2e-6)
    return graph


def scans(graph):
    return [node for node in graph.nodes if node.op == "scan"]


def parameters(graph):
    """Return how many numbers the weights of a graph and of its loops have."""
    graphs = [graph, *(node.attrs["body"] for node in scans(graph))]
    tensors = [tensor for each in graphs for tensor in each.tensors.values()]
    return sum(x.volume for x in tensors if x.label and x.dtype == "scalar")


OWN = INPUTS * UNITS + UNITS * UNITS + UNITS


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("counter", ["t", "i"])
def test_a_recurrence_is_a_scan(read, counter, tmp_path):
    graph = loaded(loop(read, counter=counter), tmp_path)
    [node] = scans(graph)
    assert parameters(graph) == OWN + UNITS, "its own and the initial state"
    [(axis, step)] = node.attrs["scans"]
    assert (axis, step) == (0, -1 if "r = Sub" in lines(read) else 1)
    assert len(node.attrs["states"]) == 1, "counters are no states"


def test_the_number_of_turns_may_be_given(tmp_path):
    model = loop(trips=STEPS)
    [node] = scans(loaded(model, tmp_path))
    assert node.attrs["scans"] == [(0, 1)]


def test_fewer_turns_than_steps_take_the_first_ones(tmp_path):
    model = loop(trips=3)
    model.graph.output[1].type.tensor_type.shape.dim[0].dim_value = 3
    [node] = scans(loaded(model, tmp_path))
    assert node.inputs[0].startswith("c1_gather")


@pytest.mark.parametrize(
    "more",
    [
        ["f = Cast <to = 1> (t)", "s1 = Add(s, f)"],
        [
            "j = Add(t, one)", "j1 = Unsqueeze(j, zero)", "p = Slice(h, zero, j1, one1)",
            "z = ReduceSum <keepdims = 0> (p)", "s1 = Add(s, z)",
        ],
    ],
    ids=["it computes with the turn", "it slices a state"],
)  # fmt: skip
def test_other_loops_are_unrolled_with_one_set_of_weights(more, tmp_path):
    model = loop(more=more, trips=3, steps=4)
    model.graph.output[1].type.tensor_type.shape.dim[0].dim_value = 3
    graph = loaded(model, tmp_path)
    assert not scans(graph)
    assert parameters(graph) == OWN


def test_a_bias_behind_the_sum_goes_into_a_layer(tmp_path):
    """The Loop takes the layers that the RNN operator takes."""
    graph = simplify(loaded(loop(), tmp_path))
    ops = [node.op for node in graph.nodes if node.op not in {"reshape", "split_steps"}]
    assert sorted(ops) == ["add", "join_steps", "last_step", "linear", "linear", "tanh"]


def test_a_state_that_grows_is_unrolled(tmp_path):
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    net (float[3,1,2] x) => (float[4,2] y)
    <int64 trips = {3}, float[1,2] nothing = {1, 2}> {
      y = Loop (trips, , nothing) <
        body = turn (int64 i, bool c, float[n,2] h) => (bool c, float[m,2] h2) {
          xt = Gather <axis = 0> (x, i)
          h2 = Concat <axis = 0> (h, xt)
        }
      >
    }""")
    assert not scans(loaded(model, tmp_path))


def test_two_inputs_of_one_loop(tmp_path):
    """One runs forwards and one backwards; a third is read whole; and the last step is a state."""
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    net (float[4,2] x, float[2,4] z, float[2] w) => (float[2] y, float[2] before, float[4,2] all)
    <int64 trips = {4}, float[2] nothing = {0, 0}, int64 three = {3}> {
      y, before, all = Loop (trips, , nothing, nothing) <
        body = turn (int64 i, bool c, float[2] h, float[2] p)
            => (bool c, float[2] h2, float[2] xt, float[2] g) {
          j = Sub(three, i)
          xt = Gather <axis = 0> (x, i)
          zt = Gather <axis = 1> (z, j)
          a = Mul(xt, w)
          b = Add(a, zt)
          g = Sub(b, p)
          e = Add(g, h)
          h2 = Tanh(e)
        }
      >
    }""")
    [node] = scans(loaded(model, tmp_path))
    assert sorted(node.attrs["scans"]) == [(0, 1), (1, -1)]
    assert node.attrs["full"] == 1


def test_a_loop_around_a_recurrent_operator_is_unrolled(tmp_path):
    """Only the inner one is a loop in hardware."""
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 18]>
    net (float[2,3,1,2] x) => (float[1,1,2] y)
    <int64 trips = {2}, float[1,1,2] nothing = {0, 0}> {
      y = Loop (trips, , nothing) <
        body = turn (int64 i, bool c, float[1,1,2] h) => (bool c, float[1,1,2] h2) {
          xt = Gather <axis = 0> (x, i)
          all, h2 = RNN <hidden_size = 2> (xt, W, R, , , h)
        }
      >
    }""")
    body = model.graph.node[0].attribute[0].g
    for name in "WR":
        data = np.asarray([[[0.5, -0.25], [0.125, 0.75]]], np.float32)
        body.initializer.append(numpy_helper.from_array(data, name))
    graph = loaded(model, tmp_path)
    assert len(scans(graph)) == 2
