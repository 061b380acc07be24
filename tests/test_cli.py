"""The command line: every command, its JSON, and every way a user can get it wrong."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.build.pipeline import BuildOptions, build
from nnef_hw.cli import main
from nnef_hw.frontend import load, save
from nnef_hw.frontend.nnef.tensor_file import write_tensor
from nnef_hw.ir import Stage
from nnef_hw.testing import GraphBuilder

EXAMPLE = Path(__file__).parents[1] / "examples" / "digits_cnn"
MODEL, SAMPLES = EXAMPLE / "digits_cnn.nnef.tgz", EXAMPLE / "samples.npz"
BUILD_KEYS = {
    "model", "board", "device", "arch", "macs", "multipliers", "cycles_per_inference",
    "latency_cycles", "mac_utilization", "clock_mhz", "fmax_mhz", "inferences_per_second",
    "link_inferences_per_second", "resources", "bitstream", "timing_met", "seconds",
}  # fmt: skip
SIM_KEYS = {
    "frames", "bit_exact", "mismatches", "cycles_per_inference", "latency_cycles",
    "predicted_cycles_per_inference", "predicted_latency_cycles", "cycles_per_second",
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def tiny_graph(seed=0):
    """Return a network of a few layers on 6x6 pixels."""
    rng = np.random.default_rng(seed)
    net = GraphBuilder("tiny")
    y = net.input("image", [1, 1, 6, 6])
    y = net.conv(y, rng.normal(size=(3, 1, 3, 3)), rng.normal(size=(1, 3)), name="conv1")
    y = net.pool("max_pool", net.op("relu", y, name="relu1"), name="pool1")
    y = net.reshape(y, [1, 12], name="flat")
    net.op("linear", y, rng.normal(size=(4, 12)), rng.normal(size=(1, 4)), name="scores")
    return net.build()


def write_samples(path, shape, labels=None, count=20):
    rng = np.random.default_rng(1)
    arrays = {} if labels is None else {"labels": labels(rng, count)}
    np.savez(path, inputs=rng.uniform(-1, 1, [count, *shape]), **arrays)
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Folder with ``tiny.nnef.tgz`` and samples with classes, real labels, and none."""
    folder = tmp_path_factory.mktemp("tiny")
    save(tiny_graph(), folder / "tiny.nnef.tgz")
    write_samples(folder / "samples.npz", [1, 6, 6], lambda rng, n: rng.integers(0, 4, n))
    write_samples(folder / "real.npz", [1, 6, 6], lambda rng, n: rng.normal(size=(n, 4)))
    write_samples(folder / "bare.npz", [1, 6, 6])
    return folder


@pytest.fixture(scope="module")
def built(tiny):
    """A build without bitstream; nobody changes it."""
    folder = tiny / "built"
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    build(BuildOptions(model, "icebreaker", folder, calibrate=samples, bitstream=False))
    return folder


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Run a command in the test's own folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        return Result(status, *capsys.readouterr())

    return run


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def refused(cli, tmp_path):
    """Run a command that must be refused: status 2, one clear message, nothing touched."""

    def check(*arguments, match, status=2):
        before = contents(tmp_path)
        result = cli(*arguments)
        assert result.status == status, result.err
        assert not result.out
        assert result.err.startswith("nnef-hw: ")
        assert "Traceback" not in result.err
        assert re.search(match, result.err, re.DOTALL), result.err
        assert contents(tmp_path) == before
        return result

    return check


def write_model(folder, *body, shape="[1, 2, 4, 4]", **arrays):
    """Write a folder from statements, the first in line 5, and arrays or bytes by label."""
    lines = ["version 1.0;", "graph net(x) -> (y)", "{", f"    x = external(shape = {shape});"]
    lines += [f"    {line}" for line in body] + ["}"]
    folder.mkdir()
    (folder / "graph.nnef").write_text("\n".join(lines) + "\n")
    for label, array in arrays.items():
        data = array if isinstance(array, bytes) else write_tensor(np.asarray(array, np.float32))
        (folder / f"{label}.dat").write_bytes(data)
    return folder


# happy paths


def test_check(cli, tiny):
    result = cli("check", MODEL)
    assert result == Result(0, "digits_cnn: valid NNEF; can be built (streaming)\n", "")
    assert cli("check", tiny / "tiny.nnef.tgz", "--json").json == {
        "model": "tiny", "valid": True, "architectures": {"streaming": True}, "problems": [],
    }  # fmt: skip


