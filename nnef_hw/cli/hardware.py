"""Commands for a board on the desk: flash, bench-device, board-report, record, score."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nnef_hw.cli.common import (
    Commands,
    add_command,
    positive_number,
    print_json,
    print_result,
)
from nnef_hw.errors import UsageError

__all__ = ["add_commands"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_VALUES = 12
"""Values of an output that are printed, at most."""


def add_commands(commands: Commands) -> None:
    """Declare the commands of this module."""
    sub = add_command(
        commands,
        "flash",
        _flash,
        "write a build's bitstream, and weights in flash, to its board",
        "build",
    )
    sub.add_argument("--board", metavar="FILE.py", help="the build's board, if it is your own")
    sub.add_argument(
        "--volatile", action="store_true", help="load the FPGA, but leave its flash as it is"
    )
    sub.add_argument("--dry-run", action="store_true", help="print the commands instead")

    sub = add_command(
        commands, "bench-device", _bench_device, "measure a board's core and link", "build"
    )
    sub.add_argument("--port", required=True, help="serial port of the board, or 'sim'")
    sub.add_argument(
        "--frames", type=_frames, default=200, metavar="N", help="frames of the replay, 2..65535"
    )

    sub = add_command(
        commands, "score", _score, "score a board as MLPerf Tiny's runner does", "build"
    )
    sub.add_argument("--port", required=True, help="serial port of the board, or 'sim'")
    sub.add_argument(
        "--samples", type=Path, metavar="S.npz",
        help="inputs and labels (default: serve the simulated board to another program)",
    )  # fmt: skip
    sub.add_argument("--limit", type=positive_number, metavar="N", help="use the first N samples")
    sub.add_argument(
        "--runs", type=positive_number, default=1, metavar="N", help="inferences per sample (1)"
    )

    sub = add_command(
        commands, "board-report", _board_report, "write what a board did, to send it to us", "build"
    )
    sub.add_argument("--port", required=True, help="serial port of the board, or 'sim'")
    sub.add_argument(
        "--samples", required=True, type=Path, metavar="S.npz", help="what the board computes"
    )
    sub.add_argument(
        "-o", "--output", type=Path, metavar="FILE.json",
        help="where it is written (default: board-report.json in the build's folder)",
    )  # fmt: skip

    sub = add_command(
        commands, "record", _record, "record the results of a board that a sensor feeds", "build"
    )
    sub.add_argument("--port", required=True, help="serial port of the board, or 'sim'")
    sub.add_argument(
        "--steps", type=_steps, required=True, metavar="N", help="steps of the network"
    )
    sub.add_argument(
        "-o", "--output", type=Path, required=True, metavar="Y.npz",
        help="all outputs of the network, an array [N, ...] each",
    )  # fmt: skip
    sub.add_argument(
        "--live", action="store_true", help="print the outputs of every step as they come"
    )


def _steps(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _record(options: argparse.Namespace) -> int:
    import numpy as np

    from nnef_hw.arithmetic.records import Fields
    from nnef_hw.host.manifest import read_manifest
    from nnef_hw.run.device import open_device, require_sensors
    from nnef_hw.system.files import atomic_file

    require_sensors(read_manifest(options.build))
    is_live = options.live and not options.json
    with open_device(options.build, options.port, progress=not is_live) as board:
        if is_live:
            steps = []
            for step, found in enumerate(islice(board.listen(), options.steps)):
                steps.append(found)
                sys.stdout.write(_told(step, found) + "\n")
                sys.stdout.flush()
            outputs = {name: np.stack([found[name] for found in steps]) for name in steps[0]}
        else:
            outputs = board.record(options.steps)
        counters = board.counters()
    with atomic_file(options.output) as file:
        np.savez(file, **Fields(outputs))
    print_result(options, {
        "output": str(options.output), "steps": options.steps,
        "frames": counters.frames, "lost": counters.lost,
        "shapes": {name: list(value.shape) for name, value in outputs.items()},
    })  # fmt: skip
    return 0


def _told(step: int, outputs: Mapping[str, NDArray[np.float64]]) -> str:
    """Return a line of a step's outputs: few values, or the greatest of many and its place."""
    told = [f"step {step}"]
    for name, values in outputs.items():
        flat = values.reshape(-1)
        if len(flat) <= MOST_VALUES:
            told.append(f"{name} " + " ".join(f"{value:.2f}" for value in flat))
        else:
            place = int(flat.argmax())
            told.append(f"{name} {place}: {flat[place]:.2f}")
    return "  ".join(told)


def _frames(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number in 2..65535")
    return int(text)


def _bench_device(options: argparse.Namespace) -> int:
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.bench_device import bench_device

    found = bench_device(options.build, options.port, frames=options.frames)
    print_result(options, to_json(found))
    return 0


def _score(options: argparse.Namespace) -> int:
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.score import score, serve

    if options.samples is None:
        if options.port != "sim":
            raise UsageError("--samples is missing", remedy="give it, or --port sim")
        serve(options.build, lambda port: print(f"port: {port}", flush=True))
        return 0
    found = score(
        options.build, options.port, options.samples, limit=options.limit, runs=options.runs
    )
    print_result(options, to_json(found))
    return 0


def _board_report(options: argparse.Namespace) -> int:
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.board_report import board_report
    from nnef_hw.system.files import write_atomic

    found = to_json(board_report(options.build, options.port, options.samples))
    path = options.output or options.build / "board-report.json"
    write_atomic(path, json.dumps(found, indent=2) + "\n")
    if options.json:
        print_json(found)
        return 0
    print_result(options, found)
    print(f"report: {path}")
    return 0


def _flash(options: argparse.Namespace) -> int:
    from nnef_hw.run.flash import flash, plan_flashing

    flashing = plan_flashing(options.build, options.board, volatile=options.volatile)
    seconds = None if options.dry_run else round(flash(flashing), 2)
    if options.json:
        print_json({
            "board": flashing.board.name,
            "bitstream": str(flashing.bitstream),
            "command": flashing.commands[-1],
            "commands": list(flashing.commands),
            "image": None if flashing.image is None else str(flashing.image),
            "seconds": seconds,
        })
    elif options.dry_run:
        print("\n".join(flashing.commands))
    return 0
