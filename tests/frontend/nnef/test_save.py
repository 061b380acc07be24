import re
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.nnef import graph_hash, load_nnef, save_nnef
from nnef_hw.ir import Graph, Node, Tensor

STATEMENTS = [
    "w = variable(shape = [3, 2, 3, 3], label = 'a/w');",
    "s = variable(shape = [], label = 'S.1');",
    "k = constant(shape = [1, 3], value = [0.1, 1e-7, -3.0]);",
    "c = conv(x, w, k, padding = [(1, 0), (0, 2)], stride = [1, 2], groups = 1);",
    "e = elu(c, alpha = 0.3);",
    "i = argmax_reduce(e, axes = [1]);",
    "f = cast<scalar>(i);",
    "less = lt(x, 0.0);",
    "l = and(less, true);",
    "[p, q] = split(e, axis = 3, ratios = [1, 1]);",
    "m = concat([p, q, p], axis = 3);",
    "n, j = max_pool_with_index(m, size = [1, 1, 2, 1], border = 'ignore');",
    "r = pad(n, padding = [(0, 0), (0, 0), (1, 1), (0, 0)], border = 'reflect', value = -1.5);",
    "t = clamp(r, s, 6.0);",
    "y = reshape(t, shape = [-1]);",
]


def member(path, name):
    with tarfile.open(path) as tar:
        return tar.extractfile(name).read()


@pytest.fixture
def graph(load_model, tmp_path, rng):
    (tmp_path / "a").mkdir()
    arrays = {"a/w": rng.normal(size=(3, 2, 3, 3)).astype(np.float32), "S.1": np.float64(0.1)}
    return load_model(*STATEMENTS, **arrays)


def test_float_graphs_come_back_equal(graph, tmp_path, assert_same):
    path = tmp_path / "out.nnef.tgz"
    save_nnef(graph, path)
    again = load_nnef(path)

    assert_same(graph, again)
    assert graph_hash(graph) == graph_hash(again)


def test_saving_is_deterministic(graph, tmp_path):
    save_nnef(graph, tmp_path / "one.nnef.tgz")
    save_nnef(load_nnef(tmp_path / "one.nnef.tgz"), tmp_path / "two.nnef.tgz")

    assert (tmp_path / "one.nnef.tgz").read_bytes() == (tmp_path / "two.nnef.tgz").read_bytes()


def test_text_is_what_a_person_would_write(load_model, tmp_path, rng):
    graph = load_model(
        "w = variable(shape = [5, 32], label = 'w');",
        "a = reshape(x, shape = [1, -1]);",
        "y = linear(a, w);",
        w=np.zeros((5, 32), np.float32),
    )
    save_nnef(graph, tmp_path / "out.nnef.tar")

    assert member(tmp_path / "out.nnef.tar", "graph.nnef").decode() == (
        "version 1.0;\n"
        "\n"
        "graph net(x) -> (y)\n"
        "{\n"
        "    x = external<scalar>(shape = [1, 2, 4, 4]);\n"
        "    a = reshape(x, shape = [1, 32], axis_start = 0, axis_count = 4);\n"
        "    w = variable<scalar>(shape = [5, 32], label = 'w');\n"
        "    y = linear(a, w, 0.0);\n"
        "}\n"
    )


def graph_of(*tensors, op="copy", attrs=None):
    source = Tensor("x", (1,))
    result = Tensor("y", (1,))
    names = {tensor.name: tensor for tensor in (source, *tensors, result)}
    node = Node(op, ("x",), ("y",), attrs or {})
    return Graph("net", ("x",), ("y",), names, (node,))


def test_big_and_precise_constants_go_into_files(tmp_path):
    big = Tensor("big", (1025,), data=np.ones(1025, np.float32))
    precise = Tensor("precise", (1,), data=np.array([0.1]))
    save_nnef(graph_of(big, precise), tmp_path / "m.tar")
    again = load_nnef(tmp_path / "m.tar")

    assert again.tensor("big").label == "big"
    assert again.constant("precise").tolist() == [0.1]


def test_labels_stay_apart(tmp_path):
    tensors = [
        Tensor("a", (1,), data=np.array([1.0], np.float32), label="w"),
        Tensor("b", (1,), data=np.array([2.0], np.float32), label="w"),
        Tensor("c", (1,), data=np.array([3.0], np.float32), label="W"),
        Tensor("d", (1,), data=np.array([1.0], np.float32), label="w"),
        Tensor("e", (1,), data=np.array([5.0], np.float32), label="/../b:0"),
    ]
    save_nnef(graph_of(*tensors), tmp_path / "m.tar")
    again = load_nnef(tmp_path / "m.tar")

    assert [again.constant(name)[0] for name in "abcde"] == [1, 2, 3, 1, 5]
    assert [again.tensor(name).label for name in "abcde"] == ["w", "w_1", "W_2", "w", "b_0"]


def test_odd_names_become_identifiers(tmp_path):
    tensors = {name: Tensor(name, (1,)) for name in ("in/put:0", "in_put_0", "graph", "1st")}
    nodes = tuple(
        Node("copy", (source,), (target,))
        for source, target in (("in/put:0", "in_put_0"), ("in_put_0", "graph"), ("graph", "1st"))
    )
    save_nnef(Graph("my net", ("in/put:0",), ("1st",), tensors, nodes), tmp_path / "m.tar")
    again = load_nnef(tmp_path / "m.tar")

    assert (again.name, again.inputs, again.outputs) == ("my_net", ("in_put_0_1",), ("_1st",))
    assert [node.name for node in again.nodes] == ["in_put_0", "graph_1", "_1st"]


def test_what_nnef_cannot_say_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match=re.escape("hard_swish 'y' cannot be written")):
        save_nnef(graph_of(op="hard_swish"), tmp_path / "m.tar")
    infinite = Tensor("k", (1,), data=np.array([np.inf], np.float32))
    with pytest.raises(UnsupportedError, match="the constant 'k' holds inf"):
        save_nnef(graph_of(infinite), tmp_path / "m.tar")
    with pytest.raises(UnsupportedError, match="the attribute value nan cannot be written"):
        save_nnef(graph_of(op="leaky_relu", attrs={"alpha": float("nan")}), tmp_path / "m.tar")
    assert list(tmp_path.iterdir()) == []


def test_hash_sees_values_but_not_places(graph):
    base = graph_hash(graph)
    tensors = dict(graph.tensors)
    moved = {name: replace(tensor, location=None) for name, tensor in tensors.items()}
    wide = {**tensors, "w": replace(tensors["w"], data=tensors["w"].data.astype(np.float64))}
    changed_data = tensors["w"].data.copy()
    changed_data[0, 0, 0, 0] = np.nextafter(changed_data[0, 0, 0, 0], np.float32(9))
    changed = {**tensors, "w": replace(tensors["w"], data=changed_data)}
    nodes = (graph.nodes[0].with_attrs(groups=2), *graph.nodes[1:])

    assert graph_hash(replace(graph, tensors=moved)) == base
    assert graph_hash(replace(graph, tensors=dict(reversed(tensors.items())))) == base
    assert graph_hash(replace(graph, tensors=wide)) == base
    assert graph_hash(replace(graph, tensors=changed)) != base
    assert graph_hash(replace(graph, nodes=nodes)) != base
    assert graph_hash(replace(graph, name="other")) != base
