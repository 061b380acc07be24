"""Warnings of what a network loses: the same on the terminal, in JSON, on pages and later."""

import json
import shlex

import numpy as np
import pytest

from nnef_hw.frontend import save
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def raw(tmp_path, rng):
    """A network whose features span three powers of ten, and samples with its own classes."""
    scales = 10.0 ** np.linspace(-1, 2, 8)
    builder = GraphBuilder("raw")
    builder.input("x", (1, 8))
    hidden = builder.op("linear", "x", rng.normal(size=(6, 8)) / scales, rng.normal(size=(1, 6)))
    builder.op("linear", builder.op("relu", hidden, name="hidden"), rng.normal(size=(3, 6)),
               np.zeros((1, 3)), name="y")  # fmt: skip
    save(builder.build(), tmp_path / "raw.nnef.tgz")
    np.savez(tmp_path / "s.npz", inputs=rng.normal(size=(60, 8)) * scales)
    return [
        "quantize", "raw.nnef.tgz", "--calibrate", "s.npz", "--no-feature-scales", "-o",
        "q.nnef.tgz",
    ]  # fmt: skip


def test_quantize_warns_and_its_remedy_works(cli, raw, tmp_path):
    result = cli(*raw, "--json", "--report", "page.html")
    assert result.status == 0
    (warning,) = result.json["warnings"]
    assert result.err.startswith("nnef-hw: warning: layer 'hidden' is the first below 10 dB")
    assert result.err.splitlines()[-1] == f"    {warning['remedy']}"
    assert "as it is" in result.err
    assert result.err.count("nnef-hw: warning") == 1
    page = (tmp_path / "page.html").read_text()
    assert "as it is" in page
    assert all(each["option"] in page for each in warning["attempts"])

    options = shlex.split(warning["remedy"].removeprefix("give "))
    better = cli(*raw, "--json", *options)
    assert better.status == 0
    said = {each["option"]: each for each in warning["attempts"]}
    before, after = (
        {row["name"]: row["sqnr_db"] for row in each.json["layers"]} for each in (result, better)
    )
    assert after["y"] - before["y"] == pytest.approx(
        said[" ".join(map(shlex.quote, options))]["results_db"] - said[""]["results_db"], abs=3
    )
    assert after["y"] > before["y"] + 1


def test_settings_of_single_layers(cli, raw, refused):
    assert (
        cli(*raw, "--set", "hidden.activation_bits=12", "--set", 'calibration="minmax"').status == 0
    )
    assert cli(*raw, "--set", "calibration=entropy").status == 0
    refused(*raw, "--set", "hidden", match=r"--set 'hidden' is not \[LAYER\.\]KEY=VALUE")
    refused(
        *raw, "--set", "hidde.weight_bits=4", match="layer 'hidde' does not exist; did you mean 'hi"
    )
    refused(*raw, "--set", "weight_bit=4", match="key 'weight_bit' does not exist; did you mean")
    refused(*raw, "--set", "weight_bits=many", match="weight_bits is 'many'; give a whole number")


@pytest.mark.verilator
def test_builds_keep_their_warnings(cli, raw, tmp_path):
    build = ["build", raw[1], "--board", "icebreaker", *raw[2:5], "--no-bitstream", "--out", "b"]
    first = cli(*build, "--json")
    assert first.status == 0
    (warning,) = first.json["warnings"]
    assert (warning["kind"], warning["layer"]) == ("noise", "hidden")
    assert len(warning["attempts"]) > 5
    assert "first below 10 dB" in first.err
    again = cli(*build, "--json")
    assert again.json["warnings"] == [warning]
    assert "nothing to do" in again.err
    assert "first below 10 dB" in again.err
    assert "as it is" in (tmp_path / "b" / "report.html").read_text()
    assert json.loads((tmp_path / "b" / "report.json").read_text())["warnings"] == [warning]

    compared = cli("compare", "b", "--samples", "s.npz", "--json")
    (found,) = compared.json["warnings"]
    assert found["remedy"] == warning["remedy"]
    assert "as it is" in compared.err
    assert cli("compare", "b", "--samples", "s.npz").status == 0
    run = ("run", "b", "--on", "fixed", "--input", "s.npz", "--output", "y.npz")
    assert "first below 10 dB" in cli(*run).err
    assert cli(*run, "--json").json["warnings"][0]["remedy"] == warning["remedy"]


def test_plan_and_explore_warn_of_samples(cli, raw, tmp_path):
    np.savez(tmp_path / "s.npz", inputs=np.zeros((3, 8)))
    plan = cli("plan", raw[1], "--calibrate", "s.npz", "--board", "icebreaker", "--json")
    assert [each["kind"] for each in plan.json["warnings"]] == ["samples", "samples"]
    assert "all 24 numbers of input 'x' are 0" in plan.err
    explored = cli(
        "explore", raw[1], "--calibrate", "s.npz", "--boards", "icebreaker", "--until", "planned",
        "--out", "e", "--json",
    )  # fmt: skip
    assert explored.json["warnings"] == plan.json["warnings"]
    assert "all 24 numbers of input" in (tmp_path / "e" / "index.html").read_text()
