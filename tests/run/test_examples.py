"""The example hosts against the simulated board."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.manifest import read_manifest
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.streams import to_stream
from nnef_hw.sim.pty_board import PtyBoard

pytestmark = pytest.mark.verilator

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def board(make_build):
    """The simulated board of a build."""
    manifest = read_manifest(make_build("linear").path)
    verilog = (make_build("linear").path / "board" / "board_top.v").read_text()
    clk_hz = round(manifest.clock_mhz * 1e6)
    with PtyBoard(verilog, clk_hz=clk_hz, baud=manifest.baud) as board:
        yield board


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The host in C, compiled."""
    program = tmp_path_factory.mktemp("host_c") / "host"
    sources = [EXAMPLES / "host_c" / name for name in ("nnef_hw.c", "main.c")]
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler called cc")
    subprocess.run([compiler, *strict, *sources, "-o", program], check=True)
    return program


def run_host(host, board, build, hash_, frames):
    manifest = read_manifest(build.path)
    (source,), (sink,) = manifest.inputs, manifest.outputs
    sizes = [str(source.beats * source.lanes), str(sink.beats * sink.lanes)]
    arguments = [host, board.port, str(manifest.baud), hash_.hex(), *sizes]
    return subprocess.run(
        [*arguments, str(int(board.slowness) + 1)], input=frames, capture_output=True, check=False
    )


def test_host_in_c_gets_the_integers_of_the_model(host, board, make_build):
    build = make_build("linear")
    (source,), (sink,) = (getattr(read_manifest(build.path), n) for n in ("inputs", "outputs"))
    fixed = BuildFolder.open(build.path).fixed
    codes = quantize_inputs(fixed, build.inputs)
    frames = to_stream(codes["image"], source).astype(source.dtype).tobytes()
    result = run_host(host, board, build, read_manifest(build.path).hash, frames)
    assert (result.stderr, result.returncode) == (b"", 0)
    found = np.frombuffer(result.stdout, sink.dtype).reshape(len(codes["image"]), -1)
    np.testing.assert_array_equal(found, run_fixed(fixed, codes)["scores"])


def test_host_in_c_refuses_another_build(host, board, make_build):
    result = run_host(host, board, make_build("linear"), bytes(32), b"")
    assert (result.stderr, result.returncode) == (b"board: status -4\n", 1)


def test_host_in_python(make_build):
    build = make_build("linear")
    arguments = [build.path, "sim", build.path.parent / "samples.npz"]
    result = subprocess.run(
        [sys.executable, EXAMPLES / "run_on_board.py", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stderr == ""
    assert result.stdout.startswith("40 samples in ")
