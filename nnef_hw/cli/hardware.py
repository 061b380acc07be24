"""Commands for a board on the desk: flash."""

from __future__ import annotations

import argparse

from nnef_hw.cli.common import Commands, add_command, print_json

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Declare the commands of this module."""
    sub = add_command(commands, "flash", _flash, "write a build's bitstream to its board", "build")
    sub.add_argument("--board", metavar="FILE.py", help="the build's board, if it is your own")
    sub.add_argument(
        "--volatile", action="store_true", help="load the FPGA only, until power is off"
    )
    sub.add_argument("--dry-run", action="store_true", help="print the command instead")


def _flash(options: argparse.Namespace) -> int:
    from nnef_hw.run.flash import flash, plan_flashing

    flashing = plan_flashing(options.build, options.board, volatile=options.volatile)
    seconds = None if options.dry_run else round(flash(flashing), 2)
    if options.json:
        print_json({
            "board": flashing.board.name,
            "bitstream": str(flashing.bitstream),
            "command": flashing.command,
            "seconds": seconds,
        })
    elif options.dry_run:
        print(flashing.command)
    return 0
