import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_cases import (
    MODEL,
    SAMPLES,
    UNSTREAMED_MODELS,
    WRONG_MODELS,
    truncated_archive,
    write_samples,
)

from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import save
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

BUILD_KEYS = {
    "model", "board", "device", "arch", "macs", "multipliers", "cycles_per_inference",
    "latency_cycles", "period", "settling", "mac_utilization", "clock_mhz", "fmax_mhz",
    "inferences_per_second", "link_inferences_per_second", "resources", "bitstream",
    "timing_met", "seconds",
}  # fmt: skip


@pytest.mark.verilator
def test_report_tells_the_commands_that_give_it(cli, tiny, tmp_path):
    """As they were given, options of quantization included, and quoted."""
    model = shutil.copy(tiny / "tiny.nnef.tgz", tmp_path / "my model.nnef.tgz")
    options = ["--board", "icebreaker", "--calibrate", tiny / "samples.npz", "--weight-bits", 4,
               "--no-bitstream", "--out", "out"]  # fmt: skip
    assert cli("build", model, *options).status == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    first, *others = [shlex.split(command) for command in report["commands"]]
    assert first == ["nnef-hw", "build", str(model), *map(str, options)]
    assert [command[1] for command in others] == ["sim", "compare"]

    again = ["again" if word == "out" else word for word in first[1:]]
    assert cli(*again).status == 0
    top = Path("rtl/top.v")
    assert (tmp_path / "again" / top).read_bytes() == (tmp_path / "out" / top).read_bytes()
    for command in others:
        assert cli(*command[1:]).status == 0


@pytest.mark.verilator
def test_build_sim_compare_of_the_example(cli, tmp_path):
    result = cli("build", MODEL, "--board", "ice40", "--calibrate", SAMPLES, "--no-bitstream")
    assert (result.status, result.err) == (0, "")
    assert "bit-exact over 450 frames, cycles as predicted" in result.out
    assert (tmp_path / "build" / "digits_cnn" / "manifest.json").is_file()

    command = ("build", MODEL, "--board", "ice40", "--calibrate", SAMPLES, "--no-bitstream")
    result = cli(*command, "--json")
    assert (result.status, result.err) == (0, "")
    value = result.json
    assert value.keys() >= BUILD_KEYS
    assert value["macs"] == 23_680
    assert value["bitstream"] is value["fmax_mhz"] is value["timing_met"] is None
    for row in value["resources"].values():
        assert row.keys() == {"used", "available", "estimated"}
    assert value["accuracy"]["samples"] == 360
    assert value["accuracy"]["rtl"] == value["accuracy"]["fixed"]

    compared = cli("compare", "build/digits_cnn", "--samples", SAMPLES, "--json")
    assert (compared.status, compared.err) == (0, "")
    assert compared.json["accuracy"] == {
        key: value["accuracy"][key] for key in ("float", "fixed", "rtl")
    }


@pytest.mark.parametrize(("make", "match"), WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_wrong_model_is_refused(make, match, refused, tmp_path):
    model = make(tmp_path)
    samples = write_samples(tmp_path / "s.npz", [2, 4, 4, 4] if "4, 4, 4" in match else [2, 4, 4])
    calibrate = ("--calibrate", samples)
    refused(
        "build", model, "--board", "icebreaker", *calibrate, "--out", tmp_path / "out", match=match
    )
    refused("quantize", model, *calibrate, "-o", tmp_path / "q.nnef.tgz", match=match)


@pytest.mark.parametrize(("make", "match"), UNSTREAMED_MODELS.values(), ids=UNSTREAMED_MODELS)
def test_what_cannot_be_streamed_is_quantized_and_run_but_not_built(
    make, match, cli, refused, tmp_path
):
    model, samples = make(tmp_path), write_samples(tmp_path / "s.npz", [2, 4, 4])
    calibrate = ("--calibrate", samples)
    for options in ((), calibrate):
        refused(
            "build", model, "--board", "icebreaker", *options, "--out", tmp_path / "o", match=match
        )
    fixed, output = tmp_path / "q.nnef.tgz", tmp_path / "y.npz"
    assert cli("quantize", model, *calibrate, "-o", fixed).status == 0
    refused("build", fixed, "--board", "icebreaker", "--out", tmp_path / "out", match=match)
    result = cli("run", fixed, "--on", "fixed", "--input", samples, "--output", output)
    assert (result.status, result.err) == (0, "")
    assert np.load(output)["y"].ndim == 4


def test_every_problem_is_a_message(refused, tmp_path):
    make, match = WRONG_MODELS["unknown operators"]
    result = refused("build", make(tmp_path), "--board", "icebreaker", match=match)
    assert len(re.findall("^nnef-hw: .*graph.nnef:[567]:9: ", result.err, re.MULTILINE)) == 3


def test_wrong_model_keeps_the_previous_build(built, refused, tmp_path):
    shutil.copytree(built, tmp_path / "out")
    model = truncated_archive(tmp_path)
    refused("build", model, "--board", "icebreaker", "--out", tmp_path / "out", match="truncated")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            ["--board", "icebreaker", "--baud", "7"],
            "a UART of 7 baud is too slow: the link forgets .*; give --baud 9600 or more",
        ),
        (
            ["--board", "icebraker"],
            r"'icebraker' is not known; did you mean 'icebreaker'\? .*ulx3s",
        ),
        (["--board", ""], "choose one of .*icebreaker.*ulx3s_85f"),
        (["--freq", "23.456"], r"cannot make 23\.456 MHz .*nearest possible: 23\.25 or 23\.625"),
        (["--freq", "0"], "--freq must be positive, not 0"),
        (["--freq=-24"], "--freq must be positive, not -24"),
        (["--freq", "nan"], "--freq must be positive, not nan"),
        (["--freq", "1e300"], "nearest possible: 270 MHz"),
        (
            ["--target-fps", "1e9"],
            r"does not reach 1e\+09 .*at 36\.75 MHz.*; use --target-fps \d+: ",
        ),
        (["--target-fps", "0"], "--target-fps must be positive, not 0"),
        (["--target-fps", "inf"], "--target-fps must be positive, not inf"),
        (["--target-fps", "1e-320"], "--target-fps must be positive"),
    ],
    ids="".join,
)
def test_wrong_build_options_are_refused(options, match, refused, tiny, out):
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    board = [] if "--board" in options else ["--board", "icebreaker"]
    refused("build", model, "--calibrate", samples, "--out", out, *board, *options, match=match)


