"""The command explore: which board, which bits, how fast."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from nnef_hw.cli import common
from nnef_hw.cli.quantize import add_scheme, scheme
from nnef_hw.errors import UsageError

if TYPE_CHECKING:
    from nnef_hw.boards import Board
    from nnef_hw.explore import Point
    from nnef_hw.system.workers import Pool

__all__ = ["add_commands"]

FOLDER = "explore"
CONNECT_SECONDS = 10
OWN = ("--boards", "--bits", "--target-fps", "--seeds", "--until", "--out", "--dask", "--jobs")
"""Options that are not for build, or say something else there."""


def add_commands(commands: common.Commands) -> None:
    """Declare the command."""
    sub = common.add_command(
        commands, "explore", _explore, "compare designs: boards, widths, speeds", "model"
    )
    # The words of the command line are taken over into those of build.
    sub.allow_abbrev = False
    common.add_boards(sub, "boards, or files of your own; or all", "--boards", required=True)
    common.add_design(sub)
    sub.add_argument(
        "--bits", type=_widths, metavar="N,...", help="widths of weights, 1..8 (default: 8)"
    )
    sub.add_argument(
        "--target-fps",
        type=_rates,
        default=[],
        metavar="N,...",
        help="the smallest designs with these rates (default: the fastest, and the smallest with "
        "its rate, a half, a quarter and an eighth of it)",
    )
    sub.add_argument("--freq", type=float, metavar="MHZ", help="clock (default: the board's)")
    sub.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="placements of a design (default: 1)"
    )
    sub.add_argument(
        "--until",
        choices=("planned", "mapped", "placed"),
        default="placed",
        help="where to end: planned synthesizes nothing, mapped the designs that may be on "
        "the front, placed (default) places those of them that still are",
    )
    sub.add_argument(
        "--jobs",
        type=common.positive_number,
        metavar="N",
        help="jobs at a time (default: one for each processor)",
    )
    sub.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run the jobs on the workers of a dask.distributed scheduler",
    )
    add_scheme(sub, widths=False)
    sub.add_argument(
        "--out", type=Path, metavar="DIR", help="the sweep's folder (default: explore/MODEL)"
    )


def _widths(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of widths like 8,6,4") from None


def _rates(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of rates like 30,60") from None


def _explore(options: argparse.Namespace) -> int:
    from nnef_hw.boards import find_boards
    from nnef_hw.explore import Sweep, explore
    from nnef_hw.flow.fixed import doubts
    from nnef_hw.quantize.judgement.warnings import announce
    from nnef_hw.report.model.exploration import Explored
    from nnef_hw.report.pages.exploration import exploration_tables, write_exploration
    from nnef_hw.report.progress import stages
    from nnef_hw.samples.samples import load_samples

    wanted, stream = scheme(options), common.streaming(options)
    boards = find_boards(options.boards)
    graph = common.reading(options).load(options.model)
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    sweep = Sweep(
        graph=graph,
        samples=samples,
        boards=list(boards.values()),
        weight_bits=options.bits or [wanted.weight_bits],
        target_fps=options.target_fps,
        arch=options.arch,
        clock_mhz=options.freq,
        scheme=wanted,
        stream=stream,
        seeds=options.seeds,
        until=options.until,
        build=lambda point: _command(options, boards, point),
    )
    sweep.check()
    warnings = doubts(graph, samples)
    announce(warnings)
    folder = options.out or Path(FOLDER) / options.model.resolve().name.split(".")[0]
    with stages() as show, _pool(options) as pool:
        points = explore(
            sweep,
            folder,
            pool,
            lambda what, done, total: show(f"{what}, {done} of {total}"),
        )
    command = shlex.join(["nnef-hw", *options.arguments])
    found = Explored(graph.name, points, [command], warnings)
    write_exploration(found, folder / "index.html")
    if options.json:
        common.print_json(found.to_json() | {"folder": str(folder)})
    else:
        for table in exploration_tables(points):
            common.console().print(table)
        print(f"all designs, and the commands that build them: {folder / 'index.html'}")
    return 0 if any(not point.refusal for point in points) else 2


def _pool(options: argparse.Namespace) -> AbstractContextManager[Pool]:
    """Return the pool that runs the jobs.

    Raises
    ------
    UsageError
        If dask.distributed is not installed, or nothing answers there.
    """
    from nnef_hw.system.workers import Processes

    if options.dask is None:
        return Processes(options.jobs)
    if options.jobs is not None:
        raise UsageError("--jobs is for processes of this machine", remedy="omit it with --dask")
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "--dask needs dask.distributed", remedy="pip install 'nnef-hw[dask]'"
        ) from None
    try:
        client: AbstractContextManager[Pool] = Client(options.dask, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no dask scheduler answers at {options.dask!r}: {error}",
            remedy="start one with dask scheduler, and workers with dask worker ADDRESS",
        ) from error
    return client


def _command(options: argparse.Namespace, boards: Mapping[str, Board], point: Point) -> str:
    """Return the command that builds a point, at the clock with which it was placed."""
    names = {board.name: name for name, board in boards.items()}
    words = ["nnef-hw", "build", *_others(options.arguments)]
    if options.freq is None:
        words += ["--freq", f"{point.clock_mhz:.15g}"]
    words += ["--board", names[point.board], "--weight-bits", str(point.weight_bits)]
    if point.target_fps is not None:
        words += ["--target-fps", f"{point.target_fps:.15g}"]
    if options.seeds != 1:
        words += ["--seeds", str(options.seeds)]
    return shlex.join(words)


def _others(arguments: list[str]) -> list[str]:
    """Return the arguments of the sweep that a build takes as they are."""
    kept, words = [], iter(arguments[arguments.index("explore") + 1 :])
    for word in words:
        if word == "--json":
            continue
        if word.partition("=")[0] in OWN:
            if "=" not in word:
                next(words, None)
            continue
        kept.append(word)
    return kept
