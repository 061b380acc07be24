"""Files for boards of one's own, and completion in shells."""

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
    assert "take one like myboard.py" in result.err
    assert list(tmp_path.iterdir()) == []


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
