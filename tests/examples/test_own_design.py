"""The commands of docs/howto/own-design.md for a Verilog design, as they stand there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.reference import run_fixed
from nnef_hw.run.artifacts import BuildFolder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "own-design.md").read_text()

pytestmark = [pytest.mark.system, pytest.mark.verilator]


def blocks():
    """Return the code of the section: to build, the design, Icarus, Verilator."""
    [section] = re.findall(r"## In a Verilog design\n(.*?)\n## ", PAGE, re.DOTALL)
    found = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", section, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in found]


def run(script, folder):
    """Run commands as a user does whose environment has nnef-hw; return what they print."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    """Folder of the build that the section makes, with its design."""
    command, design, *_ = blocks()
    folder = tmp_path_factory.mktemp("own")
    shutil.copytree(ROOT / "examples" / "digits_cnn", folder / "examples" / "digits_cnn")
    run(command, folder)
    (folder / "build" / "ip" / "my_top.v").write_text(design)
    return folder / "build" / "ip"


def scores(folder):
    """Return the fixed-point model's result for the bench's first image."""
    fixed = BuildFolder.open(folder).fixed
    words = [int(word, 16) & 0xFF for word in (folder / "sim" / "i.hex").read_text().split()]
    [name] = fixed.inputs
    image = np.array(words[:64]).reshape(1, *fixed.tensor(name).shape[1:])
    [codes] = run_fixed(fixed, {name: image}).values()
    return codes.ravel().tolist()


def printed(text):
    return [int(line.removeprefix("score ")) for line in re.findall(r"^score .*", text, re.M)]


@pytest.mark.icarus
def test_a_verilog_design_in_icarus(design):
    assert printed(run(blocks()[2], design)) == scores(design)


@pytest.mark.nightly
def test_a_verilog_design_in_verilator(design):
    assert printed(run(blocks()[3], design)) == scores(design)


def test_the_command_for_vivado_writes_a_project(design):
    """A Tcl interpreter whose commands are noted runs the project's script."""
    tkinter = pytest.importorskip("tkinter")
    [command] = re.findall(r"^    (fusesoc --cores-root build/ip .*)$", PAGE, re.MULTILINE)
    run(command.replace("NAME", "digits_cnn"), design.parents[1])
    words = shlex.split(command)
    [script] = design.parents[1].glob("build/*/vivado/*1.0.0.tcl")
    noted = []
    tcl = tkinter.Tcl()
    tcl.createcommand("note", lambda *called: noted.append(called) or "")
    tcl.eval("proc unknown {args} { note {*}$args }")
    tcl.eval(f"cd {{{script.parent}}}")
    tcl.evalfile(str(script))
    files = [called[1] for called in noted if called[0] == "read_verilog"]
    assert [Path(file).name for file in files] == ["top.v", "digits_cnn_axis.v"]
    for file in (*files, *(called[-1] for called in noted if called[0] == "read_xdc")):
        assert (script.parent / file).is_file()
    values = {called[1]: called[2] for called in noted if called[0] == "set_property"}
    assert values["part"] == words[words.index("--part") + 1]
    assert values["top"] == "digits_cnn_axis"
