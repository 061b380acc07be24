import re

import numpy as np
import pytest
from cli_cases import MODEL, SAMPLES, Result, write_model

from nnef_hw.frontend import load
from nnef_hw.reference import run_float


def test_convert(cli, tiny, tmp_path):
    assert cli("convert", tiny / "tiny.nnef.tgz", "again.nnef.tgz") == Result(0, "", "")
    assert cli("convert", "again.nnef.tgz", "third.nnef.tgz", "--json").json == {
        "output": "third.nnef.tgz"
    }
    first, second = (tmp_path / f"{name}.nnef.tgz" for name in ("again", "third"))
    assert first.read_bytes() == second.read_bytes()


def test_convert_to_a_folder(cli, tiny, tmp_path):
    assert cli("convert", tiny / "tiny.nnef.tgz", "out/") == Result(0, "", "")
    assert cli("convert", "out", "back.nnef.tgz").status == 0
    assert cli("convert", tiny / "tiny.nnef.tgz", "direct.nnef.tgz").status == 0
    back, direct = (tmp_path / f"{name}.nnef.tgz" for name in ("back", "direct"))
    assert back.read_bytes() == direct.read_bytes()
    assert cli("convert", "back.nnef.tgz", "out") == Result(0, "", "")


def test_expanded_model_is_made_of_primitives(cli, tmp_path, rng):
    model = write_model(tmp_path / "m", "a = softmax(x);", "y = l2_normalization(a, axes = [2]);")
    assert cli("convert", model, "out.nnef.tgz", "--expand") == Result(0, "", "")
    before, after = load(model), load(tmp_path / "out.nnef.tgz")
    assert {node.op for node in after.nodes}.isdisjoint({"softmax", "l2_normalization"})
    inputs = {"x": rng.normal(size=(3, 2, 4, 4))}
    expected, found = (run_float(graph, inputs)["y"] for graph in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_quantized_model_is_not_expanded(refused, built):
    model = built / "model.nnef.tgz"
    refused(
        "convert",
        model,
        "out.nnef.tgz",
        "--expand",
        match="is quantized: its operators are those of the hardware",
    )


def test_folder_of_something_else_is_refused(refused, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("mine")
    refused("convert", MODEL, "notes", match=r"'notes' holds 'todo\.txt', which is not part of a")


@pytest.mark.parametrize(
    "command",
    [
        ["convert", MODEL],
        ["quantize", MODEL, "--calibrate", SAMPLES, "-o"],
        ["run", MODEL, "--input", SAMPLES, "--output"],
    ],
    ids=lambda command: command[0],
)
def test_wrong_output_is_refused(command, refused, tmp_path):
    (tmp_path / "folder.tgz").mkdir()
    refused(*command, tmp_path / "nowhere" / "y.nnef.tgz", match="nowhere")
    refused(
        *command, tmp_path / "folder.tgz", match=r"folder\.tgz: cannot be written: Is a directory"
    )


def test_output_of_unknown_format_is_refused(refused):
    refused("convert", MODEL, "model.xyz", match=r"'model\.xyz' .*; name it NAME\.nnef\.tgz")
    refused("convert", MODEL, "model.onnx", match="cannot be written")


def test_what_nnef_cannot_say_is_refused(refused, tmp_path):
    body = ("k = constant(shape = [1], value = [1e-30]);", "a = mul(x, k);", "y = relu(a);")
    model = write_model(tmp_path / "m", *body)
    graph = (model / "graph.nnef").read_text()
    (model / "graph.nnef").write_text(re.sub(r"external\(shape = \[.*?\]\)", "external()", graph))
    refused("convert", model, "out.nnef.tgz", match=r"graph\.nnef:4:\d+: .*'shape'")
