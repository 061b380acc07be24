"""The command plan: what boards would make of a model, in seconds."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnef_hw.cli.common import Commands, add_command, console, print_json, reading, streaming
from nnef_hw.cli.quantize import accuracy_drop, add_scheme, scheme
from nnef_hw.errors import UsageError

__all__ = ["add_commands"]

ALL = "all"


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    sub = add_command(
        commands, "plan", _plan, "how fast would boards run it, and does it fit?", "model"
    )
    sub.add_argument(
        "--board",
        default=ALL,
        metavar="NAME,...",
        help="boards, or files of your own (default: all)",
    )
    sub.add_argument(
        "--calibrate",
        type=Path,
        metavar="S.npz",
        help="representative inputs, for the last few LUTs; without them formats are roughly right",
    )
    sub.add_argument(
        "--arch", default="auto", help="streaming, engine; auto (default): the fastest that fits"
    )
    sub.add_argument("--freq", type=float, metavar="MHZ", help="clock (default: the board's)")
    sub.add_argument(
        "--target-fps", type=float, metavar="N", help="the smallest designs with this rate"
    )
    add_scheme(sub)


def _plan(options: argparse.Namespace) -> int:
    from nnef_hw.boards import BOARDS, find_board
    from nnef_hw.build.options import check_wishes
    from nnef_hw.build.survey import roughly_fixed, survey
    from nnef_hw.frontend import load
    from nnef_hw.report.progress import stages
    from nnef_hw.report.survey import survey_tables
    from nnef_hw.samples import load_samples
    from nnef_hw.workers import processes_for

    check_wishes(options.arch, {"--freq": options.freq, "--target-fps": options.target_fps})
    if accuracy_drop(options) is not None:
        raise UsageError("plans take the widths that they are given", remedy="omit --bits auto")
    stream = streaming(options)
    names = options.board.split(",")
    boards = BOARDS if names == [ALL] else [find_board(name) for name in names]
    graph = load(options.model, **reading(options))
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    with stages() as show, processes_for(len(boards)) as pool:
        show("quantizing")
        fixed = roughly_fixed(graph, samples, scheme(options), stream)
        found = list(
            survey(
                fixed,
                boards,
                arch=options.arch,
                clock_mhz=options.freq,
                target_fps=options.target_fps,
                pool=pool,
                progress=lambda what, done, total: show(f"{what}, {done} of {total}"),
            )
        )
    if options.json:
        rows = [outlook.to_json() for outlook in found]
        print_json({"model": graph.name, "calibrated": samples is not None, "boards": rows})
    else:
        for table in survey_tables(found):
            console().print(table)
    return 0 if any(outlook.fits for outlook in found) else 2
