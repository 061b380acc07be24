import re

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, ModelError, UnsupportedError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.ir import Stage, verify

FILTER = "w = variable(shape = [3, 2, 3, 3], label = 'w');"


@pytest.fixture
def weights(rng):
    return rng.normal(size=(3, 2, 3, 3)).astype(np.float32)


def test_nodes_are_complete(load_model, weights):
    graph = load_model(FILTER, "y = conv(x, w);", w=weights)
    (node,) = graph.nodes

    verify(graph)
    assert graph.stage == Stage.FLOAT
    assert (graph.name, graph.inputs, graph.outputs) == ("net", ("x",), ("y",))
    assert (node.op, node.inputs, node.outputs) == ("conv", ("x", "w", "y_bias"), ("y",))
    assert node.attrs == {
        "border": "constant",
        "padding": [(1, 1), (1, 1)],
        "stride": [1, 1],
        "dilation": [1, 1],
        "groups": 1,
    }
    assert str(node.location).endswith("graph.nnef:6:5")
    assert graph.tensor("y").shape == (1, 3, 4, 4)


def test_variables_have_data_and_label(load_model, weights):
    tensor = load_model(FILTER, "y = conv(x, w);", w=weights).tensor("w")

    assert (tensor.label, tensor.dtype, tensor.data.dtype) == ("w", "scalar", np.float32)
    np.testing.assert_array_equal(tensor.data, weights)


def test_literals_become_constants(load_model):
    graph = load_model("y = clamp(x, 0.0, 6.0);")

    assert graph.nodes[0].inputs == ("x", "y_a", "y_b")
    assert graph.constant("y_b").shape == ()
    assert graph.constant("y_b") == np.float32(6)


def test_literals_never_take_a_name_of_the_document(load_model):
    graph = load_model("y_b = relu(x);", "y = clamp(y_b, 0.0, 6.0);")

    assert graph.nodes[1].inputs == ("y_b", "y_a", "y_b_1")


def test_constants_are_filled(load_model):
    graph = load_model(
        "one = constant(shape = [2, 2], value = [1.5]);",
        "two = constant<integer>(shape = [2, 1], value = [1, -2]);",
        "three = constant<logical>(shape = [], value = [true]);",
        "y = copy(x);",
    )

    np.testing.assert_array_equal(graph.constant("one"), np.full((2, 2), 1.5, np.float32))
    np.testing.assert_array_equal(graph.constant("two"), np.array([[1], [-2]]))
    assert graph.constant("three").dtype == np.bool_
    assert graph.tensor("two").dtype == "integer"


def test_data_types_follow_the_operators(load_model):
    graph = load_model(
        "less = lt(x, 0.5);",
        "chosen = select(less, x, 1.0);",
        "index = argmax_reduce(x, axes = [1]);",
        "whole = cast<integer>(x);",
        "y = copy(less);",
    )
    dtypes = [graph.tensor(name).dtype for name in ("less", "chosen", "index", "whole", "y")]

    assert dtypes == ["logical", "scalar", "integer", "integer", "logical"]


def test_arrays_of_tensors(load_model):
    graph = load_model(
        "[a, b] = split(x, axis = 1, ratios = [1, 1]);",
        "c, i = max_pool_with_index(a, size = [1, 1, 2, 2], padding = [(0,0),(0,0),(0,0),(0,0)]);",
        "y = concat([a, b, a], axis = 1);",
    )

    assert graph.nodes[0].outputs == ("a", "b")
    assert graph.nodes[2].inputs == ("a", "b", "a")
    assert graph.tensor("y").shape == (1, 3, 4, 4)
    assert graph.tensor("i").dtype == "integer"


def test_tensor_arguments_may_be_named_and_shared_labels_share_data(load_model, weights):
    graph = load_model(
        FILTER,
        "v = variable(shape = [3, 2, 3, 3], label = 'w');",
        "y = conv(filter = v, input = x);",
        w=weights,
    )

    assert graph.nodes[0].inputs[:2] == ("x", "v")
    assert graph.constant("v") is graph.constant("w")