def test_inspect(cli, tiny):
    text = cli("inspect", MODEL)
    assert (text.status, text.err) == (0, "")
    assert "23,680" in text.out
    value = cli("inspect", tiny / "tiny.nnef.tgz", "--json").json
    assert value["macs"] == 16 * 3 * 9 + 12 * 4
    assert value["parameters"] == 3 * 9 + 3 + 12 * 4 + 4
    assert value["inputs"] == {"image": [1, 1, 6, 6]}
    by_name = {layer["name"]: layer for layer in value["layers"]}
    assert by_name["conv1"]["macs"] == 16 * 3 * 9
    assert re.search(r"tiny\.nnef\.tgz/graph\.nnef:14:\d+$", by_name["scores"]["location"])


def test_convert(cli, tiny, tmp_path):
    assert cli("convert", tiny / "tiny.nnef.tgz", "again.nnef.tgz") == Result(0, "", "")
    assert cli("convert", "again.nnef.tgz", "third.nnef.tgz", "--json").json == {
        "output": "third.nnef.tgz"
    }
    first, second = (tmp_path / f"{name}.nnef.tgz" for name in ("again", "third"))
    assert first.read_bytes() == second.read_bytes()


def test_quantize_and_run_fixed(cli, tiny, tmp_path):
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    value = cli("quantize", model, "--calibrate", samples, "-o", "q.nnef.tgz", "--json").json
    assert value["calibration_samples"] == 4
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


@pytest.mark.verilator
def test_sim(cli, built, tmp_path):
    plain = cli("sim", built)
    assert (plain.status, plain.err) == (0, "")
    assert "bit exact" in plain.out

    value = cli("sim", built, "--json").json
    assert value.keys() >= SIM_KEYS
    assert (value["frames"], value["bit_exact"], value["mismatches"]) == (16, True, 0)
    assert value["cycles_per_inference"] == value["predicted_cycles_per_inference"]
    assert value["latency_cycles"] == value["predicted_latency_cycles"]

    samples = built.parent / "samples.npz"
    options = ("--samples", samples, "--limit", 3, "--stall", 0.5, "--trace", "out.vcd")
    stalled = cli("sim", built, *options, "--json")
    assert (stalled.status, stalled.err) == (0, "")
    assert (stalled.json["frames"], stalled.json["bit_exact"]) == (3, True)
    assert stalled.json["cycles"] > 1.5 * 36 * 3
    assert "$enddefinitions" in (tmp_path / "out.vcd").read_text()


@pytest.mark.verilator
def test_compare(cli, built, tiny):
    value = cli("compare", built, "--samples", tiny / "samples.npz", "--json").json
    assert value.keys() >= {"samples", "bit_exact", "accuracy", "layers"}
    assert (value["samples"], value["bit_exact"], value["mae"]) == (20, True, None)
    assert (value["calibration_samples"], value["evaluation_samples"]) == (4, 16)
    assert value["accuracy"].keys() == {"float", "fixed", "rtl"}
    assert [layer.keys() for layer in value["layers"]] == [{"name", "op", "sqnr_db"}] * 3
    assert all(layer["sqnr_db"] > 10 for layer in value["layers"])

    real = cli("compare", built, "--samples", tiny / "real.npz", "--json").json
    assert real["accuracy"] is None
    assert real["mae"]["rtl"] == real["mae"]["fixed"]
    bare = cli("compare", built, "--samples", tiny / "bare.npz", "--json").json
    assert (bare["accuracy"], bare["mae"]) == (None, None)
    text = cli("compare", built, "--samples", tiny / "samples.npz")
    assert "sqnr db" in text.out


@pytest.mark.verilator
def test_run_on_rtl_equals_fixed(cli, built, tiny, tmp_path):
    for on in ("rtl", "fixed", "float"):
        options = ("--on", on, "--input", tiny / "bare.npz", "--output", f"{on}.npz", "--json")
        result = cli("run", built, *options)
        assert (result.status, result.err) == (0, "")
        assert result.json == {"on": on, "output": f"{on}.npz", "shapes": {"scores": [20, 4]}}
    outputs = {on: dict(np.load(tmp_path / f"{on}.npz")) for on in ("rtl", "fixed", "float")}
    np.testing.assert_array_equal(outputs["rtl"]["scores"], outputs["fixed"]["scores"])
    assert not np.array_equal(outputs["rtl"]["scores"], outputs["float"]["scores"])


