"""Shared parts of the commands: declaring them, reading a model, printing."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rich.console import Console

from nnef_hw.errors import NnefHwError, UsageError

if TYPE_CHECKING:
    from nnef_hw.frontend.named_states import NamedStates
    from nnef_hw.frontend.reading import Reading

__all__ = [
    "JSON",
    "Command",
    "Commands",
    "add_boards",
    "add_command",
    "add_design",
    "complete_boards",
    "console",
    "error_json",
    "forget_json",
    "json_printed",
    "positive_number",
    "print_json",
    "print_result",
    "print_rows",
    "reading",
    "streaming",
]

PIPE_WIDTH = 120
JSON = "--json"
_printed: list[bool] = []
GUESS = -1
"""Axis of --stream time, which shapes tell."""
FoundStates: TypeAlias = Literal["auto", "loops"]
FOUND: tuple[FoundStates, ...] = ("auto", "loops")
"""How --state may find states that are not named."""

Command: TypeAlias = Callable[[argparse.Namespace], int]
# argparse has no public name for what add_subparsers returns.
Commands: TypeAlias = Any


def add_command(
    commands: Commands, name: str, command: Command, summary: str, positional: str = ""
) -> argparse.ArgumentParser:
    """Declare a command with ``--json``.

    Parameters
    ----------
    positional
        ``model``, which also gives the options for reading one, or ``build``.
    """
    sub: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[:1].upper() + summary[1:]
    )
    sub.set_defaults(command=command)
    sub.add_argument(JSON, action="store_true", help="print one JSON object and nothing else")
    if positional:
        kinds = (
            "an NNEF archive or folder, an ONNX or a TensorFlow Lite file"
            if positional == "model"
            else "a build's folder"
        )
        sub.add_argument(positional, type=Path, metavar=positional.upper(), help=kinds)
    if positional == "model":
        _add_reading(sub)
    return sub


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dim",
        type=_dim,
        action="append",
        default=[],
        metavar="NAME=N",
        help="value of a symbol in the model's shapes, e.g. B=1, or of an extent of an ONNX "
        "model's input, e.g. x.2=160 (repeatable)",
    )
    parser.add_argument(
        "--bind",
        type=_bind,
        action="append",
        default=[],
        metavar="NAME=X",
        help="make an input of an ONNX or TensorFlow Lite model a constant, e.g. sr=16000 "
        "(repeatable)",
    )
    parser.add_argument(
        "--inputs",
        type=_names,
        action="extend",
        default=[],
        metavar="NAME,...",
        help="begin the model at these values, which the host then gives",
    )
    parser.add_argument(
        "--outputs",
        type=_names,
        action="extend",
        default=[],
        metavar="NAME,...",
        help="cut the model at these values, which become its results",
    )
    parser.add_argument(
        "--state",
        type=_state,
        action="append",
        default=[],
        metavar="IN=OUT",
        help="make an input a state that takes over an output for the next inference, e.g. "
        "h_in=h_out (repeatable); auto: those that their names tell; loops: what loops "
        "pass on",
    )
    parser.add_argument(
        "--context",
        type=positive_number,
        metavar="N",
        help="give caches that grow by a row in each step (past_*, present_*) N rows, of which a "
        "step writes one",
    )
    parser.add_argument(
        "--front",
        type=Path,
        metavar="FILE.toml",
        help="compute the input of samples of audio, or of a camera's bytes, by a front end that "
        "the file describes (log_mel, micro_frontend, image)",
    )
    parser.add_argument(
        "--stream",
        type=_stream,
        metavar="time[=AXIS]",
        help="run a network of windows in time step by step: each step takes new rows along that "
        "axis of the inputs' shape and computes what they change (default: the last axis of "
        "[1, C, T], or T of [1, C, T, 1])",
    )
    parser.add_argument(
        "--continue-borders",
        action="store_true",
        help="with --stream: take rows of the stream where the network pads its window in time",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="accept legacy NNEF, which 1.0 and its drafts allowed and 1.0.5 does not",
    )


def complete_boards(action: argparse.Action) -> None:
    """Let shells complete an option's value to the names of boards."""

    def names(**_: object) -> list[str]:
        from nnef_hw.boards import BOARDS

        return [name for board in BOARDS for name in (board.name, *board.aliases)]

    vars(action)["completer"] = names  # where argcomplete looks


def add_boards(
    parser: argparse.ArgumentParser, summary: str, option: str = "--board", **more: Any
) -> None:
    """Declare an option that takes several boards; they are given to the command as a list."""
    parser.add_argument(option, type=_names, metavar="NAME,...", help=summary, **more)


def add_goal(sub: argparse.ArgumentParser) -> None:
    """Declare what a design without a rate aims at."""
    sub.add_argument(
        "--goal",
        choices=("rate", "latency"),
        default="rate",
        help="latency: the clock and the rate with which a result comes soonest after its frame, "
        "with up to 95%% of the LUTs (default: rate)",
    )


