"""Measure what the README claims: ``make bench`` builds the networks and prints the tables.

The trained networks are read from NNEF_HW_ZOO (or a folder ``shared/zoo`` beside the repository);
those that are absent are left out. Builds are cached below ``build/bench``.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench_engine import fixed_network
from bench_row import print_row
from rich.console import Console
from rich.table import Table

from nnef_hw.build.options import BuildOptions
from nnef_hw.build.pipeline import build
from nnef_hw.engine.solver import schedule_engine
from nnef_hw.errors import NnefHwError
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulate import random_codes
from nnef_hw.samples import load_samples
from nnef_hw.streaming import find_board, schedule

ROOT = Path(__file__).resolve().parent.parent
ZOO = Path(os.environ.get("NNEF_HW_ZOO", ROOT.parent / "shared" / "zoo"))
DIGITS = ROOT / "examples" / "digits_cnn"
QUICK = [
    ("digits_cnn", "icebreaker"),
    ("tflm_hello_world", "icebreaker"),
    ("digits_mlp", "icebreaker"),
    ("mnist_tiny_cnn", "icebreaker"),
    ("jvowels_conv1d_tanh", "icebreaker"),
    ("mnist_lenet5", "icebreaker"),
]
# And these at the fastest clock that is found.
FASTEST = [("digits_cnn", "icebreaker"), ("mnist_tiny_cnn", "icebreaker")]
FULL = [*QUICK, ("mnist_lenet5", "ulx3s_85f")]
LARGE = [
    (name, "ulx3s_85f") for name in ("mlperf_ic_resnet8", "mlperf_kws_dscnn", "mlperf_sww_ds1d")
]
LARGE_CLOCK = 90.0


class Engine(NamedTuple):
    """A network on the shared engine.

    Attributes
    ----------
    frames
        Those that are simulated.
    """

    name: str
    board: str
    clock_mhz: float
    batch: int
    frames: int
    target_fps: float | None = None
    seeds: int = 1


ENGINES = (
    Engine("mlperf_ic_resnet8", "icebreaker", 36.0, 1, 100),
    Engine("mlperf_kws_dscnn", "icebreaker", 36.0, 1, 200),
    Engine("mlperf_sww_ds1d", "icebreaker", 36.0, 1, 45),
    Engine("mlperf_vww_mobilenetv1", "icebreaker", 36.0, 1, 20),
    Engine("mlperf_ad_fcae", "icebreaker", 36.0, 16, 64),
    Engine("mlperf_ic_resnet8_wide", "icebreaker", 36.0, 1, 20),
    Engine("mlperf_ic_resnet8_wide", "ulx3s_85f", 70.0, 2, 20),
    Engine("mobilenetv2", "ulx3s_85f", 72.9167, 10, 10, target_fps=600.0, seeds=2),
)
TANG = [
    (name, board)
    for board in ("tang_nano_20k", "tang_nano_9k")
    for name in (
        "digits_cnn", "mnist_tiny_cnn", "digits_mlp", "tflm_hello_world", "jvowels_conv1d_tanh",
        "mnist_lenet5", "mlperf_sww_ds1d", "mlperf_kws_dscnn",
    )
]  # fmt: skip


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="without the ECP5 builds")
    parser.add_argument(
        "--large", action="store_true", help=f"only MLPerf Tiny's, at {LARGE_CLOCK:g} MHz: an hour"
    )
    parser.add_argument("--tang", action="store_true", help="only the Tang Nanos: two hours")
    parser.add_argument(
        "--engine", action="store_true", help="only the shared engine's, two of an ECP5: two hours"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("names", nargs="*", help="only these networks")
    options = parser.parse_args()

    rows = []
    for name, asked in _engines(options.out) if options.engine else _streams(options):
        if (options.names and name not in options.names) or not asked.model.exists():
            continue
        print(f"{name} on {asked.board}...", flush=True)
        rows.append(_measure(name, asked))
        if "refused" in rows[-1]:
            print(f"  refused: {rows[-1]['refused']}", flush=True)
            continue
        for columns in TABLES.values():
            print_row(columns, _cells(columns, rows[-1]))
    console = Console(width=200)
    print(f"\nMeasured on {_machine()}.\n")
    for title, columns in TABLES.items():
        console.print(_table(title, columns, rows))


def _streams(options: argparse.Namespace) -> Iterator[tuple[str, BuildOptions]]:
    """Yield what streams: a network's name, and how it is built."""
    clock = LARGE_CLOCK if options.large else None
    builds = LARGE if options.large else TANG if options.tang else FULL
    builds = QUICK if options.quick else builds
    for name, board, fastest in [
        *((*names, False) for names in builds),
        *((*names, True) for names in FASTEST if not (options.large or options.tang)),
    ]:
        model, samples = _files(name)
        yield name, BuildOptions(
            model=model, board=board, calibrate=samples, clock_mhz=clock, fastest=fastest,
            frames="all",
            out=options.out / f"{name}-{board}{'-fastest' if fastest else ''}",
        )  # fmt: skip


def _engines(out: Path) -> Iterator[tuple[str, BuildOptions]]:
    """Yield what runs on shared engines, in the same way."""
    for engine in ENGINES:
        name, board = engine.name, engine.board
        model, samples = _files(name)
        if name == "mobilenetv2":
            # of random weights: quantized already, and fed with random codes
            model, samples = fixed_network(name, out)[0], None
        yield name, BuildOptions(
            model=model, board=board, calibrate=samples, clock_mhz=engine.clock_mhz,
            arch="engine", batch=engine.batch, frames=engine.frames, seeds=engine.seeds,
            target_fps=engine.target_fps, out=out / f"{name}-{board}-engine",
        )  # fmt: skip


def _files(name: str) -> tuple[Path, Path]:
    if name == "digits_cnn":
        return DIGITS / "digits_cnn.nnef.tgz", DIGITS / "samples.npz"
    return ZOO / name / "model.nnef.tgz", ZOO / name / "samples.npz"


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
        **report,
        "again": again,
        "schedule": _schedule_seconds(options),
        "reference": _reference_speed(options),
    }


def _schedule_seconds(options: BuildOptions) -> float:
    """Return CPU seconds from a quantized graph to a Plan."""
    graph, board = BuildFolder.open(options.out).fixed, find_board(options.board)
    begin = time.process_time()
    if options.arch == "engine":
        schedule_engine(graph, board, clock_mhz=options.clock_mhz, batch=options.batch)
    else:
        schedule(graph, board)
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


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    return f"{os.cpu_count()} cores of {cpu}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
