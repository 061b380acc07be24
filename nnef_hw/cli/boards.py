"""Commands about the boards and tools that are available: boards, doctor."""

from __future__ import annotations

import argparse

from nnef_hw.cli.common import Commands, add_command, print_rows

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Declare the commands of this module."""
    add_command(commands, "boards", _boards, "list the boards")
    add_command(commands, "doctor", _doctor, "check the external tools")


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


def _doctor(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from nnef_hw.doctor import doctor, is_well
    from nnef_hw.report.progress import stages

    with stages() as show:
        rows = doctor(show)
    print_rows(options, "tools", [asdict(row) for row in rows])
    return 0 if is_well(rows) else 3