def test_boards(cli):
    value = cli("boards", "--json").json
    assert {"icebreaker", "ulx3s_85f"} <= {row["name"] for row in value["boards"]}
    assert "iCEBreaker" in cli("boards").out


def test_doctor(cli):
    result = cli("doctor", "--json")
    rows = {row["name"]: row for row in result.json["tools"]}
    assert {"verilator", "yosys", "nextpnr-ice40"} <= rows.keys()
    assert result.status == (0 if all(row["found"] for row in rows.values()) else 3)
    assert all(row["remedy"] for row in rows.values() if not row["found"])


def test_doctor_reports_a_missing_tool(cli, monkeypatch):
    monkeypatch.setenv("NNEF_HW_YOSYS", "no-such-yosys")
    result = cli("doctor", "--json")
    row = next(row for row in result.json["tools"] if row["name"] == "yosys")
    assert (result.status, row["found"]) == (3, False)
    assert "no-such-yosys" in row["problem"]


# wrong models


def truncated_archive(folder):
    path = folder / "cut.nnef.tgz"
    path.write_bytes(MODEL.read_bytes()[:3000])
    return path


def random_bytes(folder):
    path = folder / "noise.nnef.tgz"
    path.write_bytes(bytes(range(256)) * 8)
    return path


LINEAR = "y = linear(x, w);"
FILTER = "w = variable(shape = [2, 2, 3, 3], label = 'w');"
CONV = "y = conv(x, w, padding = [(1, 1), (1, 1)], stride = [1, 1], dilation = [1, 1], groups = 1);"
WEIGHTS = np.ones((2, 2, 3, 3))
NAN = np.where(np.arange(36) == 7, np.nan, 1.0).reshape(2, 2, 3, 3)

WRONG_MODELS = {
    "missing": (lambda folder: folder / "nope.nnef.tgz", r"nope\.nnef\.tgz does not exist"),
    "truncated archive": (truncated_archive, r"cut\.nnef\.tgz: the gzip file is truncated; get it"),
    "no archive": (random_bytes, r"noise\.nnef\.tgz: the file is no NNEF model; give a folder"),
    "truncated data": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=write_tensor(WEIGHTS)[:-20]),
        r"w\.dat: variable 'w': .*288 bytes.* 268; is it truncated\?",
    ),
    "data of another shape": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=WEIGHTS[:, :1]),
        r"graph\.nnef:5:\d+: .*the graph says shape \[2, 2, 3, 3\], but w\.dat has \[2, 1, 3, 3\]",
    ),
    "no data": (
        lambda folder: write_model(folder / "m", FILTER, CONV),
        r"graph\.nnef:5:\d+: .*no file 'w\.dat'",
    ),
    "NaN in weights": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=NAN),
        r"graph\.nnef:5:\d+: .*w\.dat holds nan at \[0, 0, 2, 1\]",
    ),
    "infinity in weights": (
        lambda folder: write_model(folder / "m", FILTER, CONV, w=WEIGHTS * np.inf),
        r"graph\.nnef:5:\d+: .*holds inf at \[0, 0, 0, 0\] and 35 more",
    ),
    "syntax error": (
        lambda folder: write_model(folder / "m", "y = relu(x;"),
        r"graph\.nnef:5:15: .*\n    +y = relu\(x;\n +\^",
    ),
    "unknown operators": (
        lambda folder: write_model(folder / "m", "a = foo(x);", "b = reluu(a);", "y = bar(b);"),
        r":5:9: .*'foo'.*:6:9: .*'reluu' is unknown; did you mean 'relu'\?.*:7:9: .*'bar'",
    ),
    "unsupported dilation": (
        lambda folder: write_model(
            folder / "m", FILTER, CONV.replace("dilation = [1, 1]", "dilation = [2, 1]"), w=WEIGHTS
        ),
        r"graph\.nnef:6:\d+: conv 'y': dilation \[2, 1\] is not supported; use 1",
    ),
    "unsupported rank": (
        lambda folder: write_model(
            folder / "m",
            "w = variable(shape = [2, 2, 1, 1, 1], label = 'w');",
            "y = conv(x, w);",
            shape="[1, 2, 4, 4, 4]",
            w=np.ones((2, 2, 1, 1, 1)),
        ),
        r"conv 'y': its input has shape \[1, 2, 4, 4, 4\]",
    ),
}


