"""docs/command_line.md has every command with all its options, and no other ones."""

import argparse
import re
from pathlib import Path

import pytest

from nnef_hw.cli import command_parser

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
COMMON = {"--help", "--json"}
ROW = re.compile(r"^\| (`-[^|]*) \|", re.MULTILINE)


def _commands():
    [subs] = [x for x in command_parser()._actions if isinstance(x, argparse._SubParsersAction)]
    return subs.choices


def _section(heading):
    """Return the text under a heading, to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/command_line.md has no section {heading!r}"
    return found[1]


def _listed(heading):
    return set(re.findall(r"(--[a-z-]+)", " ".join(ROW.findall(_section(heading)))))


def _options(command):
    """Return the long options of a command, without those that switch another one off."""
    parser = _commands()[command]
    return {
        next(name for name in action.option_strings if name.startswith("--"))
        for action in parser._actions
        if action.option_strings
    } - COMMON


SHARED = _listed("Options of every MODEL")
READ_A_MODEL = ("check", "inspect", "simplify", "convert", "plan", "explore", "quantize", "build",
                "run")  # fmt: skip


@pytest.mark.parametrize("command", _commands())
def test_a_section_lists_the_options_of_its_command(command):
    common = SHARED if command in READ_A_MODEL else set()
    assert _listed(command) >= _options(command) - common
    assert _listed(command) <= _options(command)


def test_shared_options_are_options_of_a_build():
    assert _options("build") >= SHARED
    assert all(SHARED & _options(command) for command in READ_A_MODEL)


def test_the_synopsis_names_every_command():
    synopsis = "\n".join(line for line in PAGE.splitlines() if line.startswith("    nnef-hw "))
    assert set(re.findall(r"nnef-hw ([a-z-]+)", synopsis)) == set(_commands())
