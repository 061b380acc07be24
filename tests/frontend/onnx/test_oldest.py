"""Files of the first exporters: attributes without types, opsets below 6, nodes in any order."""

import random

import numpy as np
import onnx
import pytest

from nnef_hw.errors import ModelError, NnefHwError
from nnef_hw.frontend import load
from nnef_hw.reference import run_float

helper = onnx.helper


def old(nodes, shape, constants, opset=1, ir=1, typed=False):
    """Return a model as of 2017: no attribute has a type, and the first opset is not imported."""
    info = [helper.make_tensor_value_info("x", 1, shape),
            helper.make_tensor_value_info("y", 1, None)]  # fmt: skip
    for name, value in constants.items():
        info.insert(1, helper.make_tensor_value_info(name, 1, value.shape))
    tensors = [onnx.numpy_helper.from_array(np.float32(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "net", info[:-1], info[-1:], tensors)
    opsets = [helper.make_opsetid("", opset)] if opset > 1 else []
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir)
    if opset == 1:
        del model.opset_import[:]
    for node in model.graph.node if not typed else ():
        for attribute in node.attribute:
            attribute.ClearField("type")
    return model


NET = [
    helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=1),
    helper.make_node("Add", ["c", "b"], ["d"], broadcast=1, axis=1),
    helper.make_node("Relu", ["d"], ["e"], consumed_inputs=[0]),
    helper.make_node("Reshape", ["e"], ["f"], shape=[1, 3, 2, 2, 4]),
    helper.make_node("Transpose", ["f"], ["y"], perm=[0, 1, 4, 2, 3]),
]
ARRAYS = {"w": np.random.default_rng(2).normal(size=(3, 2, 3, 3)), "b": np.array([0.5, -1.0, 2.0])}


@pytest.mark.parametrize("opset", [1, 2, 3, 4])
@pytest.mark.parametrize("typed", [False, True], ids=["untyped", "typed"])
def test_the_first_opsets_are_those_of_today(read, rng, opset, typed):
    x = rng.normal(size=(2, 2, 4, 4))
    found = run_float(read(old(NET, [1, 2, 4, 4], ARRAYS, opset, typed=typed)), {"x": x})["y"]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    sums = np.einsum("ncijkl,ockl->noij", windows, np.float32(ARRAYS["w"]).astype(float))
    wanted = np.maximum(sums + ARRAYS["b"].reshape(3, 1, 1), 0).reshape(2, 3, 2, 2, 4)
    np.testing.assert_allclose(found, wanted.transpose(0, 1, 4, 2, 3), rtol=1e-6, atol=1e-9)


OLDER = {
    "cast": ([helper.make_node("Cast", ["x"], ["i"], to="INT32"),
              helper.make_node("Cast", ["i"], ["y"], to="FLOAT")], np.trunc),
    "concat": ([helper.make_node("Concat", ["x", "x"], ["y"])],
               lambda x: np.concatenate([x, x], 1)),
    "pad": ([helper.make_node("Pad", ["x"], ["y"], paddings=[0, 1, 0, 2], value=7.0)],
            lambda x: np.pad(x, ((0, 0), (1, 2)), constant_values=7.0)),
    "clip": ([helper.make_node("Clip", ["x"], ["y"], min=-1.0, max=1.0, consumed_inputs=[0])],
             lambda x: np.clip(x, -1, 1)),
    "names": ([helper.make_node("Reshape", ["x"], ["y_shape"], shape=[4, 1]),
               helper.make_node("Reshape", ["y_shape"], ["y"], shape=[1, 4])], lambda x: x),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "function"), OLDER.values(), ids=OLDER)
def test_older_forms(read, nodes, function):
    x = np.array([[-2.75, 0.5, 1.75, 3.0]])
    found = run_float(read(old(nodes, [1, 4], {}, opset=1 if "Pad" in str(nodes) else 3)), {"x": x})
    np.testing.assert_array_equal(found["y"], function(x))


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (helper.make_node("Cast", ["x"], ["y"], to="FLAOT"), "'to' is not of type INT"),
        (helper.make_node("Reshape", ["x"], ["y"]), "it has 1 inputs, but takes 2"),
        (helper.make_node("Relu", ["x"], ["y"], consumed=[0]), "there is no attribute 'consumed'"),
        (helper.make_node("Gelu", ["x"], ["y"]), "there is no such operator in opset 6"),
    ],
)
def test_what_does_not_fit_is_one_located_error(write, node, reason):
    path = write(old([node], [1, 4], {}, opset=3))
    with pytest.raises(NnefHwError, match=reason) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_an_attribute_of_two_kinds_has_no_type(read):
    model = old(NET, [1, 2, 4, 4], ARRAYS)
    model.graph.node[0].attribute[0].f = 1.0
    with pytest.raises(NnefHwError, match="has a type that is not supported"):
        read(model)


CHAIN = """net (float[1,4] x) => (float[1,4] y) <bool yes = {1}> {
  a = Neg(x)
  b = Abs(a)
  c = If (yes) <then_branch = g () => (p) { q = Exp(b) p = Add(q, a) },
                else_branch = h () => (p) { p = Identity(x) }>
  d = Add(c, b)
  y = Sub(d, a)
}"""


@pytest.mark.parametrize("seed", range(8))
def test_unsorted_nodes_are_sorted(read, parse, seed):
    model = parse(CHAIN)
    x = np.array([[1.0, -2.0, 0.5, 3.0]])
    expected = run_float(read(CHAIN), {"x": x})["y"]
    rng = random.Random(seed)
    for graph in (model.graph, model.graph.node[2].attribute[0].g):
        nodes = list(graph.node)
        rng.shuffle(nodes)
        del graph.node[:]
        graph.node.extend(nodes)
    np.testing.assert_array_equal(run_float(read(model), {"x": x})["y"], expected)


@pytest.mark.parametrize(
    ("body", "cycle"),
    [
        ("a = Add(x, b) b = Neg(a) y = Neg(b)", "b -> a -> b"),
        ("a = Add(a, x) y = Neg(a)", "a -> a"),
    ],
)
def test_cycles_stay_an_error(read, body, cycle):
    with pytest.raises(ModelError, match=f"which is computed of itself: {cycle}; make what"):
        read(f"net (float[1] x) => (float[1] y) {{ {body} }}")


def test_long_chains_are_sorted_without_recursion(read):
    nodes = [helper.make_node("Neg", [f"v{n}"], [f"v{n + 1}"]) for n in range(3000)][::-1]
    nodes.append(helper.make_node("Neg", ["x"], ["v0"]))
    nodes.append(helper.make_node("Neg", ["v3000"], ["y"]))
    graph = read(old(nodes, [1], {}, opset=9, ir=3))
    assert run_float(graph, {"x": np.array([5.0])})["y"].item() == 5.0


def test_large_uniform_constants_take_no_memory(read):
    text = """net (float[1,1] x) => (float[1] y) <int64[2] s = {20000, 5000}, int64[2] z = {0, 0},
      int64[2] e = {1, 1}> {
      w = ConstantOfShape <value = float[1] {0.5}> (s)
      v = Slice (w, z, e)
      y = Add(x, v)
    }"""
    graph = read(text)
    assert run_float(graph, {"x": np.array([[1.0]])})["y"].item() == 1.5
