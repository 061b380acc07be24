"""The example hosts against the simulated board."""

import subprocess
import sys
from pathlib import Path

import pytest

from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.streams import to_stream
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder

pytestmark = [pytest.mark.system, pytest.mark.verilator]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def power_on():
    """Return ``power_on(build)``: port and patience of its board, which the example simulates."""
    programs = []

    def power_on(build):
        command = [sys.executable, EXAMPLES / "host_c" / "simulated_board.py", build.path]
        programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return programs[-1].stdout.readline().split()

    yield power_on
    for program in programs:
        with program:
            program.terminate()
    assert [program.returncode for program in programs] == [0] * len(programs)


@pytest.fixture
def compile_host(compiler, tmp_path):
    """Return ``compile_host(build)``: the host in C for it."""
    sources = [EXAMPLES / "host_c" / name for name in ("nnef_hw.c", "main.c")]
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]

    def compile_host(build):
        program, model = tmp_path / "host", build.path / "board"
        subprocess.run([compiler, *strict, "-I", model, *sources, "-o", program], check=True)
        return program

    return compile_host


def run_host(program, board, frames):
    return subprocess.run([program, *board], input=frames, capture_output=True, check=False)


@pytest.mark.parametrize("network", ["linear", "ports", "features"])
def test_host_in_c_gets_the_integers_of_the_model(network, compile_host, power_on, make_build):
    build = make_build(network)
    manifest, fixed = read_manifest(build.path), BuildFolder.open(build.path).fixed
    codes = quantize_inputs(fixed, build.inputs)
    result = run_host(compile_host(build), power_on(build), frames(manifest.inputs, codes))
    assert (result.stderr, result.returncode) == (b"", 0)
    assert result.stdout == frames(manifest.outputs, run_fixed(fixed, codes))


def frames(tensors, codes):
    """The bytes of all frames: one tensor after the other."""
    streams = [to_stream(codes[t.name], t).astype(t.dtype) for t in tensors]
    return b"".join(beats.tobytes() for frame in zip(*streams, strict=True) for beats in frame)


def test_host_in_c_refuses_another_build(compile_host, power_on, make_build):
    result = run_host(compile_host(make_build("linear")), power_on(make_build("ports")), b"")
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
