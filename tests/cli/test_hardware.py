"""Commands for a board: run on it, flash it, measure it."""

import json
import shutil

import numpy as np
import pytest

from nnef_hw.boards.interfaces import Mlperf
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.bench_device import LINK_FRAMES
from nnef_hw.run.device import Device
from nnef_hw.testing import GraphBuilder


@pytest.mark.verilator
def test_run_on_the_simulated_board_equals_fixed(cli, built, tiny, tmp_path):
    for on in (["device", "--port", "sim"], ["fixed"]):
        options = ("--input", tiny / "bare.npz", "--output", f"{on[0]}.npz")
        result = cli("run", built, "--on", *on, *options)
        assert (result.status, result.err) == (0, "")
    outputs = {on: dict(np.load(tmp_path / f"{on}.npz")) for on in ("device", "fixed")}
    np.testing.assert_array_equal(outputs["device"]["scores"], outputs["fixed"]["scores"])


def test_port_and_device_go_together(refused, built, tiny, tmp_path):
    options = ("--input", tiny / "bare.npz", "--output", tmp_path / "y.npz")
    refused("run", built, "--on", "device", *options, match="a device needs --port; name the boar")
    refused("run", built, "--port", "sim", *options, match="--port sim is for --on device")
    match = "port '/dev/ttyNO' does not exist"
    refused("run", built, "--on", "device", "--port", "/dev/ttyNO", *options, match=match)


@pytest.mark.verilator
def test_bench_device_compares_with_the_prediction(cli, built):
    result = cli("bench-device", built, "--port", "sim", "--frames", "10", "--json")
    assert (result.status, result.err) == (0, "")
    value = result.json
    assert value["cycles_per_inference"] == value["predicted_cycles_per_inference"]
    assert value["simulated"]
    assert "link inferences per second" in cli("bench-device", built, "--port", "sim").out


def test_flash_shows_the_command(cli, refused, built, tmp_path):
    build = tmp_path / "copy"
    shutil.copytree(built, build)
    match = "has no bitstream board_top.bin; run nnef-hw build without --no-bitstream"
    refused("flash", build, "--dry-run", match=match)
    (build / "board" / "board_top.bin").write_bytes(b"bits")
    result = cli("flash", build, "--dry-run")
    command = f"openFPGALoader -b ice40_generic -f {build}/board/board_top.bin\n"
    assert (result.status, result.out, result.err) == (0, command, "")
    assert cli("flash", build, "--dry-run", "--volatile", "--json").json == {
        "board": "icebreaker",
        "bitstream": f"{build}/board/board_top.bin",
        "command": command.strip().replace(" -f", ""),
        "commands": [command.strip().replace(" -f", "")],
        "image": None,
        "seconds": None,
    }


@pytest.mark.verilator
def test_board_report_tells_what_a_board_did(cli, built, tiny, tmp_path):
    samples = tiny / "samples.npz"
    path = tmp_path / "sent.json"
    options = ("--port", "sim", "--samples", samples, "-o", path, "--json")
    result = cli("board-report", built, *options)
    assert (result.status, result.err) == (0, "")
    found = result.json
    assert json.loads(path.read_text()) == found
    count = len(np.load(samples)["inputs"])
    assert found["samples"] == found["equal_samples"] == count
    assert found["board_score"] == found["fixed_score"]
    assert found["metric"] == "accuracy"
    assert found["speed"]["simulated"]
    assert found["measured_clock_mhz"] is None
    assert found["model_hash"]
    assert any(tool.startswith("nnef-hw ") for tool in found["tools"])


