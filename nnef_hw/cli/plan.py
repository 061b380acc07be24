"""The command plan: what boards would make of a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnef_hw.cli.common import (
    Commands,
    add_boards,
    add_command,
    add_goal,
    console,
    print_json,
    reading,
    streaming,
)
from nnef_hw.cli.quantize import accuracy_drop, add_scheme, scheme
from nnef_hw.errors import UsageError

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    from nnef_hw.boards.interfaces import DEFAULT_LINK, link_names

    sub = add_command(
        commands, "plan", _plan, "how fast would boards run it, and does it fit?", "model"
    )
    add_boards(sub, "boards, or files of your own (default: all)", default="all")
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
    add_goal(sub)
    sub.add_argument(
        "--source",
        action="append",
        default=[],
        dest="sources",
        metavar="[INPUT=]NAME",
        help="where an input comes from in place of the host, as for build: boards need its pins, "
        "and keep up with it",
    )
    sub.add_argument(
        "--sink",
        action="append",
        default=[],
        dest="sinks",
        metavar="[OUTPUT=]NAME",
        help="where an output goes besides the host, as for build: boards need its pins, and room",
    )
    sub.add_argument(
        "--link", default=DEFAULT_LINK.name, choices=link_names(), metavar="NAME",
        help=f"host link, for which boards have room: {', '.join(link_names())} "
        f"(default: {DEFAULT_LINK.name})",
    )  # fmt: skip
    sub.add_argument(
        "--token-loop",
        action="store_true",
        help="let boards themselves write texts of a language model, as for build: boards need "
        "room, and the shortest latency counts",
    )
    add_scheme(sub)


def _plan(options: argparse.Namespace) -> int:
    from nnef_hw.boards import find_boards
    from nnef_hw.boards.interfaces import find_link, find_sink, find_source
    from nnef_hw.flow.fixed import doubts
    from nnef_hw.flow.options import check_goal, check_link, check_wishes
    from nnef_hw.flow.survey import outlooks
    from nnef_hw.quantize.judgement.warnings import announce
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.report.progress import stages
    from nnef_hw.report.survey import survey_tables
    from nnef_hw.samples.samples import load_samples

    check_wishes(options.arch, {"--freq": options.freq, "--target-fps": options.target_fps})
    given = {"--target-fps": options.target_fps, "--source": options.sources or None}
    check_goal(options.goal, given)
    if accuracy_drop(options) is not None:
        raise UsageError("plans take the widths that they are given", remedy="omit --bits auto")
    sources = [find_source(text) for text in options.sources]
    sinks = [find_sink(text) for text in options.sinks]
    link = find_link(options.link)
    check_link(link, sources=sources, sinks=sinks, token_loop=options.token_loop)
    stream = streaming(options)
    boards = list(find_boards(options.board).values())
    graph = reading(options).load(options.model)
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    announce(warnings := doubts(graph, samples))
    with stages() as show:
        found = outlooks(
            graph,
            boards,
            samples,
            scheme(options),
            stream,
            arch=options.arch,
            clock_mhz=options.freq,
            target_fps=options.target_fps,
            goal=options.goal,
            sources=sources,
            sinks=sinks,
            link=link,
            token_loop=options.token_loop,
            say=show,
        )
    if options.json:
        print_json({
            "model": graph.name, "calibrated": samples is not None,
            "boards": [outlook.to_json() for outlook in found],
            "warnings": to_json(warnings),
        })  # fmt: skip
    else:
        for table in survey_tables(found, by_latency=options.goal == "latency"):
            console().print(table)
    return 0 if any(outlook.fits for outlook in found) else 2