def test_rank_0_graphs(load_model):
    assert load_model("y = copy(x);", shape="[]").tensor("y").shape == ()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y = relu(z);", "graph.nnef:5:14: there is no tensor 'z'"),
        ("y = relu(q); q = relu(x);", "the tensor 'q' is used before it is assigned; move its"),
        ("x = relu(x); y = copy(x);", "5:5: the tensor 'x' is assigned twice, first in line 4"),
        ("y = copy(x); y = copy(x);", "5:18: the tensor 'y' is assigned twice, first in line 5"),
        ("z = copy(x);", "graph.nnef:2:18: the graph result 'y' is never assigned"),
        (
            "z = external(shape = [1]); y = copy(x);",
            "5:5: the external 'z' is not an input of the graph; add it: graph net(z, ...)",
        ),
        ("y = relu(x, slope = 1.0);", "relu 'y': there is no argument 'slope'; the arguments are"),
        ("y = elu(x, alhpa = 1.0);", "5:16: elu 'y': there is no argument 'alhpa'; did you mean"),
        ("y = elu(x, alpha = 1.0, alpha = 2.0);", "elu 'y': the argument 'alpha' is given twice"),
        ("y = elu(x, 1.0);", "elu 'y': the attribute 'alpha' must be named; write alpha = ..."),
        ("y = elu(x, x, x);", "the attribute 'alpha' must be named"),
        ("y = relu(x, x);", "relu 'y': 2 arguments are given, but the operator takes 1"),
        ("y = add(x = x, x);", "a positional argument follows a named one; name it"),
        ("y = leaky_relu(x);", "leaky_relu 'y': the argument 'alpha' is missing"),
        (
            "y = leaky_relu(x, alpha = 1);",
            "5:31: leaky_relu 'y': 'alpha' must be scalar, not the integer 1; write 1.0 instead",
        ),
        ("y = leaky_relu(x, alpha = x);", "'alpha' must be scalar, not the tensor<scalar> 'x'"),
        ("y = max(x, 0);", "'y' must be tensor<scalar>, not the integer 0; write 0.0 instead"),
        ("y = add(x, true);", "'y' must be tensor<scalar>, not the logical true"),
        ("y = not(x);", "not 'y': 'x' must be tensor<logical>, not the tensor<scalar> 'x'"),
        ("y = add(x, [x]);", "add 'y': 'y' must be tensor<scalar>, not tensor<scalar>[]"),
        ("y = concat(x, axis = 1);", "'values' must be tensor<?>[], not the tensor<scalar> 'x'"),
        ("y = softmax(x, axes = 1);", "'axes' must be integer[], not the integer 1"),
        ("y = softmax(x, axes = [1.0]);", "'axes' must be integer, not the scalar 1.0"),
        ("y = pad(x, padding = [1]);", "'padding' must be (integer, integer), not the integer 1"),
        (
            "y = pad(x, padding = [(1, 2, 3)]);",
            "must be (integer, integer)[], not (integer, integer, ",
        ),
        ("y = pad(x, padding = [], border = 1);", "'border' must be string, not the integer 1"),
        ("y = relu<scalar>(x);", "the operator is not generic, but <scalar> was given"),
        ("y = copy<?>(x);", "copy 'y': there is no tensor<?> in a graph; write scalar"),
        ("y = copy<integer>(x);", "'x' must be tensor<integer>, not the tensor<scalar> 'x'"),
        ("y = cast(x);", "cast 'y': the data-type of the result is not known; write cast<scalar>"),
        ("a, y = relu(x);", "5:5: relu 'a': there is 1 result, but 2 are assigned"),
        (
            "[a, y] = moments(x, axes = [1]);",
            "moments 'a': the 2 results are not an array; leave out the",
        ),
        (
            "a, y = split(x, axis = 1, ratios = [1, 1]);",
            "split 'a': the result is an array, so its items are listed; write [a, b]",
        ),
        (
            "y = split(x, axis = 1, ratios = [1, 1]);",
            "split 'y': the result is an array, so its items are listed; write [a, b]",
        ),
        ("y = constant(shape = [2], value = [1.0, 2.0, 3.0]);", "3 values are given for the 2 ele"),
        ("y = constant(shape = [2], value = [1]);", "'value' must be scalar, not the integer 1"),
        ("y = constant(shape = [1], value = [1e39]);", "a number is too large for 32-bit floats"),
        ("y = constant(shape = [0], value = [1.0]);", "5:26: constant 'y': shape [0] must be pos"),
        (
            "y = constant(shape = [65536, 65536], value = [0.0]);",
            "has more than 268435456 elements",
        ),
        ("y = constant<string>(shape = [1], value = ['a']);", "there is no tensor<string> in a"),
    ],
    ids=lambda value: value[:40],
)
def test_invalid_statements(load_model, statement, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        load_model(statement)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y = lstm(x);", "5:9: the operator 'lstm' is unknown"),
        ("y = conv2(x);", "the operator 'conv2' is unknown; did you mean 'conv'?"),
    ],
    ids=lambda value: value[:40],
)
def test_unsupported_statements(load_model, statement, message):
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        load_model(statement)


