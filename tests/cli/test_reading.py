"""Options of every command that reads a model: symbols in shapes, legacy documents."""

import re

import numpy as np
import pytest

from nnef_hw.frontend import load

SYMBOLIC = """version 1.0;
extension tract_registry tract_core;
extension tract_symbol B;
graph net(x) -> (y)
{
    x = tract_core_external(shape = [B, 4], datum_type = 'f32');
    y = relu(x);
}
"""
LEGACY = """version 1.0
graph net(x) -> (y)
{
    x = external(shape = [1, 4])
    y = relu(x)
}
"""


@pytest.fixture
def model(tmp_path):
    """Write a model from its text."""

    def write(text):
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "graph.nnef").write_text(text)
        np.savez(tmp_path / "samples.npz", inputs=np.random.default_rng(1).normal(size=(64, 4)))
        return "model"

    return write


COMMANDS = {
    "check": ["check"],
    "inspect": ["inspect"],
    "convert": ["convert", "out.nnef.tgz"],
    "run": ["run", "--input", "samples.npz", "--output", "y.npz"],
    "quantize": ["quantize", "--calibrate", "samples.npz", "-o", "q.nnef.tgz"],
    "build": ["build", "--board", "icebreaker", "--calibrate", "samples.npz", "--no-bitstream"],
}


def arguments(command, model):
    name, *rest = COMMANDS[command]
    return [name, model, *rest]


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"build"}))
@pytest.mark.parametrize(
    ("text", "options", "refusal", "warning"),
    [
        (SYMBOLIC, ["--dim", "B=1"], "symbol 'B'; give it a value: --dim B=1", ""),
        (LEGACY, ["--lenient"], "graph.nnef:1:12: ", "nnef-hw: warning: .* a ';' is missing; .*\n"),
    ],
    ids=["dim", "lenient"],
)
def test_models_that_need_an_option(command, text, options, refusal, warning, cli, model):
    path = model(text)
    without = cli(*arguments(command, path))
    assert without.status == 2
    assert refusal in without.err
    result = cli(*arguments(command, path), *options)
    assert result.status == 0
    assert re.fullmatch(warning, result.err)


@pytest.mark.verilator
def test_build_reads_the_model_with_the_same_options(cli, model, tmp_path):
    result = cli(*arguments("build", model(SYMBOLIC)), "--dim", "B=1", "--out", "b", "--json")
    assert (result.status, result.err) == (0, "")
    assert "--dim B=1" in (tmp_path / "b" / "report.html").read_text()


def test_symbols_become_extents(cli, model, tmp_path):
    assert cli("convert", model(SYMBOLIC), "out.nnef.tgz", "--dim", "B=3").status == 0
    assert load(tmp_path / "out.nnef.tgz").tensor("y").shape == (3, 4)


@pytest.mark.parametrize("value", ["B", "=1", "B=", "B=0", "B=-1", "B=1.5", "B=x"])
def test_wrong_symbols_are_refused(value, cli):
    result = cli("check", "model", "--dim", value)
    assert (result.status, result.out) == (2, "")
    assert f"argument --dim: '{value}' is not NAME=N with a positive N" in result.err


def test_two_values_of_a_symbol_are_refused(refused, model):
    path = model(SYMBOLIC)
    refused("check", path, "--dim", "B=1", "--dim", "B=2", match="--dim B is given as 1 and as 2")


def test_quantized_model_has_no_symbols(refused, built):
    refused("check", built / "model.nnef.tgz", "--dim", "B=1", match="has no symbol 'B'; leave out")


def test_options_mean_nothing_to_a_build(refused, built, tmp_path):
    options = ("--input", built.parent / "bare.npz", "--output", tmp_path / "y.npz")
    refused("run", built, *options, "--lenient", match="is a build: its model was read already")
    refused(
        "run", built, *options, "--dim", "B=1", match="leave --dim, --lenient, --inputs, --outputs"
    )
    refused(
        "run",
        built,
        *options,
        "--bind",
        "x=1",
        match="--bind, --state, --front and --stream to nnef-hw build",
    )
