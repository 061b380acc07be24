import json
import shutil

import numpy as np
import pytest
from cli_cases import Result

from nnef_hw.frontend import load
from nnef_hw.ir import Stage


def test_quantize_and_run_fixed(cli, tiny, tmp_path):
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    value = cli("quantize", model, "--calibrate", samples, "-o", "q.nnef.tgz", "--json").json
    assert value["calibration_samples"] == value["samples"] == 20
    assert value["calibrated"] is True
    assert load(tmp_path / "q.nnef.tgz").stage == Stage.FIXED
    assert cli("check", "q.nnef.tgz").status == 0

    for source, on, output in (("q.nnef.tgz", "fixed", "y.npz"), (model, "float", "z.npz")):
        result = cli("run", source, "--on", on, "--input", samples, "--output", output)
        assert result == Result(0, "", "")
    with np.load(tmp_path / "y.npz") as fixed, np.load(tmp_path / "z.npz") as real:
        assert fixed["scores"].shape == real["scores"].shape == (20, 4)
        span = np.abs(real["scores"]).max()
        np.testing.assert_allclose(fixed["scores"], real["scores"], rtol=0, atol=0.3 * span)


@pytest.mark.verilator
def test_run_on_rtl_equals_fixed(cli, built, tiny, tmp_path):
    for on in ("rtl", "fixed", "float"):
        options = ("--on", on, "--input", tiny / "bare.npz", "--output", f"{on}.npz", "--json")
        result = cli("run", built, *options)
        assert (result.status, result.err) == (0, "")
        shapes = {"scores": [20, 4]}
        expected = {"on": on, "output": f"{on}.npz", "shapes": shapes, "warnings": []}
        assert result.json == expected
    outputs = {on: dict(np.load(tmp_path / f"{on}.npz")) for on in ("rtl", "fixed", "float")}
    np.testing.assert_array_equal(outputs["rtl"]["scores"], outputs["fixed"]["scores"])
    assert not np.array_equal(outputs["rtl"]["scores"], outputs["float"]["scores"])


def test_warning_is_one_line_on_stderr(cli, built, tmp_path):
    np.savez(tmp_path / "s.npz", inputs=np.full((10, 1, 6, 6), 5.0))
    result = cli("run", built, "--on", "fixed", "--input", "s.npz", "--output", "y.npz", "--json")
    assert (result.status, result.json["on"]) == (0, "fixed")
    line, *loss = result.err.splitlines()
    assert line.startswith("nnef-hw: warning: input 'image': 100% of the values are outside of")
    assert loss[0].startswith("nnef-hw: warning: layer 'relu1' is the first below 10 dB")
    assert [warning["kind"] for warning in result.json["warnings"]] == ["noise"]


def test_rtl_of_a_model_file_is_refused(refused, tiny, tmp_path):
    options = ("--on", "rtl", "--input", tiny / "samples.npz", "--output", tmp_path / "y.npz")
    match = "is not a build, so there is no hardware to run; run nnef-hw build first"
    refused("run", tiny / "tiny.nnef.tgz", *options, match=match)
    refused("run", tmp_path / "nope", *options, match=match)


def test_two_builds_side_by_side(cli, built, tmp_path):
    found = cli("report", built, built, "--json", "-o", tmp_path / "both.html").json
    assert found["builds"] == [str(built), str(built)]
    assert all(row["first"] == row["second"] for row in found["figures"])
    assert (tmp_path / "both.html").read_text().startswith("<!doctype html>")
    assert "cycles per inference" in cli("report", built, built).out
    wrong = cli("report", built, tmp_path / "none")
    assert (wrong.status, wrong.out) == (2, "")
    assert "does not exist" in wrong.err


def without(key):
    return lambda report: {name: value for name, value in report.items() if name != key}


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        *((without(key), "is damaged") for key in ("macs", "layers", "noise", "accuracy")),
        (lambda report: report | {"layers": [{"name": "conv1"}]}, "is damaged"),
        (lambda report: report | {"resources": {}}, "is damaged"),
        (lambda report: {}, "is damaged"),
        (lambda report: [report], "is damaged"),
        (None, "is damaged"),
        ("gone", "does not exist"),
    ],
    ids=[
        "macs", "layers", "noise", "accuracy", "layer", "resources", "empty", "list", "cut", "gone",
    ],
)  # fmt: skip
def test_a_report_that_is_none_is_refused(damage, match, refused, built, tmp_path):
    """Of another version, cut off, or not ours: the file is named."""
    shutil.copytree(built, tmp_path / "other")
    path = tmp_path / "other" / "report.json"
    text = path.read_text()
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(text[:-9] if damage is None else json.dumps(damage(json.loads(text))))
    for builds in ((built, path.parent), (path.parent, built)):
        refused("report", *builds, match=rf"other/report\.json' {match}; run nnef-hw build again")
