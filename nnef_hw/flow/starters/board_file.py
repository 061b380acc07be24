"""A file for a board of one's own, with the facts of a known one to begin with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path

from nnef_hw.boards import Board, Pins, find_board
from nnef_hw.boards.interfaces import Direction
from nnef_hw.flow.starters.new_file import write_module

__all__ = ["board_text", "write_board"]

_NOTES = {
    "device": "what a design may use of it; nnef-hw boards lists devices",
    "part": "as nextpnr calls it",
    "input_mhz": "the oscillator",
    "clock_mhz": "the accelerator's clock, unless --freq says otherwise",
    "clock_pad": "iCE40: the oscillator is at the PLL's own pad",
    "platform": "of amaranth-boards, for the names of pins; may be empty",
    "pins": "@35 is a pin of the package, uart.rx a resource of the platform",
    "attributes": "of pins of the package",
    "link_lut": "of the host link, estimated",
    "flash": "arguments of openFPGALoader, but for the file",
    "flash_by_hand": "where openFPGALoader cannot help",
}
_OWN = {"name", "title", "aliases", "device", "memories"}
"""What is not taken over, or written in another way."""


def write_board(path: Path, like: str) -> Board:
    """Write a new file for ``--board ./FILE.py``; return the board whose facts it has.

    Raises
    ------
    UsageError
        If there is no such board, the file exists, or its name is none of a Python module.
    """
    board = find_board(like)
    write_module(path, board_text(board, path.stem))
    return board


def board_text(like: Board, name: str) -> str:
    """Return Python that defines a board of that name with the facts of another one.

    What stands beside the FPGA's own memory is left out: it is for engines only.
    """
    lines = [_line("device", f'find_device("{like.device.name}")')]
    for fact in fields(Board):
        value = getattr(like, fact.name)
        default = fact.default if fact.default_factory is MISSING else fact.default_factory()
        if fact.name not in _OWN and value != default:
            lines.append(_line(fact.name, _text(value)))
    constant = re.sub(r"\W", "_", name).upper()
    names = "Board, Pins" if any(isinstance(x, Pins) for x in like.pins.values()) else "Board"
    return "\n".join([
        f'"""{name}: begun with the facts of {like.name}; docs/boards.md says what they mean."""',
        "",
        f"from nnef_hw.boards import {names}",
        "from nnef_hw.hardware.devices import find_device",
        "",
        f"{constant} = Board(",
        f"    name={name!r},",
        f"    title={name!r},",
        *lines,
        ")",
        "",
    ])


def _text(value: object) -> str:
    """Return Python that makes a fact."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_text(item)}' for name, item in value.items())}}}"
    if isinstance(value, Pins):
        assert value.direction == Direction.BOTH
        told = {"invert": value.invert, "attributes": dict(value.attributes)}
        more = "".join(f", {name}={item!r}" for name, item in told.items() if item)
        return f"Pins({value.places!r}{more})"
    return repr(value)


def _line(fact: str, value: str) -> str:
    note = f"  # {_NOTES[fact]}" if fact in _NOTES else ""
    return f"    {fact}={value},{note}"
