"""Measure what the README claims: ``make bench`` builds the networks and prints the tables.

The trained networks are read from NNEF_HW_ZOO (or a folder ``shared/zoo`` beside the repository);
those that are absent are left out. Builds are cached below ``build/bench``. Every row is written
into ``docs/measured/``, and the tables of README.md and of the documentation are made of these.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_builds import SETS
from bench_row import print_row
from measured import ROOT, design_digest, machine, measured, read, record
from measured_pages import write_pages
from rich.console import Console
from rich.table import Table

from nnef_hw.boards import find_board
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.errors import NnefHwError
from nnef_hw.flow.compilation import compile_design
from nnef_hw.flow.options import BuildOptions, check_options
from nnef_hw.flow.pipeline import build
from nnef_hw.flow.steps import Steps
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report.model.conversion import to_json
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulate import random_codes
from nnef_hw.samples.samples import load_samples
from nnef_hw.streaming.search.solver import schedule


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.set_defaults(name="full")
    for name, (description, _) in SETS.items():
        parser.add_argument(
            f"--{name}", action="store_const", dest="name", const=name, help=description
        )
    parser.add_argument(
        "--refresh-old", action="store_true", help="only rows whose netlist is another one today"
    )
    parser.add_argument(
        "--mark-old", action="store_true", help="measure nothing: mark rows with another netlist"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("names", nargs="*", help="only these networks")
    options = parser.parse_args()

    rows = []
    known = read()
    for one in SETS[options.name][1]:
        asked = one.options(options.out)
        if (options.names and one.network not in options.names) or not asked.model.exists():
            continue
        print(f"{one.label} on {asked.board}...", flush=True)
        recorded = known.get(one.key)
        if recorded and (options.refresh_old or options.mark_old):
            is_old = recorded.design != _design(asked)
            record(replace(recorded, old=is_old))
            print("  is another one" if is_old else "  as it was", flush=True)
            if options.mark_old or not is_old:
                continue
        elif options.mark_old:
            print("  was not measured")
            continue
        rows.append(_measure(one.label, asked))
        if "refused" in rows[-1]:
            print(f"  refused: {rows[-1]['refused']}", flush=True)
            continue
        record(measured(one.key, BuildFolder.open(asked.out)))
        for columns in TABLES.values():
            print_row(columns, _cells(columns, rows[-1]))
    console = Console(width=200)
    print(f"\nMeasured on {machine()}.\n")
    for title, columns in TABLES.items():
        console.print(_table(title, columns, rows))
    write_pages()


def _measure(name: str, options: BuildOptions) -> dict[str, Any]:
    row: dict[str, Any] = {"network": name, "board": options.board}
    try:
        report = build(options)
    except NnefHwError as error:
        return {**row, "refused": str(error)}
    begin = time.perf_counter()
    build(options)
    again = time.perf_counter() - begin
    return {
        **row,
        **to_json(report),
        "again": again,
        "schedule": _schedule_seconds(options, report.arch),
        "reference": _reference_speed(options),
    }


def _design(options: BuildOptions) -> str:
    """Return the digest of what a build makes today."""
    options.out.mkdir(parents=True, exist_ok=True)
    compile_design(options, check_options(options), lambda _: None, Steps(options.out))
    return design_digest(options.out)


def _schedule_seconds(options: BuildOptions, arch: str) -> float:
    """Return CPU seconds from a quantized graph to a plan of the architecture that was taken."""
    graph, board = BuildFolder.open(options.out).fixed, find_board(options.board)
    begin = time.process_time()
    asked = {"clock_mhz": options.clock_mhz, "target_fps": options.target_fps}
    if arch == "engine":
        schedule_engine(graph, board, **asked, batch=options.batch)
    else:
        schedule(graph, board, **asked)
    return time.process_time() - begin


def _reference_speed(options: BuildOptions) -> float:
    """Return samples per second of the fixed reference."""
    graph = BuildFolder.open(options.out).fixed
    codes = random_codes(graph)
    if options.calibrate is not None:
        codes = quantize_inputs(graph, load_samples(options.calibrate, graph).inputs)
    begin = time.perf_counter()
    run_fixed(graph, codes)
    return len(codes[graph.inputs[0]]) / (time.perf_counter() - begin)


def _use(name: str) -> Any:
    return lambda row: "{used}/{available}".format(**row["resources"][name])


def _error(name: str) -> Any:
    def text(row: dict[str, Any]) -> str:
        used, estimated = (row["resources"][name][key] for key in ("used", "estimated"))
        return f"{estimated} ({estimated / used - 1:+.1%})" if used else f"{estimated}"

    return text


def _accuracy(row: dict[str, Any]) -> str:
    scores = row["accuracy"]
    if scores is None:
        return ""
    if scores["metric"] == "mae":
        return "mae {float:.4f} / {fixed:.4f} / {rtl:.4f}".format(**scores)
    return "{float:.2%} / {fixed:.2%} / {rtl:.2%}".format(**scores)


def _prediction(row: dict[str, Any]) -> str:
    run = row["simulation"]
    keys = ("cycles_per_inference", "latency_cycles")
    return "equal" if all(run[key] == run[f"predicted_{key}"] for key in keys) else "DIFFERENT"


TABLES = {
    "Accelerators": {
        "II (cycles)": lambda row: f"{row['cycles_per_inference']:,}",
        "latency": lambda row: f"{row['latency_cycles']:,}",
        "MACs": lambda row: f"{row['macs']:,}",
        "multipliers": lambda row: str(row["multipliers"]),
        "mac_utilization": lambda row: f"{row['mac_utilization']:.3f}",
        "clock MHz": lambda row: f"{row['clock_mhz']:g}",
        "fmax MHz": lambda row: f"{row['fmax_mhz']:.1f}",
        "inferences/s": lambda row: f"{row['inferences_per_second']:,.0f}",
        "over UART": lambda row: f"{row['link_inferences_per_second']:,.1f}",
    },
    "Exactness": {
        "frames": lambda row: f"{row['simulation']['frames']:,}",
        "bit exact": lambda row: "yes" if row["simulation"]["bit_exact"] else "NO",
        "cycles predicted = simulated": _prediction,
        "float / fixed / rtl": _accuracy,
        "evaluated on": lambda row: str(row["accuracy"]["samples"]) if row["accuracy"] else "",
    },
    "Resources": {
        "LUT": _use("lut"),
        "LUT estimate": _error("lut"),
        "FF": _use("ff"),
        "FF estimate": _error("ff"),
        "DSP": _use("dsp"),
        "DSP estimate": _error("dsp"),
        "block RAM": _use("bram"),
        "block RAM estimate": _error("bram"),
    },
    "Speed of the tools": {
        "simulation Mcycles/s": lambda row: f"{row['simulation']['cycles_per_second'] / 1e6:.2f}",
        "fixed reference samples/s": lambda row: f"{row['reference']:,.0f}",
        "build s": lambda row: f"{row['seconds']['total']:.0f}",
        "schedule CPU s": lambda row: f"{row['schedule']:.1f}",
        "of it compile": lambda row: f"{row['seconds']['compile']:.1f}",
        "simulate": lambda row: f"{row['seconds']['simulate']:.1f}",
        "yosys": lambda row: f"{row['seconds']['yosys']:.1f}",
        "nextpnr": lambda row: f"{row['seconds']['nextpnr']:.1f}",
        "same build again s": lambda row: f"{row['again']:.1f}",
    },
}  # fmt: skip


def _table(title: str, columns: dict[str, Any], rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("network", "board", *columns):
        table.add_column(heading)
    for row in rows:
        cells = ["refused"] if "refused" in row else _cells(columns, row)
        table.add_row(row["network"], row["board"], *cells)
    return table


def _cells(columns: dict[str, Any], row: dict[str, Any]) -> list[str]:
    return [value(row) for value in columns.values()]


if __name__ == "__main__":
    main()
