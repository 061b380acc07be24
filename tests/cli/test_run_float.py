"""``run --on float``: models of any kind, on samples of any kind."""

import numpy as np
import pytest
from cli_cases import Result

from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor


@pytest.fixture
def write(tmp_path):
    """Write a model from its inputs, outputs and statements."""

    def write(inputs, outputs, *body, head=()):
        lines = ["version 1.0;", *head, f"graph net({inputs}) -> ({outputs})", "{", *body, "}"]
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "graph.nnef").write_text("\n".join(lines) + "\n")
        return "m"

    return write


@pytest.fixture
def run(cli, tmp_path):
    """Run a model on arrays by name; return its outputs."""

    def run(model, **arrays):
        np.savez(tmp_path / "x.npz", **arrays)
        result = cli("run", model, "--on", "float", "--input", "x.npz", "--output", "y.npz")
        assert result == Result(0, "", "")
        with np.load(tmp_path / "y.npz") as outputs:
            return dict(outputs)

    return run


def test_variables_are_kept_between_samples(run, write, tmp_path):
    model = write(
        "x", "y",
        "x = external<scalar>(shape = [1, 2]);",
        "sum = variable<scalar>(shape = [1, 2], label = 'sum');",
        "y = add(sum, x);",
        "next = update(sum, y);",
    )  # fmt: skip
    (tmp_path / "m" / "sum.dat").write_bytes(write_tensor(np.array([[10.0, 20.0]], np.float32)))
    x = np.arange(8.0).reshape(4, 2)
    expected = np.array([10.0, 20.0]) + np.cumsum(x, axis=0)
    np.testing.assert_array_equal(run(model, inputs=x)["y"], expected)


def test_several_inputs_and_outputs(run, write):
    model = write(
        "a, b", "sum, best",
        "a = external<scalar>(shape = [1, 3]);",
        "b = external<scalar>(shape = [1, 3]);",
        "sum = add(a, b);",
        "best = argmax_reduce(sum, axes = [1]);",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 3))
    outputs = run(model, a=a, b=b)
    np.testing.assert_array_equal(outputs["sum"], a + b)
    assert outputs["best"].dtype == np.int64
    np.testing.assert_array_equal(outputs["best"][:, 0], (a + b).argmax(axis=1))


def test_numbers_and_integers_as_inputs(run, write):
    model = write(
        "scale, index", "y",
        "scale = external<scalar>(shape = []);",
        "index = external<integer>(shape = [2]);",
        "table = constant<scalar>(shape = [3], value = [1.0, 10.0, 100.0]);",
        "row = gather(table, index, axis = 0);",
        "y = mul(row, scale);",
    )  # fmt: skip
    outputs = run(model, scale=np.array([1.0, 2.0]), index=np.array([[0, 2], [1, 1]]))
    np.testing.assert_array_equal(outputs["y"], [[1, 100], [20, 20]])


def test_any_batch_extent(run, write):
    model = write(
        "x", "y",
        "x = external<scalar>(shape = [2, 3]);",
        "y = sum_reduce(x, axes = [0]);",
    )  # fmt: skip
    x = np.arange(12.0).reshape(2, 2, 3)
    np.testing.assert_array_equal(run(model, inputs=x)["y"], x.sum(axis=1, keepdims=True))


def test_operator_beyond_the_standard(run, write):
    model = write(
        "x", "y", "x = external<scalar>(shape = [1, 1]);", "y = erf(x);",
        head=[
            "extension KHR_enable_fragment_definitions;",
            "fragment erf(x: tensor<scalar>) -> (y: tensor<scalar>);",
        ],
    )  # fmt: skip
    np.testing.assert_allclose(run(model, inputs=[[0.5]])["y"], [[0.5204998778]])
