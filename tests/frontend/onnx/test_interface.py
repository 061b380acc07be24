"""Cutting graphs at values, inputs that are constants, and what the command line makes of both."""

import json
import re

import numpy as np
import pytest

from nnef_hw.cli import main
from nnef_hw.errors import ModelError, UsageError
from nnef_hw.frontend import load
from nnef_hw.frontend.onnx import load_onnx
from nnef_hw.frontend.reading import Reading
from nnef_hw.reference import run_float
from nnef_hw.report.check import check_file

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

CUT = """net (float[1,4] x, float[1,4] z) => (int64[?,?] y, float[1,4] d) {
  a = Relu(x)
  b = Neg(a)
  c = Add(b, z)
  y = NonMaxSuppression(c, c)
  d = Sigmoid(c)
}"""

SHAPED = """net (float[1,4] x, float[1,4] z) => (float[1,4] y, float[1,2] e)
  <float[1,4] b, float[1,2] p, float[1,2] q> {
  a = Hann(x)
  b = Neg(a)
  p, q = Split <axis = 1, num_outputs = 2> (b)
  e = Add(p, q)
  y = Add(b, z)
}"""
"""Its first operator is none that there is."""

CHOSEN = """net (float[1,4] x, int64 rate, bool[2] flags, uint8[N,3] n) => (float[1,4] y) {
  sixteen = Constant <value_int = 16000> ()
  is_fast = Equal(rate, sixteen)
  y = If (is_fast) <then_branch = g () => (p) { p = Neg(x) },
                    else_branch = h () => (p) { p = Abs(x) }>
}"""

X = np.array([[-1.0, 2.0, -3.0, 4.0]])


class TestOutputs:
    def test_what_the_results_do_not_need_is_left_out(self, write):
        graph = load(write(CUT, opset=13), outputs=["b"])
        assert (graph.inputs, graph.outputs) == (("x",), ("b",))
        assert [node.op for node in graph.nodes] == ["relu", "neg"]
        assert run_float(graph, {"x": X})["b"].tolist() == [[0.0, -2.0, 0.0, -4.0]]

    def test_several_in_their_order(self, write):
        graph = load_onnx(write(CUT, opset=13), outputs=["d", "a", "d"])
        assert graph.outputs == ("d", "a")
        assert graph.inputs == ("x", "z")

    def test_values_that_subgraphs_read_are_needed(self, write):
        text = """net (float[1,4] x) => (float[1,4] y) <bool yes = {1}> {
          a = Neg(x)
          b = If (yes) <then_branch = g () => (p) { p = Abs(a) },
                        else_branch = h () => (p) { p = Abs(x) }>
          y = Exp(b)
        }"""
        found = run_float(load(write(text), outputs=["b"]), {"x": X})["b"]
        assert found.tolist() == [[1.0, 2.0, 3.0, 4.0]]

    def test_unknown_names_are_an_error_with_similar_ones(self, write):
        text = "net (float[1] x) => (float[1] logits) { logits = Relu(x) }"
        with pytest.raises(UsageError, match=r"no value 'logit' to cut .*such as 'logits'"):
            load(write(text), outputs=["logit"])


class TestInputs:
    def test_what_computes_them_is_left_out(self, write):
        graph = load(write(SHAPED, opset=18), inputs=["b"], outputs=["y"])
        assert (graph.inputs, graph.outputs) == (("z", "b"), ("y",))
        assert [node.op for node in graph.nodes] == ["add"]
        found = run_float(graph, {"b": X, "z": 2 * X})["y"]
        assert found.tolist() == (3 * X).tolist()

    def test_one_of_two_results_of_an_operator(self, write):
        text = SHAPED.replace("Hann", "Relu")
        graph = load(write(text, opset=18), inputs=["q"], outputs=["e"])
        assert graph.inputs == ("x", "q")
        found = run_float(graph, {"x": X, "q": [[10.0, 20.0]]})["e"]
        assert found.tolist() == [[10.0, 18.0]]

    def test_an_input_of_the_file_stays_one(self, write):
        graph = load(write(SHAPED, opset=18), inputs=["z", "b"], outputs=["y"])
        assert graph.inputs == ("z", "b")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"inputs": ["bb"]}, "there is no value 'bb' to begin the graph at"),
            ({"inputs": ["a"]}, "the file does not say the shape of 'a', where the graph should"),
            (
                {"inputs": ["b", "p", "q"]},
                "no result needs 'p', where the graph should begin; leave it out, or end the graph",
            ),
        ],
    )
    def test_refused(self, options, message, write):
        text = SHAPED.replace(", float[1,2] e", "")
        with pytest.raises(UsageError, match=re.escape(message)):
            load(write(text, opset=18), **options)