@pytest.fixture(params=["new", "old"])
def out(request, tmp_path):
    """Folder for a build that is not there, or holds a good one."""
    folder = tmp_path / "out"
    if request.param == "old":
        shutil.copytree(request.getfixturevalue("built"), folder)
    return folder


@pytest.mark.parametrize(("make", "match"), WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_wrong_model_is_refused(make, match, refused, tmp_path):
    model = make(tmp_path)
    samples = write_samples(tmp_path / "s.npz", [2, 4, 4, 4] if "4, 4, 4" in match else [2, 4, 4])
    calibrate = ("--calibrate", samples)
    refused(
        "build", model, "--board", "icebreaker", *calibrate, "--out", tmp_path / "out", match=match
    )
    refused("quantize", model, *calibrate, "-o", tmp_path / "q.nnef.tgz", match=match)


@pytest.mark.parametrize(("make", "match"), WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_check_lists_the_problems(make, match, cli, tmp_path):
    model = make(tmp_path)
    text = cli("check", model)
    assert text.status == 2
    assert re.search(match, text.err, re.DOTALL)
    result = cli("check", model, "--json")
    assert result.status == 2
    if "does not exist" in match:
        assert (result.out, text.out) == ("", "")
        return
    assert not result.err
    assert result.json["architectures"] == {"streaming": False}
    assert "".join(f"nnef-hw: {each}\n" for each in result.json["problems"]) == text.err
    valid, verdict = False, "not valid NNEF"
    if "conv 'y'" in match:
        valid, verdict = True, "valid NNEF"
    elif "'foo'" in match:
        valid, verdict = None, "cannot be read"
    assert result.json["valid"] is valid
    assert f": {verdict}; {len(result.json['problems'])} problem" in text.out


def test_every_problem_is_a_message(refused, tmp_path):
    make, match = WRONG_MODELS["unknown operators"]
    result = refused("build", make(tmp_path), "--board", "icebreaker", match=match)
    assert len(re.findall("^nnef-hw: .*graph.nnef:[567]:9: ", result.err, re.MULTILINE)) == 3


def test_wrong_model_keeps_the_previous_build(built, refused, tmp_path):
    shutil.copytree(built, tmp_path / "out")
    model = truncated_archive(tmp_path)
    refused("build", model, "--board", "icebreaker", "--out", tmp_path / "out", match="truncated")


# wrong samples


def save_inputs(**arrays):
    def write(folder):
        np.savez(folder / "wrong.npz", **arrays)
        return folder / "wrong.npz"

    return write


def not_an_archive(folder):
    (folder / "wrong.npz").write_text("1, 2, 3\n")
    return folder / "wrong.npz"


def half_an_archive(folder):
    raw = SAMPLES.read_bytes()
    (folder / "wrong.npz").write_bytes(raw[: len(raw) // 2])
    return folder / "wrong.npz"


GOOD = np.full((10, 1, 6, 6), 0.5)
WRONG_SAMPLES = {
    "missing": (lambda folder: folder / "nope.npz", r"sample file .*nope\.npz does not exist"),
    "not an npz": (not_an_archive, r"wrong\.npz is not an \.npz file.*; write it with numpy.savez"),
    "truncated": (half_an_archive, r"wrong\.npz is not an \.npz file"),
    "NaN": (
        save_inputs(inputs=np.where(np.arange(10)[:, None, None, None] == 3, np.nan, GOOD)),
        r"wrong\.npz: array 'inputs' has NaN or infinity in sample 3",
    ),
    "infinity": (save_inputs(inputs=GOOD * np.inf), "in sample 0"),
    "wrong shape": (
        save_inputs(inputs=np.ones((10, 6, 6, 1))),
        r"wrong\.npz: array 'inputs' has shape \[10, 6, 6, 1\], but the model takes \[N, 1, 6, 6\]",
    ),
    "no inputs": (
        save_inputs(pixels=GOOD),
        r"wrong\.npz: no array 'image'; it holds pixels; store 'image' \(or 'inputs'\)",
    ),
    "empty": (save_inputs(inputs=GOOD[:0]), r"array 'inputs' has no samples"),
    "fewer labels": (
        save_inputs(inputs=GOOD, labels=np.zeros(9, int)),
        r"different numbers of samples: \[9, 10\]",
    ),
}


@pytest.mark.parametrize(("make", "match"), WRONG_SAMPLES.values(), ids=WRONG_SAMPLES)
def test_wrong_samples_are_refused(make, match, refused, tiny, built, tmp_path):
    samples, model = make(tmp_path), tiny / "tiny.nnef.tgz"
    refused(
        "build", model, "--board", "icebreaker", "--calibrate", samples, "--out", tmp_path / "out",
        match=match,
    )  # fmt: skip
    refused("quantize", model, "--calibrate", samples, "-o", tmp_path / "q.nnef.tgz", match=match)
    refused("sim", built, "--samples", samples, match=match)
    refused("compare", built, "--samples", samples, match=match)
    refused("run", built, "--input", samples, "--output", tmp_path / "y.npz", match=match)


@pytest.mark.verilator
def test_labels_of_another_shape_are_refused(refused, tiny, tmp_path):
    np.savez(tmp_path / "s.npz", inputs=GOOD, labels=np.zeros((10, 3)))
    refused(
        "compare", tiny / "built", "--samples", tmp_path / "s.npz",
        match=r"s\.npz: array 'labels' has shape \[10, 3\], 3 per sample; give one value per",
    )  # fmt: skip


def test_warning_is_one_line_on_stderr(cli, built, tmp_path):
    np.savez(tmp_path / "s.npz", inputs=GOOD * 10)
    result = cli("run", built, "--on", "fixed", "--input", "s.npz", "--output", "y.npz", "--json")
    assert (result.status, result.json["on"]) == (0, "fixed")
    (line,) = result.err.splitlines()
    assert line.startswith("nnef-hw: warning: input 'image': 100% of the values are outside of")


# wrong options


@pytest.mark.parametrize(
    ("options", "match"),
    [
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
        (["--target-fps", "1e9"], r"does not reach 1e\+09 .*at 24 MHz.*ask for less; \d+ is"),
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


def test_model_that_does_not_fit_is_refused(refused, tmp_path):
    net = GraphBuilder("large")
    weights = np.random.default_rng(0).normal(size=(157, 127))
    net.op("linear", net.input("x", [1, 127]), weights, np.zeros((1, 157)), name="y")
    save(net.build(), tmp_path / "large.nnef.tgz")
    samples = write_samples(tmp_path / "s.npz", [127])
    command = ("build", tmp_path / "large.nnef.tgz", "--calibrate", samples, "--board")
    result = refused(*command, "icebreaker", "--out", tmp_path / "out", match="use a bigger board")
    assert "'large' does not fit icebreaker (up5k): it needs 19939 bytes of weights" in result.err
    assert "has 15360 bytes of block RAM (15 KB)" in result.err
    assert "(it fits ulx3s_85f)" in result.err


def test_wrong_out_is_refused(refused, tiny, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "model.nnef.tgz").write_text("mine")
    command = ["build", tiny / "tiny.nnef.tgz", "--calibrate", tiny / "samples.npz"]
    command += ["--board", "icebreaker", "--out"]
    refused(*command, tmp_path / "file", match="'.*file' is a file; choose another --out")
    refused(*command, tmp_path / "file" / "below", match="'.*file' is a file; choose another")
    refused(*command, tmp_path / "work", match="'.*work' holds files that are no build; give --out")


def test_refused_build_removes_the_parents_it_made(refused, tmp_path):
    refused(
        "build", MODEL, "--board", "icebreaker", "--calibrate", SAMPLES, "--target-fps", 1e9,
        "--out", tmp_path / "a" / "b", match="does not reach",
    )  # fmt: skip


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
    refused(*command, tmp_path / "folder.tgz", match=r"folder\.tgz'? cannot be|cannot write")


def test_output_of_unknown_format_is_refused(refused):
    refused("convert", MODEL, "model.xyz", match=r"'model\.xyz' .*; name it NAME\.nnef\.tgz")
    refused("convert", MODEL, "model.onnx", match="cannot be written")


def test_what_is_no_build_is_refused(refused, tiny, built, tmp_path):
    samples = tiny / "samples.npz"
    for path, match in (
        (tmp_path / "nope", "build '.*nope' does not exist; run nnef-hw build"),
        (tiny / "tiny.nnef.tgz", "is no finished build: it has no manifest.json; run nnef-hw"),
        (tiny, "is no finished build"),
    ):
        refused("sim", path, match=match)
        refused("compare", path, "--samples", samples, match=match)
    shutil.copytree(built, tmp_path / "cut")
    (tmp_path / "cut" / "plan.json").write_text("{}")
    refused("sim", tmp_path / "cut", match=r"'.*plan\.json' is damaged; run nnef-hw build again")
    (tmp_path / "cut" / "rtl" / "top.v").unlink()
    refused("sim", tmp_path / "cut", match=r"it has no rtl/top\.v")


def test_rtl_of_a_model_file_is_refused(refused, tiny, tmp_path):
    options = ("--on", "rtl", "--input", tiny / "samples.npz", "--output", tmp_path / "y.npz")
    match = "is no build, so there is no Verilog to run; run nnef-hw build first"
    refused("run", tiny / "tiny.nnef.tgz", *options, match=match)
    refused("run", tmp_path / "nope", *options, match=match)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--limit", "0"], "--limit must be at least 1, not 0"),
        (["--limit=-3"], "--limit must be at least 1, not -3"),
        (["--stall", "1.5"], r"--stall must be in 0\.\.1 \(1 excluded\), not 1\.5"),
        (["--stall", "1"], "--stall must be in"),
        (["--stall=-0.1"], "--stall must be in"),
        (["--stall", "nan"], "--stall must be in"),
        (["--trace", "out.txt"], r"--trace must end in \.fst or \.vcd, not 'out\.txt'"),
        (["--trace", "nowhere/out.vcd"], "--trace 'nowhere/out.vcd' cannot be written"),
    ],
    ids="".join,
)
def test_wrong_sim_options_are_refused(options, match, refused, built):
    refused("sim", built, *options, match=match)


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["frobnicate"], ["check"], ["build", "m"], ["sim", "b", "--limit", "many"],
        ["build", "m", "--board", "ice40", "--arch", "engine"], ["run", "m", "--on", "paper"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_arguments_show_the_usage(arguments, cli):
    result = cli(*arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("usage: nnef-hw")


# hardware that is wrong


@pytest.mark.verilator
def test_wrong_hardware_fails(cli, built, tiny, tmp_path):
    folder = tmp_path / "wrong"
    shutil.copytree(built, folder)
    verilog = (built / "rtl" / "top.v").read_text()
    flipped = re.sub(
        r"(tile_0_0\[\d+\] = \d+'h)([0-9a-f])",
        lambda match: match[1] + f"{int(match[2], 16) ^ 1:x}",
        verilog,
    )
    assert flipped != verilog
    (folder / "rtl" / "top.v").write_text(flipped)

    result = cli("sim", folder, "--json")
    assert result.status == 1
    assert re.search(r"nnef-hw: \d+ of 16 frames differ from the fixed-point model", result.err)
    assert result.json["bit_exact"] is False
    result = cli("compare", folder, "--samples", tiny / "samples.npz", "--json")
    assert result.status == 1
    assert "of 20 frames differ" in result.err
    assert result.json["bit_exact"] is False


# as a program


def program(*arguments, **options):
    command = [Path(sys.executable).with_name("nnef-hw"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_program_gives_its_status():
    good = program("check", MODEL, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["valid"] is True
    assert program("--version").stdout.startswith("nnef-hw ")

    bad = program("inspect", "nowhere/model.nnef.tgz")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "nnef-hw: nowhere/model.nnef.tgz does not exist; check the model's path\n"


def test_missing_tool_gives_status_3(tmp_path, built, monkeypatch):
    monkeypatch.setenv("NNEF_HW_VERILATOR", "no-such-verilator")
    result = program("sim", built, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert "Traceback" not in result.stderr
    assert "NNEF_HW_VERILATOR names 'no-such-verilator'" in result.stderr


def test_closed_pipe_is_no_traceback():
    command = f"{Path(sys.executable).with_name('nnef-hw')} inspect {MODEL} --json | head -c 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("{", "")