def add_design(parser: argparse.ArgumentParser) -> None:
    """Declare what every command takes that designs accelerators: samples and architecture."""
    parser.add_argument("--calibrate", type=Path, metavar="S.npz", help="representative inputs")
    parser.add_argument(
        "--arch",
        default="auto",
        help="streaming, engine; auto (default): the fastest that fits",
    )


def positive_number(text: str, alternative: str = "") -> int:
    """Convert an argument to a whole number of at least 1.

    Parameters
    ----------
    alternative
        The word that may stand there instead of a number; only the message needs it.

    Raises
    ------
    ArgumentTypeError
        If it is something else.
    """
    if not _is_positive(text):
        wanted = "not a positive number"
        if alternative:
            wanted = f"neither a positive number nor {alternative!r}"
        raise argparse.ArgumentTypeError(f"{text!r} is {wanted}")
    return int(text)


def _is_positive(text: str) -> bool:
    return text.isdecimal() and int(text) > 0


def _dim(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name or not _is_positive(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N with a positive N")
    return name, int(value)


def _bind(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=X with a finite number X")
    return name, number


def _state(text: str) -> tuple[str, str]:
    before, _, after = text.partition("=")
    if text not in FOUND and not (before and after):
        raise argparse.ArgumentTypeError(f"{text!r} is neither IN=OUT nor {' nor '.join(FOUND)}")
    return before, after


def _stream(text: str) -> int:
    name, is_named, axis = text.partition("=")
    if name != "time" or (is_named and not axis.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is neither time nor time=AXIS")
    return int(axis) if is_named else GUESS


def _names(text: str) -> list[str]:
    names = text.split(",")
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names like a,b")
    return names


def reading(options: argparse.Namespace) -> Reading:
    """Return how to read the model.

    Raises
    ------
    UsageError
        If two options contradict each other, or a file of a front cannot be read.
    """
    from nnef_hw.frontend.front_file import read_front
    from nnef_hw.frontend.reading import Reading

    dims: dict[str, int] = {}
    for name, value in options.dim:
        if dims.setdefault(name, value) != value:
            raise UsageError(f"--dim {name} is given as {dims[name]} and as {value}")
    bind: dict[str, float] = {}
    for name, number in options.bind:
        if bind.setdefault(name, number) != number:
            raise UsageError(f"--bind {name} is given as {bind[name]:g} and as {number:g}")
    states: dict[str, str] = {}
    for before, after in options.state:
        if states.setdefault(before, after) != after:
            raise UsageError(f"--state {before} is given as {states[before]} and as {after}")
    found = [name for name in FOUND if states.get(name) == ""]
    if found and len(states) > 1:
        raise UsageError(f"--state {found[0]} finds all states", remedy="omit it, or the others")
    return Reading(
        dims=dims,
        lenient=options.lenient,
        inputs=options.inputs,
        outputs=options.outputs,
        bind=bind,
        states=_with_context(found[0] if found else states, options.context),
        front=read_front(options.front) if options.front else None,
    )


def _with_context(states: Mapping[str, str] | FoundStates, context: int | None) -> NamedStates:
    """Return states of which those that grow have so many rows."""
    from nnef_hw.frontend.named_states import FixedContext

    if context is None:
        return states
    if states == "loops":
        raise UsageError("--context is for caches, not for loops", remedy="omit --state loops")
    return FixedContext(context, {} if isinstance(states, str) else states)


def streaming(options: argparse.Namespace) -> Any:
    """Return how a network of windows runs step by step, :class:`StreamTime`; None if as it is."""
    from nnef_hw.passes.time.stream_time import StreamTime

    if options.stream is None:
        if options.continue_borders:
            raise UsageError("--continue-borders is for --stream time", remedy="give that, too")
        return None
    return StreamTime(None if options.stream == GUESS else options.stream, options.continue_borders)


def print_json(value: object) -> None:
    """Print one JSON object."""
    print(json.dumps(value, indent=1, allow_nan=False))
    _printed.append(True)


def json_printed() -> bool:
    """Whether the command has printed its JSON object."""
    return bool(_printed)


def forget_json() -> None:
    """Begin another command."""
    _printed.clear()


def error_json(error: NnefHwError) -> dict[str, object]:
    """Return an error as JSON values: exit status, and every single error with its place."""
    return {
        "status": error.exit_status,
        "errors": [
            {
                "kind": type(each).__name__,
                "reason": each.reason,
                "remedy": each.remedy,
                "location": None if each.location is None else asdict(each.location),
            }
            for each in getattr(error, "errors", (error,))
        ],
    }


def print_result(options: argparse.Namespace, result: dict[str, object]) -> None:
    """Print a result as tables, or as JSON if that is asked for."""
    from nnef_hw.report.wording.tables import result_tables

    if options.json:
        print_json(result)
    else:
        for table in result_tables(result):
            console().print(table)


def print_rows(options: argparse.Namespace, title: str, rows: list[dict[str, object]]) -> None:
    """Print rows as one table, or as a JSON object with the list ``title``."""
    from nnef_hw.report.wording.tables import rows_table

    if options.json:
        print_json({title: rows})
    else:
        console().print(rows_table(rows))


def console() -> Console:
    """Return standard output; in a pipe it has room for whole tables."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, markup=False)
