"""Commands that run a model or a build on samples: run, sim, compare."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from nnef_hw.arithmetic.records import Fields
from nnef_hw.cli.common import (
    Commands,
    add_command,
    console,
    positive_number,
    print_json,
    print_result,
    reading,
    streaming,
)
from nnef_hw.errors import UsageError
from nnef_hw.system.files import atomic_file

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Declare the commands of this module."""
    sub = add_command(
        commands, "run", _run, "run a model, or a build's hardware, on inputs", "model"
    )
    sub.add_argument(
        "--on",
        choices=("float", "fixed", "rtl", "netlist", "device"),
        default="float",
        help="real numbers, the fixed-point model, a build's Verilog, the cells it is mapped to, "
        "or a board (default: float)",
    )
    sub.add_argument(
        "--port", help="serial port of the board; 'sim' simulates the board down to its pins"
    )
    sub.add_argument("--input", type=Path, required=True, metavar="X.npz")
    sub.add_argument("--output", type=Path, required=True, metavar="Y.npz")

    sub = add_command(commands, "sim", _sim, "run samples through a build's Verilog", "build")
    sub.add_argument(
        "--samples", type=Path, metavar="S.npz", help="inputs (default: random frames)"
    )
    sub.add_argument(
        "--wav",
        type=Path,
        metavar="FILE",
        help="play a file to the board's microphone (.wav) or sensor of motion (.wav, .csv, .npy); "
        "print the events on its pins",
    )
    sub.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="show the pictures of a folder (*.png) to the camera of the board; print what it sees",
    )
    sub.add_argument("--limit", type=int, metavar="N", help="use the first N samples")
    sub.add_argument(
        "--stall",
        type=float,
        default=0.0,
        metavar="P",
        help="probability per cycle that source and sink pause",
    )
    sub.add_argument("--trace", type=Path, metavar="OUT.fst", help="write a waveform (.fst, .vcd)")
    sub.add_argument(
        "--trace-frames",
        type=positive_number,
        metavar="N",
        help="trace the first N frames (default: 2)",
    )
    sub.add_argument(
        "--trace-layers",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAME,...",
        help="trace these layers only",
    )

    sub = add_command(
        commands, "compare", _compare, "compare float, fixed and RTL on samples", "build"
    )
    sub.add_argument("--samples", type=Path, required=True, metavar="S.npz")

    sub = add_command(commands, "report", _report, "put two builds side by side", "build")
    sub.add_argument("other", type=Path, metavar="OTHER", help="another build's folder")
    sub.add_argument("-o", "--output", type=Path, metavar="OUT.html", help="write a page, too")


def _run(options: argparse.Namespace) -> int:
    from nnef_hw.quantize.judgement.warnings import announce
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.executors import is_build, make_executor
    from nnef_hw.run.simulate import losses_of_build
    from nnef_hw.samples.samples import load_samples

    if not options.output.parent.is_dir():
        raise UsageError(f"there is no folder for the output {str(options.output)!r}")
    executor = make_executor(
        options.model,
        options.on,
        port=options.port,
        reading=reading(options),
        stream=streaming(options),
    )
    samples = load_samples(options.input, executor.graph)
    outputs = executor.run(samples.inputs)
    if samples.is_lone:
        outputs = {name: value[0] for name, value in outputs.items()}
    with atomic_file(options.output) as file:
        np.savez(file, **Fields(outputs))
    losses = []
    if options.on == "fixed" and is_build(options.model):
        losses = losses_of_build(BuildFolder.open(options.model), samples)
        announce(losses)
    if options.json:
        shapes = {name: list(value.shape) for name, value in outputs.items()}
        print_json({
            "on": options.on, "output": str(options.output), "shapes": shapes,
            "warnings": to_json(losses),
        })  # fmt: skip
    return 0


def _sim(options: argparse.Namespace) -> int:
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.simulate import require_exact, simulate

    if options.wav is not None:
        return _hear(options)
    if options.images is not None:
        return _see(options)
    found = simulate(
        BuildFolder.open(options.build),
        options.samples,
        limit=options.limit,
        stall=options.stall,
        trace=options.trace,
        trace_frames=options.trace_frames,
        trace_layers=options.trace_layers,
    )
    print_result(options, to_json(found))
    require_exact(found)
    return 0


def _hear(options: argparse.Namespace) -> int:
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.report.pages.sound import write_sound
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.hear import hear, require_heard

    hearing = hear(BuildFolder.open(options.build), options.wav)
    found, page = hearing.told, options.build / "sound.html"
    write_sound(hearing, page)
    if options.json:
        print_json({**to_json(found), "page": str(page)})
    else:
        for event in found.events:
            print(f"{event.seconds:.2f} s {event.name} {event.score:.2f}")
        print(
            f"{len(found.events)} events in {found.seconds:.2f} s of {found.medium}, "
            f"{found.steps} steps, "
            f"{found.lost} samples lost; "
            f"a step is computed in {found.duty:.1%} of the time between two; "
            f"{found.cycles:,} cycles, {found.cycles_per_second:,} per second"
        )
        print(f"waveforms, scores, events: {page}")
    require_heard(found)
    return 0


def _see(options: argparse.Namespace) -> int:
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.see import require_seen, see

    found = see(BuildFolder.open(options.build), options.images)
    if options.json:
        print_json(to_json(found))
    else:
        for picture in found.pictures:
            scores = ", ".join(f"{score:.3g}" for score in picture.scores)
            print(f"{picture.name}: {picture.number} ({scores}), computed {picture.times} times")
        for seconds, text in found.told:
            print(f"{seconds:.2f} s {text or 'pin'}")
        print(
            f"{len(found.pictures)} pictures, sent {found.sent} times, computed {found.computed} "
            f"times ({found.pictures_per_second:.1f} per second), {found.lost} lost; "
            f"{found.cycles:,} cycles, {found.cycles_per_second:,} per second"
        )
    require_seen(found)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from nnef_hw.quantize.judgement.warnings import announce
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.simulate import compare, require_equal

    found = compare(BuildFolder.open(options.build), options.samples)
    announce(found.warnings)
    result = to_json(found)
    print_result(options, result if options.json else {**result, "warnings": len(found.warnings)})
    require_equal(found.mismatches, found.samples)
    return 0


def _report(options: argparse.Namespace) -> int:
    from nnef_hw.report.beside import Side, beside_tables, put_beside, write_beside
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.run.artifacts import BuildFolder

    folders = options.build, options.other
    found = put_beside(*(BuildFolder.open(folder).read_report(Side.read) for folder in folders))
    names = str(folders[0]), str(folders[1])
    if options.output is not None:
        write_beside(found, names, options.output)
    if options.json:
        print_json({"builds": names, **to_json(found)})
    else:
        for table in beside_tables(found, names):
            console().print(table)
    return 0
