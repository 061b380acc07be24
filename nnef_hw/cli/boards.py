"""Commands about boards, tools and the shell: boards, new, doctor, completion."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nnef_hw.cli.common import (
    Commands,
    add_command,
    complete_boards,
    console,
    print_json,
    print_rows,
)

if TYPE_CHECKING:
    from nnef_hw.system.doctor import ToolStatus

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Declare the commands of this module."""
    add_command(commands, "boards", _boards, "list the boards")
    sub = add_command(
        commands, "new", _new, "write a file for a board of your own, or a training script"
    )
    sub.add_argument("file", type=Path, metavar="FILE.py", help="a new file, for --board ./FILE.py")
    like = sub.add_argument(
        "--like",
        default="icebreaker",
        metavar="BOARD",
        help="board whose facts it has to begin with (default: icebreaker)",
    )
    complete_boards(like)
    train = sub.add_argument(
        "--train-for",
        metavar="BOARD",
        help="write a script instead that trains a network with PyTorch, exports, quantizes and "
        "builds it for that board",
    )
    complete_boards(train)
    add_command(commands, "doctor", _doctor, "check the external tools")
    sub = add_command(
        commands, "completion", _completion, "print what lets a shell complete commands and options"
    )
    sub.epilog = 'For bash, in ~/.bashrc: eval "$(nnef-hw completion bash)"'
    sub.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh", "powershell"))


def _boards(options: argparse.Namespace) -> int:
    from nnef_hw.boards import BOARDS

    rows = [
        {
            "name": target.name,
            "title": target.title,
            "aliases": list(target.aliases),
            "device": target.device.name,
            "clock_mhz": target.clock_mhz,
            "lut": target.device.lut,
            "multipliers": target.device.products,
            "bram_bytes": target.device.ram_bytes,
        }
        for target in BOARDS
    ]
    print_rows(options, "boards", rows)
    return 0


def _new(options: argparse.Namespace) -> int:
    if options.train_for is not None:
        return _new_training(options)
    from nnef_hw.flow.starters.board_file import write_board

    like = write_board(options.file, options.like)
    if options.json:
        print_json({"file": str(options.file), "like": like.name})
    else:
        print(f"{options.file}: the facts of {like.title}; make them those of your board, then")
        named = options.file if options.file.is_absolute() else f"./{options.file}"
        print(f"nnef-hw build MODEL --board {named}")
    return 0


def _new_training(options: argparse.Namespace) -> int:
    from nnef_hw.flow.starters.training_file import write_training

    board = write_training(options.file, options.train_for)
    if options.json:
        print_json({"file": str(options.file), "board": board.name})
    else:
        print(f"{options.file}: trains a small network, and builds it for {board.title}; then")
        print(f"pip install torch\npython {options.file}")
    return 0


def _completion(options: argparse.Namespace) -> int:
    from argcomplete import shellcode

    code = shellcode(["nnef-hw"], shell=options.shell)
    if options.json:
        print_json({"shell": options.shell, "code": code})
    else:
        print(code)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from nnef_hw.hardware.families import FAMILIES
    from nnef_hw.place.toolchain import toolchain_of
    from nnef_hw.report.progress import stages
    from nnef_hw.system.doctor import doctor, is_well

    toolchains = [toolchain_of(family) for family in FAMILIES]
    chains = [toolchain.programs for toolchain in toolchains if toolchain.places]
    with stages() as show:
        rows = doctor(chains, show)
    if options.json:
        print_json({"tools": [asdict(row) for row in rows]})
    else:
        _print_tools(rows)
    return 0 if is_well(rows, chains) else 3


def _print_tools(rows: Sequence[ToolStatus]) -> None:
    """Print which tools there are, then what to do about the others, a line for each remedy."""
    from nnef_hw.report.wording.tables import rows_table

    out = console()
    out.print(rows_table([
        {"tool": row.name, "version": row.version if row.found else row.lack,
         "purpose": row.purpose}
        for row in rows
    ]))  # fmt: skip
    remedies: dict[str, list[str]] = {}
    for row in rows:
        if row.remedy:
            remedies.setdefault(row.remedy, []).append(row.problem if row.path else row.name)
    for number, (remedy, named) in enumerate(remedies.items()):
        out.print(f"{'' if number else chr(10)}{', '.join(named)}: {remedy}")
