"""Builds that are killed, and caches that are damaged: what is half there is never taken for whole.

A build is killed before each of its changes to the folder, whichever these are; no clock decides.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from build_cases import write_samples
from cli_cases import tiny_graph

from nnef_hw.errors import UsageError
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import graph_hash, save
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.system.tools import cache_directory

PROGRAM = Path(__file__).parents[1] / "helpers" / "builds" / "killed_build.py"
TIMED = {"report.json", "report.html"}
SHARDS = 8

pytestmark = [pytest.mark.system, pytest.mark.verilator]


def files(folder):
    """Contents of a build's files but those with times in them."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".steps" not in path.parts and path.name not in TIMED
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory, options):
    """Folders of two builds in the same place one after the other, and the options of the second.

    Model and samples are others, so nothing of one is right for the other.
    """
    folder = tmp_path_factory.mktemp("clean")
    save(tiny_graph(seed=7), folder / "other.nnef.tgz")
    changed = {
        "model": folder / "other.nnef.tgz", "calibrate": write_samples(folder / "s.npz", seed=7)
    }  # fmt: skip
    build(options(folder / "old"))
    build(options(folder / "new", **changed))
    return folder / "old", folder / "new", changed


def killed(place, out, changed):
    """Build until that change; return how it ended, and the number of changes if it ended well."""
    command = [sys.executable, PROGRAM, str(place), out, changed["model"], changed["calibrate"]]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=out.parent
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def changes(clean, tmp_path_factory):
    """How often the second build changes the folder of the first."""
    old, new, changed = clean
    out = shutil.copytree(old, tmp_path_factory.mktemp("counted") / "out")
    status, text = killed(0, out, changed)
    assert status == 0
    assert files(out) == files(new)
    return int(text)


def opened(folder):
    """Return what commands take for a finished build, if they do."""
    try:
        return BuildFolder.open(folder)
    except UsageError:
        return None


def check_killed(place, clean, options, out):
    old, new, changed = clean
    shutil.copytree(old, out)
    assert killed(place, out, changed)[0] == -signal.SIGKILL
    found = opened(out)
    if found is not None:
        # All of one, whichever it is.
        wholes = [BuildFolder.open(folder) for folder in (old, new)]
        (whole,) = [one for one in wholes if one.manifest == found.manifest]
        assert graph_hash(found.fixed) == graph_hash(whole.fixed)
        assert found.plan.dumps() == whole.plan.dumps()
        assert found.verilog == whole.verilog
    report = build(options(out, **changed))
    assert files(out) == files(new)
    assert report.simulation.bit_exact
    assert {path.name for path in (out / ".steps").iterdir()} == {
        "compile.json", "simulate.json", "report.json", "lock"
    }  # fmt: skip
    shutil.rmtree(out)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_killed_build_is_never_taken_for_whole(changes, clean, options, tmp_path, rng):
    assert changes > 30
    for place in rng.integers(1, changes + 1, 2):
        check_killed(int(place), clean, options, tmp_path / "out")


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_build_killed_at_any_change(shard, changes, clean, options, tmp_path):
    for place in range(1 + shard, changes + 1, SHARDS):
        check_killed(place, clean, options, tmp_path / "out")


def damaged(content, how):
    """Return other bytes of a file; the first and the last are where formats look."""
    middle = len(content) // 2
    return {
        "a bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "cut": content[:middle],
        "empty": b"",
    }[how]


@pytest.mark.parametrize(
    "how", ["a bit", *(pytest.param(how, marks=pytest.mark.nightly) for how in ("cut", "empty"))]
)
def test_damaged_caches_are_made_again(how, clean, options, tmp_path, monkeypatch):
    """Every file of every entry, the shared library's aside, which takes long to compile."""
    _, new, changed = clean
    shared = cache_directory()
    monkeypatch.setenv("NNEF_HW_CACHE", str(tmp_path / "cache"))
    if (shared / "verilated").is_dir():
        shutil.copytree(shared / "verilated", tmp_path / "cache" / "verilated")
    first = build(options(tmp_path / "first", **changed))
    entries = [
        path
        for kind in ("layers", "models")
        for path in (tmp_path / "cache" / kind).glob("[!.]*/**/*")
        if path.is_file()
    ]
    assert {path.name for path in entries} >= {"modules.pickle", "top", "top.v", ".contents.json"}
    for path in entries:
        path.write_bytes(damaged(path.read_bytes(), how))
    second = build(options(tmp_path / "second", **changed))
    assert files(tmp_path / "second") == files(new)
    for key in ("cycles_per_inference", "latency_cycles", "frames", "bit_exact"):
        assert getattr(second.simulation, key) == getattr(first.simulation, key)
    assert second.simulation.bit_exact
    assert not any(path.read_bytes() == damaged(path.read_bytes(), how) for path in entries)


def test_a_damaged_record_is_no_record(clean, options, tmp_path):
    """Whatever number in it is another one: the report's figures come from there."""
    _, new, changed = clean
    out = tmp_path / "out"
    shutil.copytree(new, out)
    for name in ("simulate", "report"):
        record = out / ".steps" / f"{name}.json"
        text = record.read_text()
        number = re.search(r'"(?:predicted_)?latency_cycles": (\d+)', text)
        record.write_text(text[: number.start(1)] + "7" + text[number.end(1) :])
    report = build(options(out, **changed))
    right = json.loads((new / "report.json").read_text())
    for key in ("latency_cycles", "predicted_latency_cycles"):
        assert getattr(report.simulation, key) == right["simulation"][key]


def test_a_build_waits_for_another_one(clean, options, tmp_path):
    """And says so; then it finds what that has done."""
    fcntl = pytest.importorskip("fcntl")
    _, new, changed = clean
    out = tmp_path / "out"
    shutil.copytree(new, out)
    told = []
    with (out / ".steps" / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def progress(step):
            told.append(step)
            fcntl.flock(other, fcntl.LOCK_UN)

        build(options(out, **changed), progress)
    assert told[:2] == [f"waiting for another build in {out}", "compiling"]
    assert files(out) == files(new)


@pytest.mark.nightly
def test_two_builds_at_once(clean, options, tmp_path):
    """Of different models into one new folder: one after the other, and what the last one makes."""
    old, new, changed = clean
    out = tmp_path / "out"
    first = options(out)
    models = [(first.model, first.calibrate), (changed["model"], changed["calibrate"])]
    running = [
        subprocess.Popen([sys.executable, PROGRAM, "0", out, *given], stdout=subprocess.DEVNULL)
        for given in models
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert files(out) in (files(old), files(new))
