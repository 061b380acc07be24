"""What torch_to_nnef writes for Khronos against the specification, read with a warning."""

import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.architectures import find_architecture
from nnef_hw.errors import NnefHwError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.evaluation.exporters import converts
from nnef_hw.frontend.nnef.language.syntax import ArrayType, TensorType, TupleType
from nnef_hw.frontend.nnef.language.types import INTEGER, LOGICAL, SCALAR, STRING
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

RECORDED = Path(__file__).parents[3] / "cases" / "torch_to_nnef"
PARAMETERS = ("mean", "var", "bias", "weight")
X = np.random.default_rng(3).normal(size=(2, 2, 4, 5))


def statements(*shape, epsilon="variable<scalar>(label = 'eps', shape = [])"):
    """Return a batch normalization as the exporter writes one, and its parameters."""
    rng = np.random.default_rng(1)
    arrays = {name: rng.uniform(0.5, 2.0, shape).astype(np.float32) for name in PARAMETERS}
    lines = [
        f"{name} = variable<scalar>(label = '{name}', shape = {list(shape)});"
        for name in PARAMETERS
    ]
    lines.append(f"eps = {epsilon};")
    lines.append("y = batch_normalization(x, mean, var, bias, weight, epsilon = eps);")
    return lines, arrays | {"eps": np.float32(0.25)}


def expected(arrays):
    mean, var, bias, weight = (
        arrays[name].astype(np.float64).reshape(1, -1, 1, 1) for name in PARAMETERS
    )
    return (X - mean) / np.sqrt(var + 0.25) * weight + bias


@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2), (1, 1, 1, 2)])
@pytest.mark.parametrize(
    "epsilon",
    ["variable<scalar>(label = 'eps', shape = [])", "constant(shape = [1], value = [0.25])"],
)
def test_batch_normalizations_are_read(shape, epsilon, write_model, caplog):
    lines, arrays = statements(*shape, epsilon=epsilon)
    folder = write_model(*lines, shape="[1, 2, 4, 5]", **arrays)
    with caplog.at_level(logging.WARNING):
        graph = load_nnef(folder, lenient=True)
    np.testing.assert_allclose(run_float(graph, {"x": X})["y"], expected(arrays), rtol=1e-6)
    assert simplify(graph).nodes
    texts = [record.getMessage() for record in caplog.records]
    assert any("'epsilon' is a tensor; write epsilon = 0.25" in text for text in texts)
    assert any("lie along the last axis" in text for text in texts) == (
        len(shape) > 2 and shape[3] > 1
    )


def test_the_specification_forbids_both(write_model):
    lines, arrays = statements(1, 2)
    folder = write_model(*lines, shape="[1, 2, 4, 5]", **arrays)
    with pytest.raises(NnefHwError, match=r"'epsilon' must be scalar.*--lenient"):
        load_nnef(folder)


@pytest.mark.parametrize(
    ("epsilon", "what"),
    [("exp(x)", "which is computed"), ("constant(shape = [2], value = [0.1, 0.2])", r"\[2\]")],
)
def test_other_tensors_are_refused(epsilon, what, write_model):
    lines, arrays = statements(1, 2, epsilon=epsilon)
    folder = write_model(*lines, shape="[1, 2, 4, 5]", **arrays)
    with pytest.raises(
        NnefHwError, match=f"'epsilon' must be scalar, not the tensor 'eps'.*{what}"
    ):
        load_nnef(folder, lenient=True)


@pytest.fixture
def warnings_of(write_model, caplog):
    """Return what a document computes by lenient rules, and the warnings of reading it."""

    def read(*lines, x=X, shape="[1, 2, 4, 5]", fragments="", **arrays):
        path = write_model(*lines, shape=shape, **arrays)
        if fragments:
            text = (path / "graph.nnef").read_text()
            (path / "graph.nnef").write_text(text.replace("graph ", f"{fragments}\ngraph ", 1))
        with pytest.raises(NnefHwError) as caught:
            load_nnef(path)
        assert "--lenient" in str(caught.value) or "no argument 'axes'" in str(caught.value)
        with caplog.at_level(logging.WARNING):
            graph = load_nnef(path, lenient=True)
        return run_float(graph, {"x": x})["y"], [item.getMessage() for item in caplog.records]

    return read