@pytest.mark.verilator
def test_board_report_counts_what_differs(cli, built, tiny, monkeypatch):
    """Wrong results are what we want to hear of, so they are no error."""
    run_codes = Device.run_codes

    def wrong(self, codes):
        found = run_codes(self, codes)
        (name,) = found
        if len(found[name]) > LINK_FRAMES:
            found[name][3] ^= 1
        return found

    monkeypatch.setattr(Device, "run_codes", wrong)
    result = cli("board-report", built, "--port", "sim", "--samples", tiny / "samples.npz")
    assert (result.status, result.err) == (0, "")
    path = built / "board-report.json"
    found = json.loads(path.read_text())
    assert found["equal_samples"] == found["samples"] - 1
    told = [" ".join(line.split()) for line in result.out.splitlines()]
    assert f"equal samples {found['equal_samples']}" in told
    assert any(line.startswith("tools nnef-hw ") for line in told)
    assert f"report: {path}" in told
    for layer in found["speed"]["layers"] or ():
        assert any(line.startswith(f"{layer['name']} ") for line in told)


@pytest.fixture(scope="module")
def keywords(tmp_path_factory):
    """A build with the link mlperf, of a small network of the benchmark kws01's shape."""
    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("keywords")
    g = GraphBuilder("keywords")
    x = g.reshape(g.input("x", [1, 1, 49, 10]), [1, 490])
    weights = rng.normal(size=[12, 490]) / 400
    scores = g.op("softmax", g.op("linear", x, weights, rng.normal(size=[1, 12])), axes=[1])
    save(g.build(scores), folder / "keywords.nnef.tgz")
    codes = rng.integers(-128, 128, (24, 1, 49, 10))
    samples = {"x": (codes - 83) * 0.5847029089927673, "labels": rng.integers(0, 12, 24)}
    np.savez(folder / "samples.npz", **samples)
    link = Mlperf(baud=3_000_000)
    build(BuildOptions(
        folder / "keywords.nnef.tgz", "icebreaker", folder / "built", bitstream=False,
        calibrate=folder / "samples.npz", link=link, clock_mhz=24.0, frames=2,
    ))  # fmt: skip
    return folder


@pytest.mark.verilator
def test_score_of_the_simulated_board_is_that_of_the_fixed_model(cli, keywords):
    """The input has a format of its own: bytes become its codes by a table."""
    samples = ("--port", "sim", "--samples", keywords / "samples.npz", "--limit", 4)
    result = cli("score", keywords / "built", *samples, "--runs", 3, "--json")
    assert (result.status, result.err) == (0, "")
    value = result.json
    assert (value["benchmark"], value["samples"], value["simulated"]) == ("kws01", 4, True)
    folder = BuildFolder.open(keywords / "built")
    given = np.load(keywords / "samples.npz")
    [found] = run_fixed(folder.fixed, quantize_inputs(folder.fixed, {"x": given["x"][:4]})).values()
    expected = np.mean(found.reshape(4, 12).argmax(axis=1) == given["labels"][:4])
    assert value["accuracy"] == expected
    latency = 24e6 / folder.plan.latency
    assert 0.8 * latency < value["inferences_per_second"] <= latency


def test_score_is_for_the_link_mlperf(refused, built, keywords, tmp_path):
    given = ("--port", "sim", "--samples", keywords / "samples.npz")
    refused("score", built, *given, match="has the link 'uart'; build it with --link mlperf")
    build = keywords / "built"
    refused("score", build, "--port", "/dev/ttyNO", match="--samples is missing; give it, or --por")
    refused("bench-device", build, "--port", "sim", match="has the link 'mlperf', which carries no")
    np.savez(tmp_path / "odd.npz", x=np.full((1, 1, 49, 10), 0.1))
    match = "the number 0.1 is none of the 256 that a byte of kws01 stands for"
    refused("score", build, "--port", "sim", "--samples", tmp_path / "odd.npz", match=match)


@pytest.mark.parametrize("option", ["--layer-counters", "--token-loop"])
def test_link_mlperf_refuses_what_needs_packets(refused, tiny, option):
    given = ("--calibrate", tiny / "samples.npz", "--board", "icebreaker", "--link", "mlperf")
    match = f"the link mlperf has nothing for {option}; omit it, or use --link uart"
    refused("build", tiny / "tiny.nnef.tgz", *given, option, match=match)