def test_float_model_without_samples_is_refused(refused, tiny, out):
    model = tiny / "tiny.nnef.tgz"
    match = r"model 'tiny' is not quantized and no samples were given; .*--calibrate samples\.npz"
    refused("build", model, "--board", "icebreaker", "--out", out, match=match)
    refused("quantize", model, "-o", out.parent / "q.nnef.tgz", match=match)
    write_samples(out.parent / "s.npz", [1, 6, 6])
    options = ("--on", "fixed", "--input", out.parent / "s.npz", "--output", out.parent / "y.npz")
    refused("run", model, *options, match="is not quantized; run nnef-hw quantize first")


def test_model_that_does_not_fit_is_refused(refused, cli, tmp_path, monkeypatch):
    # Its weights say so before it is calibrated, and the remedy takes rough ranges.
    def roughly(graph, samples, scheme, **options):
        assert scheme.calibration == "minmax"
        return fix_model(graph, samples, scheme, **options)

    monkeypatch.setattr("nnef_hw.flow.fixed.fix_model", roughly)
    net = GraphBuilder("large")
    weights = np.random.default_rng(0).normal(size=(157, 127))
    net.op("linear", net.input("x", [1, 127]), weights, np.zeros((1, 157)), name="y")
    save(net.build(), tmp_path / "large.nnef.tgz")
    samples = write_samples(tmp_path / "s.npz", [127])
    command = ("build", tmp_path / "large.nnef.tgz", "--calibrate", samples)
    command += ("--arch", "streaming", "--board")
    result = refused(
        *command, "icebreaker", "--out", tmp_path / "out", match="; use --arch engine: "
    )
    assert "'large' does not fit icebreaker (up5k) with --arch streaming: it takes at least " in (
        result.err
    )
    assert " block RAMs, " in result.err
    assert " more than the 29 left beside the host link (" in result.err
    cycles = re.search(r"use --arch engine: ([\d,]+) cycles, [\d,.]+ inferences/s\s*$", result.err)[
        1
    ]
    asked = ("--board", "icebreaker", "--arch", "engine", "--json")
    (row,) = cli("plan", tmp_path / "large.nnef.tgz", *asked).json["boards"]
    assert row["cycles_per_inference"] == int(cycles.replace(",", ""))


def test_wrong_out_is_refused(refused, tiny, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "model.nnef.tgz").write_text("mine")
    command = ["build", tiny / "tiny.nnef.tgz", "--calibrate", tiny / "samples.npz"]
    command += ["--board", "icebreaker", "--out"]
    refused(*command, tmp_path / "file", match="'.*file' is a file; choose another --out")
    refused(*command, tmp_path / "file" / "below", match="'.*file' is a file; choose another")
    refused(
        *command, tmp_path / "work", match="'.*work' holds files that are not a build; give --out"
    )


def test_refused_build_removes_the_parents_it_made(refused, tmp_path):
    refused(
        "build", MODEL, "--board", "icebreaker", "--calibrate", SAMPLES, "--target-fps", 1e9,
        "--out", tmp_path / "a" / "b", match="does not reach",
    )  # fmt: skip
