import re
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, Location, UnsupportedError
from nnef_hw.frontend.nnef import graph_hash, load_nnef, save_nnef
from nnef_hw.frontend.nnef.archive.tensor_file import read_tensor
from nnef_hw.ir import Graph, Node, Quantization, State, Tensor

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


@pytest.mark.parametrize(
    "values",
    [
        np.array([np.inf, 1.0, -np.inf], np.float32),
        np.array([np.nan], np.float32),
        np.array([0.1]),
        np.array([1e300]),
        np.array([1 << 31]),
        np.array([-(1 << 63)]),
    ],
    ids=str,
)
def test_numbers_without_a_literal_go_into_files(values, tmp_path):
    dtype = "integer" if values.dtype.kind == "i" else "scalar"
    save_nnef(graph_of(Tensor("k", values.shape, dtype, values)), tmp_path / "m.tar")

    stored = read_tensor(member(tmp_path / "m.tar", "k.dat"), Location("k.dat")).array
    np.testing.assert_array_equal(stored, values)
    assert stored.dtype == values.dtype
    text = member(tmp_path / "m.tar", "graph.nnef").decode()
    assert f"k = variable<{dtype}>(shape = {list(values.shape)}, label = 'k');" in text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([-(1 << 31), (1 << 31) - 1]), "[-2147483648, 2147483647]"),
        (np.array([1e-7, 1e20, 3, -0.0], np.float32), "[1e-07, 1e+20, 3.0, -0.0]"),
        (np.array([0.5]), "[0.5]"),
        (np.array([True, False]), "[true, false]"),
    ],
    ids=str,
)
def test_short_constants_stand_in_the_text(values, expected, tmp_path):
    dtype = {"i": "integer", "f": "scalar", "b": "logical"}[values.dtype.kind]
    save_nnef(graph_of(Tensor("k", values.shape, dtype, values)), tmp_path / "m.tar")

    text = member(tmp_path / "m.tar", "graph.nnef").decode()
    assert f"k = constant<{dtype}>(shape = {list(values.shape)}, value = {expected});" in text


@pytest.mark.parametrize(
    ("value", "second", "written"),
    [
        (0.5, "x", "y = max(x, 0.5);"),
        (0.5, "y_y", "y = max(x, y_y);"),
        (0.1, "x", "y = max(x, y_y);"),
    ],
    ids=["literal", "read twice", "no literal"],
)
def test_number_stands_in_its_invocation(value, second, written, tmp_path):
    tensors = [Tensor("x", (1,)), Tensor("y_y", (), data=np.asarray(value)), Tensor("y", (1,))]
    nodes = (Node("max", ("x", "y_y"), ("y",)), Node("max", ("y", second), ("z",)))
    table = {tensor.name: tensor for tensor in (*tensors, Tensor("z", (1,)))}
    save_nnef(Graph("net", ("x",), ("z",), table, nodes), tmp_path / "m")

    assert written in (tmp_path / "m" / "graph.nnef").read_text()
    assert load_nnef(tmp_path / "m").constant("y_y") == value


def test_double_floats_that_are_single_ones_take_four_bytes(tmp_path):
    weights = Tensor("w", (2,), data=np.array([0.5, -3.0]), label="w")
    save_nnef(graph_of(weights), tmp_path / "m.tar")

    assert read_tensor(member(tmp_path / "m.tar", "w.dat"), Location("w.dat")).bits == 32


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            graph_of(op="hard_sigmoid"),
            "hard_sigmoid 'y' cannot be written: NNEF has no such op",
        ),
        (graph_of(op="scan"), "scan 'y' cannot be written: .*; nnef-hw convert unrolls it"),
        (
            graph_of(op="leaky_relu", attrs={"alpha": float("nan")}),
            "leaky_relu 'y' cannot be written: NNEF has no literal for its alpha nan; replace",
        ),
        (
            graph_of(Tensor("k", (0, 3), data=np.zeros((0, 3)))),
            re.escape("tensor 'k' of shape [0, 3] cannot be written: shapes in NNEF are positive"),
        ),
        (
            graph_of(Tensor("k", (1,) * 9, data=np.ones((1,) * 9))),
            "tensor 'k' of rank 9 cannot be written: tensor files have at most 8 dimensions",
        ),
        (
            replace(graph_of(Tensor("k", (1,), data=np.ones(1))), inputs=(), outputs=("k",)),
            "the graph 'net' has no inputs",
        ),
    ],
    ids=["operator", "loop", "attribute", "empty tensor", "rank", "no inputs"],
)
def test_what_nnef_cannot_say_is_refused(graph, message, tmp_path):
    graph = replace(graph, nodes=graph.nodes if graph.inputs else ())
    with pytest.raises(UnsupportedError, match=message):
        save_nnef(graph, tmp_path / "m.tar")
    assert list(tmp_path.iterdir()) == []


def test_everything_that_cannot_be_said_is_listed(tmp_path):
    graph = graph_of(Tensor("k", (0,), data=np.zeros(0)), op="hard_sigmoid")
    with pytest.raises(ErrorGroup, match=r"(?s)hard_sigmoid 'y'.*tensor 'k' of shape \[0\]"):
        save_nnef(graph, tmp_path / "m.tar")


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


def test_hash_sees_states_quantization_and_loops(graph):
    base, x = graph_hash(graph), graph.tensor("x")
    scales = [Quantization("op", {"scale": np.array([scale, 1.0])}) for scale in (0.5, 0.25)]
    quantized = [
        replace(graph, tensors={**graph.tensors, "x": replace(x, quant=q)}) for q in scales
    ]
    initial = [np.zeros(x.shape), np.ones(x.shape)]
    recurrent = [replace(graph, states={"x": State(values, "y")}) for values in initial]
    loops = [
        replace(graph, nodes=(graph.nodes[0].with_attrs(body=body), *graph.nodes[1:]))
        for body in (graph, quantized[0])
    ]
    hashes = [graph_hash(other) for other in (*quantized, *recurrent, *loops)]

    assert len({base, *hashes}) == 7
