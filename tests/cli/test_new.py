"""Files for boards of one's own, and completion in shells."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from nnef_hw.boards import BOARDS, find_board

OWN = {"name", "title", "aliases", "memories"}


@pytest.mark.parametrize("like", [board.name for board in BOARDS])
def test_a_new_file_has_the_facts_of_the_board(like, cli, tmp_path):
    result = cli("new", "my_board.py", "--like", like)
    assert (result.status, result.err) == (0, "")
    assert "--board ./my_board.py" in result.out
    absolute = tmp_path / "own_board.py"
    assert f"--board {absolute}\n" in cli("new", absolute).out
    made, known = find_board(str(tmp_path / "my_board.py")), find_board(like)
    assert made.name == "my_board"
    for field in fields(made):
        if field.name not in OWN:
            assert getattr(made, field.name) == getattr(known, field.name), field.name


def test_a_model_is_planned_for_it(cli, tiny):
    cli("new", "own.py")
    found = cli("plan", tiny / "tiny.nnef.tgz", "--board", "./own.py,icebreaker", "--json").json
    own, known = sorted(found["boards"], key=lambda row: row["board"] != "own")
    assert own | {"board": known["board"]} == known


def test_nothing_is_overwritten(cli, tmp_path):
    (tmp_path / "own.py").write_text("mine")
    result = cli("new", "own.py")
    assert (result.status, result.out) == (2, "")
    assert "'own.py' exists; choose another name" in result.err
    assert (tmp_path / "own.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["own", "my-board.py", "1.py"])
def test_the_name_is_that_of_a_module(name, cli, tmp_path):
    result = cli("new", name)
    assert result.status == 2
    assert "take one like my_own.py" in result.err
    assert list(tmp_path.iterdir()) == []


class TestTraining:
    """``new --train-for``."""

    def test_the_script_is_for_the_board(self, cli, tmp_path):
        cli("new", "own.py", "--like", "ulx3s_85f")
        for board, extra in (("ice40", "ice40"), ("./own.py", "ecp5"), ("tang_nano_9k", "gowin")):
            name = f"net_{extra}"
            result = cli("new", f"{name}.py", "--train-for", board)
            assert (result.status, result.err) == (0, "")
            assert result.out.endswith(f"\npip install torch\npython {name}.py\n")
            text = (tmp_path / f"{name}.py").read_text()
            compile(text, name, "exec")
            assert f'\nBOARD = "{board}"' in text
            assert f'pip install "nnef-hw[{extra}]" torch' in text
            assert f'\nOUT = Path("{name}")' in text
            assert "@" not in text
        found = cli("new", "json.py", "--train-for", "ice40", "--json").json
        assert found == {"file": "json.py", "board": "icebreaker"}

    def test_wrong_wishes_write_nothing(self, cli, tmp_path):
        (tmp_path / "own.py").write_text("mine")
        for arguments, message in (
            (("own.py", "--train-for", "icebreaker"), "'own.py' exists"),
            (("net.py", "--train-for", "icebraker"), "did you mean 'icebreaker'"),
            (("a net.py", "--train-for", "icebreaker"), "take one like my_own.py"),
        ):
            result = cli("new", *arguments)
            assert (result.status, result.out) == (2, "")
            assert message in result.err
        assert (tmp_path / "own.py").read_text() == "mine"
        assert [path.name for path in tmp_path.iterdir()] == ["own.py"]

    def test_it_trains_exports_quantizes_and_builds(self, cli, tmp_path):
        pytest.importorskip("torch", reason="the extra train is not installed")
        cli("new", "net.py", "--train-for", "icebreaker")
        result = subprocess.run(
            [sys.executable, "net.py"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        assert "fixed 100.00%" in result.stdout
        assert "bit-exact over " in result.stdout
        assert result.stdout.endswith("the report: net/build/report.html\n")
        planned = cli("plan", "net/model.onnx", "--board", "icebreaker", "--json").json
        built = json.loads((tmp_path / "net" / "build" / "report.json").read_text())
        (row,) = planned["boards"]
        assert row["cycles_per_inference"] == built["cycles_per_inference"]


def completions(words, folder):
    """Return what a shell is told for a line that ends with these words."""
    found = folder / "completions"
    environment = {
        **os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": words, "COMP_POINT": str(len(words)),
        "IFS": "\n", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
    }  # fmt: skip
    program = Path(sys.executable).with_name("nnef-hw")
    subprocess.run([program], env=environment, cwd=folder, check=True, stderr=subprocess.PIPE)
    return {word.strip() for word in found.read_text().split("\n")}


def test_a_shell_completes_commands_options_and_boards(tmp_path):
    assert {"boards", "build"} <= completions("nnef-hw b", tmp_path)
    assert {"--calibrate", "--calibration"} <= completions("nnef-hw build m --cal", tmp_path)
    assert completions("nnef-hw build m --board iceb", tmp_path) == {"icebreaker"}


def test_what_a_shell_takes_is_printed(cli):
    code = cli("completion", "bash").out
    assert "complete" in code
    assert cli("completion", "bash", "--json").json["code"] + "\n" == code
    assert cli("completion", "dos").status == 2
