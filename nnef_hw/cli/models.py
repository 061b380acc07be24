"""Commands that look at a model or rewrite it: check, inspect, simplify, convert."""

from __future__ import annotations

import argparse
import sys

from nnef_hw.cli.common import (
    Commands,
    add_boards,
    add_command,
    console,
    print_json,
    reading,
    streaming,
)
from nnef_hw.errors import UsageError

__all__ = ["add_commands"]

MOST_VALUES = 24
"""Elements of the largest constant that ``simplify`` prints whole."""


def add_commands(commands: Commands) -> None:
    """Declare the commands of this module."""
    sub = add_command(
        commands, "check", _check, "is the model valid, and can it be built?", "model"
    )
    add_boards(
        sub, "say of these, or files of your own, whether it fits, and why not; or of all",
        default=[],
    )  # fmt: skip
    add_command(
        commands, "inspect", _inspect,
        "show layers, shapes, parameters and MACs; of a build, the program that it runs", "model",
    )  # fmt: skip
    sub = add_command(
        commands, "simplify", _simplify,
        "print the graph of canonical operators that passes make of the model", "model",
    )  # fmt: skip
    sub.add_argument(
        "--after", metavar="NAME",
        help="print the graph as it is when this pass, e.g. LowerMatmul, has run once, or when a "
        "phase, e.g. canonical, has ended; docs/passes.md lists both",
    )  # fmt: skip
    sub.add_argument(
        "--whole", action="store_true",
        help="print where in the model each node comes from, and all values of constants of more "
        f"than {MOST_VALUES} elements: a text that can be read back",
    )  # fmt: skip
    sub = add_command(
        commands, "convert", _convert, "write the model as flat, canonical NNEF", "model"
    )
    sub.add_argument(
        "output", metavar="OUT", help="NAME.nnef.tgz, NAME.nnef.tar, or NAME/ for a folder"
    )
    sub.add_argument(
        "--expand", action="store_true", help="replace compound operators by primitive ones"
    )


def _check(options: argparse.Namespace) -> int:
    from nnef_hw.boards import find_boards
    from nnef_hw.flow.survey import outlooks
    from nnef_hw.ir import Graph
    from nnef_hw.report.check import check_file, check_refusals, check_verdict
    from nnef_hw.report.model.network import Outlook
    from nnef_hw.report.progress import stages
    from nnef_hw.report.survey import survey_tables

    boards, stream = list(find_boards(options.board).values()), streaming(options)

    def ask(graph: Graph) -> list[Outlook]:
        if not boards:
            return []
        with stages() as show:
            return outlooks(graph, boards, stream=stream, say=show)

    result = check_file(options.model, reading=reading(options), stream=stream, ask=ask)
    if options.json:
        print_json(result.to_json())
    else:
        for problem in result.problems:
            print(f"nnef-hw: {problem}", file=sys.stderr)
        print(check_verdict(options.model, result))
        for text in check_refusals(result):
            print(text)
        for table in survey_tables(result.boards):
            console().print(table)
    fits = not boards or any(outlook.fits for outlook in result.boards)
    return 0 if fits and not result.problems else 2


def _inspect(options: argparse.Namespace) -> int:
    from nnef_hw.report.inspection import (
        inspect_build,
        inspect_file,
        print_inspection,
        print_program,
    )
    from nnef_hw.report.model.conversion import to_json

    if (options.model / "manifest.json").is_file():
        from nnef_hw.run.artifacts import BuildFolder

        program = inspect_build(BuildFolder.open(options.model))
        if options.json:
            print_json(to_json(program))
        else:
            print_program(program, console())
        return 0
    description = inspect_file(options.model, reading=reading(options), stream=streaming(options))
    if options.json:
        print_json(to_json(description))
    else:
        print_inspection(description, console())
    return 0


def _simplify(options: argparse.Namespace) -> int:
    from nnef_hw.ir import Stage, format_graph
    from nnef_hw.passes.pipeline import graph_after, simplify

    stream = streaming(options)
    if stream is not None and options.after is not None:
        raise UsageError(
            "--stream rewrites the canonical graph, behind all passes",
            remedy="leave out --after or --stream",
        )
    graph = reading(options).load(options.model)
    if graph.stage != Stage.FLOAT:
        raise UsageError(
            f"{str(options.model)!r} is quantized: passes rewrite float models only",
            remedy="give the float model that it was made of",
        )
    graph = simplify(graph) if options.after is None else graph_after(graph, options.after)
    if stream is not None:
        graph = stream.of_model(graph)
    if options.whole:
        text = format_graph(graph)
    else:
        text = format_graph(graph, most_values=MOST_VALUES, places=False)
    if options.json:
        print_json({"after": options.after, "stage": str(graph.stage), "graph": text})
    else:
        print(text, end="")
    return 0


def _convert(options: argparse.Namespace) -> int:
    from nnef_hw.frontend import save
    from nnef_hw.frontend.nnef.writing.expand import expand_compounds
    from nnef_hw.ir import Stage
    from nnef_hw.passes import simplify
    from nnef_hw.passes.loops.unroll_scan import UnrollScan

    graph = UnrollScan()(reading(options).load(options.model))
    stream = streaming(options)
    if stream is not None:
        graph = stream.of_model(simplify(graph) if graph.stage == Stage.FLOAT else graph)
    if options.expand:
        if graph.stage != Stage.FLOAT:
            raise UsageError(
                f"{str(options.model)!r} is quantized: its operators are those of the hardware",
                remedy="leave out --expand, or expand the float model",
            )
        graph = expand_compounds(graph)
    save(graph, options.output)
    if options.json:
        print_json({"output": options.output})
    return 0