@pytest.mark.parametrize("name", ["image", "attention", "vision_transformer"])
def test_archives_compute_what_pytorch_computes(name):
    recorded = dict(np.load(RECORDED / f"{name}.npz"))
    graph = load_nnef(RECORDED / f"{name}.nnef.tgz", lenient=True)
    result = run_float(graph, {"x": recorded["x"]})["y"]
    # PyTorch computes in float32; two layers of a transformer add that up
    np.testing.assert_allclose(result, recorded["y"], rtol=1e-5, atol=1e-6)


def test_a_vision_transformer_of_torchvision_can_be_built():
    graph = load_nnef(RECORDED / "vision_transformer.nnef.tgz", lenient=True)
    canonical = simplify(graph)
    assert not find_architecture("streaming").problems(canonical)
    operators = Counter(node.op for node in canonical.nodes)
    assert (operators["contraction"], operators["normalize"], operators["softmax"]) == (4, 5, 2)


def test_parameters_behind_the_channels_may_be_computed_from_variables(write_model, caplog):
    """As torch_to_nnef writes them; square images, so that they fit where they lie, too."""
    lines, arrays = statements(2)
    lines[-1:] = [
        *(f"{name}_c = copy({name}); {name}_r = unsqueeze({name}_c, axes = [0, 1, 2]);"
          for name in PARAMETERS),
        "y = batch_normalization(x, mean_r, var_r, bias_r, weight_r, epsilon = eps);",
    ]  # fmt: skip
    folder = write_model(*lines, shape="[1, 2, 4, 2]", **arrays)
    with caplog.at_level(logging.WARNING):
        graph = load_nnef(folder, lenient=True)
    x = X[..., :2]
    result = run_float(graph, {"x": x})["y"]
    np.testing.assert_allclose(result, expected(arrays)[..., :2], rtol=1e-6)
    assert "lie along the last axis" in caplog.text
    assert simplify(graph).nodes


def test_parameters_that_depend_on_the_input_lie_where_they_are(warnings_of):
    lines, arrays = statements(1, 2)
    lines[-1] = (
        "m = mean_reduce(x, axes = [1, 2]); "
        "y = batch_normalization(x, m, m * 0.0 + 1.0, m * 0.0, m * 0.0 + 1.0, epsilon = eps);"
    )
    x = X[..., :2]
    y, texts = warnings_of(*lines, x=x, shape="[1, 2, 4, 2]", **arrays)
    np.testing.assert_allclose(y, (x - x.mean((1, 2), keepdims=True)) / np.sqrt(1.25), rtol=1e-6)
    assert not any("lie along the last axis" in text for text in texts)


@pytest.mark.parametrize(
    ("line", "function", "warning"),
    [
        ("y = leaky_relu(x, 0.1);", lambda x: np.where(x < 0, 0.1 * x, x),
         "the attribute 'alpha' must be named; write alpha = ..."),
        ("y = softmax(x, 2);", lambda x: np.exp(x) / np.exp(x).sum(2, keepdims=True),
         "'axes' must be integer[], not the integer 2; write it in brackets"),
        ("y = relu(x, 0.0);", lambda x: np.maximum(x, 0),
         "relu 'y': the operator has no argument number 2; it is ignored"),
        ("y = sigmoid(x, axes = [1]);", lambda x: 1 / (1 + np.exp(-x)),
         "there is no argument 'axes'; it is ignored"),
        ("y = pad(x, padding = [[0, 0], [0, 0], [1, 0], [0, 2]]);",
         lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)]),
         "'padding' must be (integer, integer)[], not integer[][]"),
        ("y = mul(x, [[1, 2]]);", lambda x: x * [[[1]], [[2]]],
         "'y' must be tensor<scalar>, not integer[][]"),
        ("one = unsqueeze(1, axes = [0, 1]); y = add(x, one);", lambda x: x + 1,
         "not the tensor<integer> 'one'; convert it: cast<scalar>(...)"),
        ("n = argmax_reduce(x, axes = [1]); y = mul(x, n);",
         lambda x: x * x.argmax(1, keepdims=True), "not the tensor<integer> 'n'"),
        ("z = neg(x); z = exp(z); y = mul(z, x);", lambda x: np.exp(-x) * x,
         "the tensor 'z' is assigned twice, first in line 5; choose another name"),
        ("y = max(x, 0);", lambda x: np.maximum(x, 0), "write 0.0 instead of 0"),
        ("a, b = unstack(x, axis = 1); y = sub(a, b);", lambda x: x[:, 0] - x[:, 1],
         "the result is an array, so its items are listed"),
        ("y = erf(x) - erf(x);", lambda x: 0 * x,
         "erf 'y': NNEF has no such operator; that of docs/operators.md is taken"),
    ],
)  # fmt: skip
def test_what_the_specification_forbids_is_read_with_a_warning(
    line, function, warning, warnings_of
):
    y, texts = warnings_of(line)
    np.testing.assert_allclose(y, function(X), rtol=1e-6)
    assert any(warning in text for text in texts), texts


