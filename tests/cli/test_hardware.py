"""Commands for a board: run on it, flash it, measure it."""

import shutil

import numpy as np
import pytest


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
