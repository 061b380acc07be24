"""A script that trains a network with PyTorch, and builds an accelerator of it, to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from nnef_hw.boards import Board, find_board
from nnef_hw.flow.starters.new_file import write_module

__all__ = ["training_text", "write_training"]


def write_training(path: Path, board: str) -> Board:
    """Write a new training script; return the board that it builds for.

    Raises
    ------
    UsageError
        If there is no such board, the file exists, or its name is none of a Python module.
    """
    found = find_board(board)
    write_module(path, training_text(found, board, path.stem))
    return found


def training_text(board: Board, called: str, name: str) -> str:
    """Return the script.

    Parameters
    ----------
    called
        What the command line calls the board: its name, or the file that defines it.
    name
        That of the script, and of the folder that it writes.
    """
    text = files("nnef_hw.flow.starters").joinpath("training.template").read_text(encoding="utf-8")
    for place, value in (("name", name), ("board", called), ("extra", board.device.family.name)):
        text = text.replace(f"@{place}@", value)
    return text