def test_all_problems_are_listed_and_none_twice(load_model):
    with pytest.raises(ErrorGroup) as info:
        load_model(
            "a = foo(x);",
            "b = relu(a);",
            "c = bar(b);",
            "d = elu(x, alpha = 1);",
            "y = add(c, d);",
            inputs="x, x, z",
        )

    reasons = [error.reason for error in info.value.errors]
    assert reasons == [
        "'x' is listed twice",
        "the graph input 'z' is not the result of an external",
        "the operator 'foo' is unknown",
        "the operator 'bar' is unknown",
        "elu 'd': 'alpha' must be scalar, not the integer 1",
    ]
    assert [error.location.line for error in info.value.errors] == [2, 2, 5, 7, 8]
    assert info.value.exit_status == 2


def test_unknown_extensions_are_refused(write_model):
    path = write_model("y = copy(x);") / "graph.nnef"
    path.write_text(path.read_text().replace("graph", "extension KHR_a;\ngraph"))

    with pytest.raises(UnsupportedError, match="2:11: the extension 'KHR_a' is not supported"):
        load_nnef(path)


def test_shape_of_data_must_be_that_of_the_graph(load_model):
    message = "5:26: variable 'w': the graph says shape [3, 2, 3, 3], but w.dat has [3, 2, 9]"
    with pytest.raises(ModelError, match=re.escape(message)):
        load_model(FILTER, "y = conv(x, w);", w=np.zeros((3, 2, 9), np.float32))


def test_weights_must_be_numbers(load_model, weights):
    weights[1, 0, 2, 0] = weights[2, 0, 0, 0] = np.nan
    message = "variable 'w': w.dat holds nan at [1, 0, 2, 0] and 1 more"
    with pytest.raises(ModelError, match=re.escape(message)) as info:
        load_model(FILTER, "y = conv(x, w);", w=weights)
    assert info.value.location.line == 5


@pytest.mark.parametrize(
    ("statement", "data", "message"),
    [
        ("y = variable(shape = [1], label = 'u');", None, "the model has no file 'u.dat'"),
        ("y = variable(shape = [1], label = '../w');", None, "the model has no file '../w.dat'"),
        ("y = variable(shape = [1], label = '');", None, "the label '' is not a valid name"),
        ("y = variable(shape = [1], label = 'a b');", None, "the label 'a b' is not a valid name"),
        ("y = variable(shape = [1], label = 'w');", b"abc", "variable 'y': the tensor file has 3"),
        (
            "y = variable<integer>(shape = [1], label = 'w');",
            np.zeros(1, np.float32),
            "the graph says integer, but w.dat holds items of type float",
        ),
        (
            "y = variable(shape = [1], label = 'w');",
            np.zeros(1, np.int32),
            "the graph says scalar, but w.dat holds items of type signed",
        ),
        (
            "y = variable(shape = [1], label = 'w');",
            write_tensor(np.zeros(1, np.int8), quantized=True),
            "variable 'y': w.dat holds codes, but nothing says which numbers",
        ),
    ],
    ids=["missing", "outside", "empty", "space", "garbage", "float", "integer", "quantized"],
)
def test_bad_variables(load_model, statement, data, message):
    files = {} if data is None else {"w": data}
    with pytest.raises(ModelError, match=re.escape(message)):
        load_model(statement, **files)


def test_documents_must_be_text(tmp_path):
    (tmp_path / "graph.nnef").write_bytes(b"version 1.0;\xff")

    with pytest.raises(ModelError, match="byte 12 is not UTF-8 text"):
        load_nnef(tmp_path)


def test_nan_is_not_looked_for_in_integers(load_model):
    graph = load_model(
        "i = variable<integer>(shape = [2], label = 'i');",
        "b = variable<logical>(shape = [2], label = 'b');",
        "y = copy(x);",
        i=np.array([1, -2], np.int8),
        b=np.array([True, False]),
    )

    assert graph.constant("i").tolist() == [1, -2]
    assert graph.constant("b").tolist() == [True, False]
