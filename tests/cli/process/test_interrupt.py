"""Commands that are asked to end while tools run: with programs that stand for slow tools."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build

pytestmark = [
    pytest.mark.system,
    pytest.mark.verilator,
    pytest.mark.skipif(os.name == "nt", reason="needs signals"),
]

PROGRAM = Path(sys.executable).with_name("nnef-hw")
PATIENCE = 120
# Like yosys, which lets ABC run beside it; says which processes there are.
SLOW_YOSYS = """#!/bin/sh
if [ "$1" = --version ]; then echo "Yosys 0.70"; exit; fi
touch "$TMPDIR/abc"
sleep 3600 &
echo $! $$ > {folder}/part
mv {folder}/part {folder}/running
wait
"""
NEXTPNR = """#!/bin/sh
if [ "$1" = --version ]; then echo "nextpnr 0.8"; else touch {folder}/nextpnr-ran; fi
"""


@pytest.fixture(autouse=True)
def no_nohup():
    """Let what is started hear of a terminal that is closed, even if these tests ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def slow_tools(tmp_path, monkeypatch):
    """Return a folder where ``running`` gets the numbers of the processes of synthesis."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name, text in (("YOSYS", SLOW_YOSYS), ("NEXTPNR_ICE40", NEXTPNR), ("ICEPACK", NEXTPNR)):
        path = folder / name
        path.write_text(text.format(folder=folder))
        path.chmod(0o755)
        monkeypatch.setenv(f"NNEF_HW_{name}", str(path))
    return folder


@pytest.fixture
def start(tiny, tmp_path, slow_tools):
    """Start a build with synthesis in a copy of the built one; give it when only yosys runs."""

    @contextlib.contextmanager
    def start(folder):
        command = [PROGRAM, "build", tiny / "tiny.nnef.tgz", "--board", "icebreaker", "--out"]
        command += [folder, "--calibrate", tiny / "samples.npz"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        ) as process:
            try:
                wait_for((slow_tools / "running").exists)
                # The simulation beside it has ended; synthesis is a part of the search for a clock.
                wait_for(lambda: len(hidden(folder)) == 2)
                yield process
            finally:
                # A test that fails does not wait for it.
                process.kill()

    return start


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def assert_gone(tools):
    for number in (tools / "running").read_text().split():
        state = ["ps", "-o", "state=", "-p", number]

        def is_gone(state=state):
            found = subprocess.run(state, capture_output=True, text=True, check=False)
            return found.stdout.strip() in {"", "Z"}

        wait_for(is_gone)
    assert not (tools / "nextpnr-ran").exists()


def hidden(folder):
    return [path.name for path in (folder / ".steps").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signal_to_the_process_alone_ends_everything(name, built, start, slow_tools, tmp_path):
    out = Path(shutil.copytree(built, tmp_path / "out"))
    number = getattr(signal, name)
    with start(out) as process:
        process.send_signal(number)
        printed = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert printed == ("", "nnef-hw: interrupted\n")
    assert_gone(slow_tools)
    assert not hidden(out)
    assert not (out / "logs").exists()
    assert not list((out / "board").glob("*.bin"))


def test_ignored_signal_stays_ignored(built, start, slow_tools, tmp_path):
    out = Path(shutil.copytree(built, tmp_path / "out"))
    with contextlib.ExitStack() as stack:
        previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            process = stack.enter_context(start(out))
        finally:
            signal.signal(signal.SIGHUP, previous)
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM


def test_next_build_removes_what_a_killed_one_left(built, tiny, start, slow_tools, tmp_path):
    out = Path(shutil.copytree(built, tmp_path / "out"))
    with start(out) as process:
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert_gone(slow_tools)
    assert hidden(out)
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    build(BuildOptions(model, "icebreaker", out, calibrate=samples, bitstream=False))
    assert not hidden(out)


def test_living_build_keeps_its_files(built, tiny, start, slow_tools, tmp_path):
    out = Path(shutil.copytree(built, tmp_path / "out"))
    command = [PROGRAM, "build", tiny / "tiny.nnef.tgz", "--board", "icebreaker", "--out", out]
    command += ["--calibrate", tiny / "samples.npz", "--no-bitstream"]
    with start(out) as living:
        kept = sorted(hidden(out))
        other = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        with other:
            try:
                # it waits for the first one to end
                with pytest.raises(subprocess.TimeoutExpired):
                    other.wait(3)
                assert sorted(hidden(out)) == kept
            finally:
                other.kill()
        living.terminate()
        living.communicate(timeout=PATIENCE)
    assert_gone(slow_tools)


def test_simulation_ends_with_the_command(built, tmp_path, monkeypatch):
    """A simulator that never ends stands behind the compiled model's name."""
    folder = tmp_path / "tools"
    folder.mkdir()
    compiler = folder / "slow-c++"
    compiler.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "g++ 12.2.0"; exit; fi\n'
        f"sleep 3600 & echo $! $$ > {folder}/part; mv {folder}/part {folder}/running; wait\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("NNEF_HW_CACHE", str(tmp_path / "cache"))
    process = subprocess.Popen(
        [PROGRAM, "sim", built], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            wait_for((folder / "running").exists)
            process.send_signal(signal.SIGINT)
            printed = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (process.returncode, printed) == (130, ("", "nnef-hw: interrupted\n"))
    assert_gone(folder)
    assert not list((tmp_path / "cache").rglob(".*"))
