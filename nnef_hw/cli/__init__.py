"""The command line: arguments only; every command is a function elsewhere.

Each module has the commands of one group; its ``add_commands`` declares them.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

import nnef_hw
from nnef_hw.cli import boards, build, hardware, models, quantize, run
from nnef_hw.cli.common import Command
from nnef_hw.errors import ErrorGroup, NnefHwError

__all__ = ["main"]

GROUPS = (models, quantize, build, run, hardware, boards)


class _Warnings(logging.Handler):
    """Prints log records as the command line prints errors, each text once."""

    def __init__(self) -> None:
        super().__init__()
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._printed:
            self._printed.add(message)
            print(f"nnef-hw: warning: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (design section 9)."""
    parser = _parser()
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parser.parse_args(given, argparse.Namespace(arguments=given))
    logging.basicConfig(level=logging.WARNING, handlers=[_Warnings()], force=True)
    command: Command = options.command
    try:
        return command(options)
    except NnefHwError as error:
        for each in error.errors if isinstance(error, ErrorGroup) else (error,):
            print(f"nnef-hw: {each}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("nnef-hw: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nnef-hw",
        description="Turn a trained neural network into a bit-exact FPGA accelerator.",
        epilog="Exit status: 0 fine, 1 a check failed, 2 wrong input or arguments, 3 a tool "
        "is missing or broke.",
    )
    parser.add_argument("--version", action="version", version=f"nnef-hw {nnef_hw.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for group in GROUPS:
        group.add_commands(commands)
    return parser
