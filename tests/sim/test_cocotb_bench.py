import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.errors import CheckError
from nnef_hw.sim.cocotb_bench import run_cocotb, write_bench
from nnef_hw.sim.frames import pack_frames

pytestmark = pytest.mark.verilator

INCREMENT = Path(__file__).with_name("increment.v").read_text()


def vectors(rng, lanes):
    codes = rng.integers(0, 256, (6, 10, lanes))
    return {
        "i": pack_frames(codes, 8, signed=False),
        "o": pack_frames((codes + 1) % 256, 8, signed=False),
    }


@pytest.mark.parametrize("lanes", [3, 20], ids="lanes{}".format)
def test_right_module_passes(lanes, rng):
    assert run_cocotb(INCREMENT, vectors(rng, lanes), defines=[f"LANES={lanes}"]) == 5


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("DROP", r"o\.valid fell while beat \d+ was waiting"),
        ("CHANGE", r"o\.payload of beat \d+ changed"),
        ("STOP", r"nothing moves any more after i: 9 beats taken"),
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


@pytest.mark.slow
def test_written_bench_runs_alone(rng, tmp_path):
    payloads = vectors(rng, 9)
    write_bench(tmp_path / "sim", payloads)
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "top.v").write_text("`define LANES 9\n" + INCREMENT)
    assert not any("nnef" in path.read_text() for path in (tmp_path / "sim").iterdir())

    environment = {name: os.environ[name] for name in ("HOME",) if name in os.environ}
    environment["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    command = [sys.executable, "sim/run.py"]
    good = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "TESTS=5 PASS=5 FAIL=0" in good.stdout

    payloads["o"][3] ^= np.uint64(1)
    write_bench(tmp_path / "sim", payloads)
    bad = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert bad.returncode == 1
    assert "beat 3 of o is 0x" in bad.stdout
