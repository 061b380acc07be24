"""A computer that only drives boards: the commands, without what the compiler needs."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from nnef_hw.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def missing():
    """Modules of what the package needs, but for what docs/boards.md tells to install."""
    text = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")
    *_, told = re.findall(r"--no-deps -e . && pip install (.*)", text)
    needed = {
        re.split(r"[^\w-]", line)[0] for line in requires("nnef-hw") if "extra ==" not in line
    }
    assert set(told.split()) < needed
    absent = needed - set(told.split())
    assert {"amaranth", "onnx", "cocotb"} < absent
    return {
        module for module, owners in packages_distributions().items() if absent & set(owners)
    }  # fmt: skip


@pytest.fixture
def host(missing, tmp_path):
    """Run a command there."""

    def run(*words):
        command = [sys.executable, "-c", PROGRAM.format(missing=missing), *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_boards_are_listed_and_flashed(host, built):
    assert "icebreaker" in host("boards").stdout
    assert "has no bitstream" in host("flash", built, "--dry-run").stderr


def test_boards_are_looked_for(host, built, tmp_path):
    np.savez(tmp_path / "x.npz", inputs=np.zeros((2, 1, 6, 6)))
    data = "--input", "x.npz", "--output", "y.npz"
    for words in (("run", built, "--on", "device", *data), ("bench-device", built)):
        result = host(*words, "--port", "nowhere")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("nnef-hw: port 'nowhere' does not exist")


def test_models_are_computed(host, built, tmp_path):
    np.savez(tmp_path / "x.npz", inputs=np.zeros((2, 1, 6, 6)))
    result = host("run", built, "--on", "fixed", "--input", "x.npz", "--output", "y.npz")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "y.npz").is_file()


def test_what_needs_more_says_what(host, tmp_path):
    example = ROOT / "examples" / "digits_cnn"
    model, samples = example / "digits_cnn.nnef.tgz", example / "samples.npz"
    result = host("build", model, "--board", "icebreaker", "--calibrate", samples)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == (
        "nnef-hw: the Python module 'amaranth' is not installed; "
        "pip install nnef-hw, with all that it needs\n"
    )
    assert list(tmp_path.iterdir()) == []