class TestBind:
    @pytest.mark.parametrize(("rate", "expected"), [(16000, -X), (8000, abs(X))])
    def test_conditions_on_bound_inputs_are_decided(self, write, rate, expected):
        path = write(CHOSEN)
        graph = load(path, bind={"rate": rate, "flags": 1, "n": 255}, dims={"N": 2})
        assert graph.inputs == ("x",)
        np.testing.assert_array_equal(run_float(graph, {"x": X})["y"], expected)

    def test_numbers_fill_shapes(self, write):
        text = "net (float[1,4] x, float[T,4] z) => (float[3,4] y) { y = Add(x, z) }"
        graph = load(write(text), bind={"z": 0.5}, dims={"T": 3})
        found = run_float(graph, {"x": X[None]})["y"]
        assert found[0].tolist() == [[-0.5, 2.5, -2.5, 4.5]] * 3
        with pytest.raises(UsageError, match="no input's shape has a symbol 'S'"):
            load(write(text), bind={"z": 0.5}, dims={"T": 3, "S": 3})

    @pytest.mark.parametrize(
        ("bind", "reason"),
        [
            ({"speed": 1}, r"there is no input 'speed' to bind; use one of its names, such as"),
            ({"rate": 0.5}, "the input 'rate' is int64, which has no 0.5"),
            ({"n": 256}, "the input 'n' is uint8, which has no 256"),
            ({"n": -1}, "the input 'n' is uint8, which has no -1"),
            ({"flags": 2}, "the input 'flags' is bool, which has no 2"),
        ],
    )
    def test_wrong_names_and_numbers(self, write, bind, reason):
        with pytest.raises(UsageError, match=reason):
            load(write(CHOSEN), bind=bind, dims={"N": 1})

    def test_an_initializer_is_no_input(self, write):
        text = "net (float[1,4] x) => (float[1,4] y) <float[1,4] w = {1,2,3,4}> { y = Add(x, w) }"
        with pytest.raises(UsageError, match="there is no input 'w'"):
            load(write(text), bind={"w": 1})


SIZED = """net (float[1,1,4,6] x, float[N,2] z) => (float[1,3,?,?] y, float[N,2] d) <
  float[3,1,3,3] w = {1,0,1,2,0,2,1,0,1, 1,0,1,2,0,2,1,0,1, 1,0,1,2,0,2,1,0,1}>
{
  y = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w)
  d = Neg(z)
}"""


class TestExtents:
    def test_numbers_in_the_file_are_replaced(self, write):
        graph = load(write(SIZED), dims={"x.2": 8, "N": 3})
        assert graph.tensor("x").shape == (1, 1, 8, 6)
        assert graph.tensor("y").shape == (1, 3, 4, 3)
        assert graph.tensor("d").shape == (3, 2)
        assert load(write(SIZED)).tensor("y").shape == (1, 3, 2, 3)

    @pytest.mark.parametrize("name", ["x.4", "y.2", "x", "z.0", "w.0"])
    def test_others_are_an_error_that_names_them(self, name, write):
        named = r"the symbols are N; extents that are numbers are x\.0, x\.1, x\.2, x\.3, z\.1"
        with pytest.raises(UsageError, match=f"no input's shape has a symbol '{name}'; {named}"):
            load(write(SIZED), dims={name: 2})

    def test_impossible_ones_are_refused(self, write):
        with pytest.raises(ModelError, match=r"the input 'x' has shape \[1, 1, -2, 6\]"):
            load(write(SIZED), dims={"x.2": -2})


class TestCommandLine:
    def test_options_reach_the_model(self, write, capsys):
        path = write(CHOSEN)
        options = ["--bind", "rate=16000", "--bind", "flags=1", "--bind", "n=0", "--dim", "N=1"]
        assert main(["inspect", str(path), "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)["inputs"] == {"x": [1, 4]}
        path = write(CUT, opset=13)
        assert main(["inspect", str(path), "--json", "--outputs", "d,a"]) == 0
        assert list(json.loads(capsys.readouterr().out)["outputs"]) == ["d", "a"]
        path = write(SHAPED, opset=18)
        assert main(["inspect", str(path), "--json", "--inputs", "b"]) == 0
        assert list(json.loads(capsys.readouterr().out)["inputs"]) == ["z", "b"]
        assert check_file(path, reading=Reading(inputs=["b"])).problems == ()
        path = write(CUT, opset=13)
        assert check_file(path, reading=Reading(outputs=["b"])).problems == ()
        assert check_file(path).problems

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (["--bind", "rate"], "is not NAME=X with a finite number X"),
            (["--bind", "rate=fast"], "is not NAME=X with a finite number X"),
            (["--bind", "rate=nan"], "is not NAME=X with a finite number X"),
            (["--bind", "=1"], "is not NAME=X with a finite number X"),
            (["--outputs", "a,,b"], "is not a list of names"),
            (["--inputs", ",a"], "is not a list of names"),
        ],
    )
    def test_malformed_options(self, write, capsys, options, reason):
        assert main(["check", str(write(CHOSEN)), *options]) == 2
        assert reason in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (["--bind", "rate=1", "--bind", "rate=2"], "--bind rate is given as 1 and as 2"),
            (["--bind", "rat=1"], "there is no input 'rat' to bind"),
            (["--outputs", "yy"], "there is no value 'yy'"),
        ],
    )
    def test_wrong_options(self, write, capsys, options, reason):
        assert main(["check", str(write(CHOSEN)), *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert reason in line

    def test_inputs_of_nnef_stay_inputs(self, tmp_path, capsys):
        (tmp_path / "graph.nnef").write_text("version 1.0; graph net(x) -> (y) {}")
        assert main(["check", str(tmp_path), "--bind", "y=1"]) == 2
        assert "inputs of NNEF models stay inputs; --bind is for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "expected"),
    [("main_graph", "my_net"), ("torch_jit", "my_net"), ("keyword", "keyword")],
)
def test_a_network_without_a_name_has_that_of_its_file(name, expected, write, tmp_path):
    path = write(f"{name} (float[1,4] x) => (float[1,4] y) {{ y = Neg(x) }}", opset=13)
    moved = path.rename(tmp_path / "my-net.onnx")
    assert load(moved).name == expected
