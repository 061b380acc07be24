"""The command line: arguments only; every command is a function elsewhere."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import nnef_hw
from nnef_hw.errors import ErrorGroup, NnefHwError, UsageError

__all__ = ["main"]

PIPE_WIDTH = 120

Command = Callable[[argparse.Namespace], int]


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
    options = parser.parse_args(arguments)
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


def _check(options: argparse.Namespace) -> int:
    from nnef_hw.report.models import check_file, check_verdict

    result = check_file(options.model, **_reading(options))
    if options.json:
        _print_json(result)
    else:
        for problem in result["problems"]:
            print(f"nnef-hw: {problem}", file=sys.stderr)
        print(check_verdict(options.model, result))
    return 2 if result["problems"] else 0


def _inspect(options: argparse.Namespace) -> int:
    from nnef_hw.report.models import inspect_file, print_inspection

    description = inspect_file(options.model, **_reading(options))
    if options.json:
        _print_json(description)
    else:
        print_inspection(description, _console())
    return 0


def _convert(options: argparse.Namespace) -> int:
    from nnef_hw.frontend import load, save
    from nnef_hw.frontend.nnef.expand import expand_compounds
    from nnef_hw.ir import Stage
    from nnef_hw.passes import UnrollScan

    graph = UnrollScan()(load(options.model, **_reading(options)))
    if options.expand:
        if graph.stage != Stage.FLOAT:
            raise UsageError(
                f"{str(options.model)!r} is quantized: its operators are those of the hardware",
                remedy="leave out --expand, or expand the float model",
            )
        graph = expand_compounds(graph)
    save(graph, options.output)
    if options.json:
        _print_json({"output": options.output})
    return 0


def _run(options: argparse.Namespace) -> int:
    from nnef_hw.run.executors import make_executor
    from nnef_hw.samples import load_samples

    if not options.output.parent.is_dir():
        raise UsageError(f"there is no folder for the output {str(options.output)!r}")
    executor = make_executor(options.model, options.on, **_reading(options))
    samples = load_samples(options.input, executor.graph)
    outputs = executor.run(samples.inputs)
    _write_npz(options.output, outputs)
    if options.json:
        shapes = {name: list(value.shape) for name, value in outputs.items()}
        _print_json({"on": options.on, "output": str(options.output), "shapes": shapes})
    return 0


def _quantize(options: argparse.Namespace) -> int:
    from nnef_hw.build.pipeline import fix_model
    from nnef_hw.frontend import graph_hash, load, save
    from nnef_hw.samples import load_samples

    graph = load(options.model, **_reading(options))
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    fixed, _ = fix_model(graph, samples, _scheme(options))
    save(fixed, options.output)
    if options.json:
        used = 0 if samples is None else len(samples.split()[0])
        _print_json({
            "model": graph.name,
            "output": options.output,
            "calibration_samples": used,
            "hash": graph_hash(fixed),
        })
    return 0


def _build(options: argparse.Namespace) -> int:
    from nnef_hw.build.pipeline import BuildOptions, build
    from nnef_hw.report import print_report

    path = options.model.resolve()
    name = path.name.split(".")[0]
    wanted = BuildOptions(
        model=options.model,
        board=options.board,
        out=options.out or Path("build") / (name if name != "model" else path.parent.name),
        calibrate=options.calibrate,
        clock_mhz=options.freq,
        target_fps=options.target_fps,
        arch=options.arch,
        bitstream=not options.no_bitstream,
        scheme=_scheme(options),
        **_reading(options),
    )
    errors = Console(stderr=True)
    with errors.status("starting") as status:
        report = build(wanted, lambda step: status.update(step))
    if options.json:
        _print_json(report)
    else:
        print_report(report, _console())
        print(f"report: {wanted.out / 'report.html'}")
    if report["timing_met"] is False:
        print(
            f"nnef-hw: timing is not met: {report['fmax_mhz']:.2f} MHz of "
            f"{report['clock_mhz']:g} MHz; give a lower --freq",
            file=sys.stderr,
        )
        return 1
    return 0


def _sim(options: argparse.Namespace) -> int:
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.simulate import require_exact, simulate

    row = simulate(
        BuildFolder.open(options.build),
        options.samples,
        limit=options.limit,
        stall=options.stall,
        trace=options.trace,
    )
    _print_result(options, row)
    require_exact(row)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.simulate import compare, require_equal

    result = compare(BuildFolder.open(options.build), options.samples)
    _print_result(options, result)
    require_equal(result["mismatches"], result["samples"])
    return 0


def _boards(options: argparse.Namespace) -> int:
    from nnef_hw.schedule import TARGETS

    rows = [
        {
            "name": target.name,
            "title": target.title,
            "aliases": list(target.aliases),
            "device": target.device.name,
            "clock_mhz": target.clock_mhz,
            "lut": target.device.lut,
            "multipliers": target.device.products,
            "bram_bytes": target.device.ram_bytes,
        }
        for target in TARGETS
    ]
    _print_rows(options, "boards", rows)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from nnef_hw.tools import doctor

    rows = [asdict(status) for status in doctor()]
    _print_rows(options, "tools", rows)
    return 0 if all(row["found"] for row in rows) else 3


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, sort_keys=True, allow_nan=False))


def _print_result(options: argparse.Namespace, result: dict[str, Any]) -> None:
    from nnef_hw.report.tables import result_tables

    if options.json:
        _print_json(result)
    else:
        for table in result_tables(result):
            _console().print(table)


def _print_rows(options: argparse.Namespace, title: str, rows: list[dict[str, Any]]) -> None:
    from nnef_hw.report.tables import rows_table

    if options.json:
        _print_json({title: rows})
    else:
        _console().print(rows_table(rows))


def _console() -> Console:
    """Return standard output; in a pipe it has room for whole tables."""
    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            np.savez(file, **arrays)
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"output {str(path)!r} cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nnef-hw",
        description="Turn a trained neural network into a bit-exact FPGA accelerator.",
        epilog="Exit status: 0 fine, 1 a check failed, 2 wrong input or arguments, 3 a tool "
        "is missing or broke.",
    )
    parser.add_argument("--version", action="version", version=f"nnef-hw {nnef_hw.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Command, summary: str, model: str = "") -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=summary, description=summary[:1].upper() + summary[1:])
        sub.set_defaults(command=command)
        sub.add_argument(
            "--json", action="store_true", help="print one JSON object and nothing else"
        )
        if model:
            kinds = "NNEF archive, folder, ONNX file" if model == "model" else "a build's folder"
            sub.add_argument(model, type=Path, metavar=model.upper(), help=kinds)
        if model == "model":
            _add_reading(sub)
        return sub

    add("check", _check, "is the model valid, and can it be built?", "model")
    add("inspect", _inspect, "show layers, shapes, parameters and MACs", "model")

    sub = add("convert", _convert, "write the model as flat, canonical NNEF", "model")
    sub.add_argument(
        "output", metavar="OUT", help="NAME.nnef.tgz, NAME.nnef.tar, or NAME/ for a folder"
    )
    sub.add_argument(
        "--expand", action="store_true", help="replace compound operators by primitive ones"
    )

    sub = add("run", _run, "run a model, or a build's hardware, on inputs", "model")
    sub.add_argument(
        "--on",
        choices=("float", "fixed", "rtl"),
        default="float",
        help="real numbers, the fixed-point model, or a build's Verilog (default: float)",
    )
    sub.add_argument("--input", type=Path, required=True, metavar="X.npz")
    sub.add_argument("--output", type=Path, required=True, metavar="Y.npz")

    sub = add(
        "quantize", _quantize, "turn a float model into the integers of the hardware", "model"
    )
    sub.add_argument("--calibrate", type=Path, metavar="S.npz", help="representative inputs")
    sub.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="NAME.nnef.tgz, or NAME/ for a folder"
    )
    _add_widths(sub)

    sub = add("build", _build, "build the accelerator, simulate it, make the bitstream", "model")
    sub.add_argument("--board", required=True, help="see nnef-hw boards")
    sub.add_argument("--calibrate", type=Path, metavar="S.npz", help="representative inputs")
    sub.add_argument("--arch", choices=("auto", "streaming"), default="auto")
    sub.add_argument("--freq", type=float, metavar="MHZ", help="clock (default: the board's)")
    sub.add_argument(
        "--target-fps",
        type=float,
        metavar="N",
        help="the smallest design that reaches N per second",
    )
    _add_widths(sub)
    sub.add_argument("--no-bitstream", action="store_true", help="stop before synthesis")
    sub.add_argument("--out", type=Path, metavar="DIR", help="default: build/MODEL")

    sub = add("sim", _sim, "run samples through a build's Verilog", "build")
    sub.add_argument("--samples", type=Path, metavar="S.npz", help="default: random frames")
    sub.add_argument("--limit", type=int, metavar="N", help="use the first N samples")
    sub.add_argument(
        "--stall",
        type=float,
        default=0.0,
        metavar="P",
        help="probability per cycle that source and sink pause",
    )
    sub.add_argument("--trace", type=Path, metavar="OUT.fst", help="write a waveform (.fst, .vcd)")

    sub = add("compare", _compare, "compare float, fixed and RTL on samples", "build")
    sub.add_argument("--samples", type=Path, required=True, metavar="S.npz")

    add("boards", _boards, "list the boards")
    add("doctor", _doctor, "check the external tools")
    return parser


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dim",
        type=_dim,
        action="append",
        default=[],
        metavar="NAME=N",
        help="value of a symbol in the model's shapes, e.g. B=1 (repeatable)",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="take legacy NNEF: what 1.0 and its drafts allowed and 1.0.5 does not",
    )


def _dim(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name or not value.isdecimal() or not int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N with a positive N")
    return name, int(value)


def _reading(options: argparse.Namespace) -> dict[str, Any]:
    """Return how to read the model, as :func:`nnef_hw.frontend.load` takes it."""
    dims: dict[str, int] = {}
    for name, value in options.dim:
        if dims.setdefault(name, value) != value:
            raise UsageError(f"--dim {name} is given as {dims[name]} and as {value}")
    return {"dims": dims, "lenient": options.lenient}


def _add_widths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weight-bits", type=int, default=8, metavar="N", help="2..8 (default: 8)")
    parser.add_argument(
        "--activation-bits", type=int, default=8, metavar="N", help="2..16 (default: 8)"
    )


def _scheme(options: argparse.Namespace) -> Any:
    from nnef_hw.quantize import Scheme

    try:
        return Scheme(weight_bits=options.weight_bits, activation_bits=options.activation_bits)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("Scheme ")) from error


if __name__ == "__main__":
    sys.exit(main())