@pytest.mark.parametrize(
    "lines",
    ["y = mul(x, [[1, 2]]);", "n = argmax_reduce(x, axes = [1]); y = mul(x, n);",
     "n = unsqueeze(1, axes = [0]); y = mul(x, n);", "y = x * 2;"],
)  # fmt: skip
def test_operands_are_scalars(lines, write_model):
    graph = load_nnef(write_model(lines, shape="[1, 2, 4, 5]"), lenient=True)
    assert {graph.tensor(name).dtype for name in graph.nodes[-1].inputs} == {"scalar"}


def test_a_fragment_may_have_the_name_of_an_operator(warnings_of):
    fragments = "fragment silu(x: tensor<scalar>) -> (y: tensor<scalar>) { y = 2.0 * x; }"
    fragments += " fragment erf(x: tensor<scalar>) -> (y: tensor<scalar>) { y = silu(x) + 1.0; }"
    y, texts = warnings_of("y = erf(x);", fragments=fragments)
    np.testing.assert_allclose(y, 2 * X + 1)
    assert not texts


@pytest.mark.parametrize(
    "line",
    [
        "y = relu(x, x);",
        "y = pad(x, padding = [[0, 0], [0, 0], [1, 0, 1], [0, 2]]);",
        "y = softmax(x, 'one');",
        "y = softmax(x, axes = 1.5);",
        "a, b = relu(x); y = a;",
        "a, b, c = unstack(x, axis = 1); y = sub(a, b);",
    ],
)
def test_what_makes_no_sense_stays_an_error(line, write_model):
    with pytest.raises(NnefHwError):
        load_nnef(write_model(line, shape="[1, 2, 4, 5]"), lenient=True)


@pytest.mark.parametrize(
    ("lenient", "op", "told"),
    [(False, "copy", "takes zeros for what is outside, as the specification says"),
     (True, "copy", "is taken for 'ignore'"), (False, "relu", None), (True, "sigmoid", None)],
)  # fmt: skip
def test_zeros_in_the_border_of_a_pool_are_told(lenient, op, told, write_model, caplog):
    folder = write_model(
        f"z = {op}(x); y = max_pool(z, size = [1, 1, 3, 3], border = 'constant', "
        "padding = [(0, 0), (0, 0), (1, 1), (1, 1)]);",
        shape="[1, 2, 4, 5]",
    )
    with caplog.at_level(logging.WARNING):
        graph = load_nnef(folder, lenient=lenient)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == (told is not None)
    assert all(told in text for text in texts)
    result = run_float(graph, {"x": -np.ones((1, 2, 4, 5))})["y"]
    zeros = told is not None and not lenient
    assert (result[0, 0, 0, 0] == 0) == (zeros or op == "relu")


@pytest.mark.parametrize(
    ("kind", "wanted", "does"),
    [
        (INTEGER, SCALAR, True),
        (SCALAR, INTEGER, False),
        (LOGICAL, SCALAR, False),
        (INTEGER, TensorType("scalar"), True),
        (INTEGER, ArrayType(SCALAR), True),
        (ArrayType(ArrayType(SCALAR)), TensorType("?"), True),
        (ArrayType(STRING), TensorType("scalar"), False),
        (TensorType("scalar"), SCALAR, True),
        (TensorType("scalar"), ArrayType(INTEGER), False),
        (TensorType("integer"), TensorType("scalar"), True),
        (TensorType("scalar"), TensorType("integer"), False),
        (TensorType("logical"), TensorType("scalar"), False),
        (ArrayType(INTEGER), TupleType((INTEGER, SCALAR)), True),
        (ArrayType(INTEGER), TupleType((INTEGER, STRING)), False),
        (TupleType((INTEGER, INTEGER)), ArrayType(INTEGER), False),
    ],
    ids=str,
)
def test_which_types_are_converted(kind, wanted, does):
    assert converts(kind, wanted) == does
