"""Commands for a board: run on it, flash it, measure it."""

import json
import shutil

import numpy as np
import pytest

from nnef_hw.run.bench_device import LINK_FRAMES
from nnef_hw.run.device import Device


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
    options = ("--port", "sim", "--samples", tiny / "samples.npz", "--json")
    found = cli("board-report", built, *options).json
    assert found["equal_samples"] == found["samples"] - 1
    assert (built / "board-report.json").is_file()
