"""The command line: arguments only; every command is a function elsewhere.

Each module has the commands of one group; its ``add_commands`` declares them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import nnef_hw
from nnef_hw.cli import (
    boards,
    build,
    demo,
    explore,
    generate,
    hardware,
    models,
    plan,
    quantize,
    run,
)
from nnef_hw.cli.common import JSON, Command, error_json, forget_json, json_printed, print_json
from nnef_hw.cli.crash import DefectError, crash_message, threads_crash
from nnef_hw.cli.parser import Parser
from nnef_hw.cli.signals import Interrupted, leave, signals_raise
from nnef_hw.errors import ErrorGroup, NnefHwError, ToolError
from nnef_hw.system.files import STORAGE, output_error

__all__ = ["command_parser", "main"]

COMPLETING = "_ARGCOMPLETE"
"""Variable by which a shell asks for completions (see the command completion)."""
GROUPS = (demo, models, plan, explore, quantize, build, run, generate, hardware, boards)


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
    """Run one command and return its exit status (docs/command_line.md)."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    forget_json()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, io.StringIO())
    with threads_crash() as crashes:
        try:
            with signals_raise():
                status = _run(words)
                sys.stdout.flush()
        except NnefHwError as error:
            for each in error.errors if isinstance(error, ErrorGroup) else (error,):
                print(f"nnef-hw: {each}", file=sys.stderr)
            _print_error(error, words)
            return error.exit_status
        except KeyboardInterrupt as error:
            print("nnef-hw: interrupted", file=sys.stderr)
            return leave(error.exit_status if isinstance(error, Interrupted) else 130)
        except BrokenPipeError:
            _drop_output()
            return 141
        except Exception as error:
            return _crash(error, words)
    return _crash(crashes[0], words) if crashes else status


def _run(words: list[str]) -> int:
    parser = command_parser()
    if COMPLETING in os.environ:
        complete(parser)
    options = parser.parse_args(words, argparse.Namespace(arguments=words))
    # Amaranth warns of every component that an error keeps from being converted.
    warnings.filterwarnings("ignore", r"(?s).* created but never used")
    logging.basicConfig(level=logging.WARNING, handlers=[_Warnings()], force=True)
    command: Command = options.command
    return command(options)


def complete(parser: Parser) -> None:
    """Answer a shell that asks how a command may go on, and end the program."""
    from argcomplete import autocomplete

    autocomplete(parser)


def _print_error(error: NnefHwError, words: list[str]) -> None:
    """Print an error as the JSON object that a command with ``--json`` has not printed."""
    if JSON in words and not json_printed():
        with contextlib.suppress(OSError):
            print_json({"error": error_json(error)})
            sys.stdout.flush()


def _crash(error: BaseException, words: list[str]) -> int:
    """Report an exception that no command expects; return the exit status."""
    if isinstance(error, OSError) and error.errno in STORAGE:
        # where a file is written, its name is in the error
        place = "standard output"
        if error.filename is None:
            _drop_output()
        else:
            place = os.fsdecode(error.filename)
        wrong = output_error(error, Path(place))
        print(f"nnef-hw: {wrong}", file=sys.stderr)
        _print_error(wrong, words)
        return wrong.exit_status
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("nnef_hw"):
        lacking = ToolError(
            f"the Python module {error.name!r} is not installed",
            remedy="pip install nnef-hw, with all that it needs",
        )
        print(f"nnef-hw: {lacking}", file=sys.stderr)
        _print_error(lacking, words)
        return lacking.exit_status
    message = crash_message(error, words)
    print(f"nnef-hw: {message}", file=sys.stderr)
    _print_error(DefectError(message), words)
    return DefectError.exit_status


def _drop_output() -> None:
    """Discard all that is still to be written to standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="nnef-hw",
        description="Turn a trained neural network into a bit-exact FPGA accelerator.",
        epilog="Exit status: 0 fine, 1 a check failed, 2 wrong input or arguments, 3 a tool "
        "is missing or failed.",
    )
    parser.add_argument("--version", action="version", version=f"nnef-hw {nnef_hw.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for group in GROUPS:
        group.add_commands(commands)
    return parser
