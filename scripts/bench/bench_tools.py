"""How much CPU time the tools take, up to a compiled simulation: ``make bench-tools``.

CPU seconds of the process and its children, so that a busy machine matters less. Trained networks
are read from NNEF_HW_ZOO (or a folder ``shared/zoo`` beside the repository); those that are absent
are left out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_mobilenet import mobilenet_v2
from bench_row import print_row
from rich.console import Console
from rich.table import Table

from nnef_hw.boards import find_board
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import NnefHwError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.ir import Graph
from nnef_hw.passes import simplify
from nnef_hw.samples.samples import Samples, load_samples
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.streaming.beats.beats import simulate_beats
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

ROOT = Path(__file__).resolve().parents[2]
ZOO = Path(os.environ.get("NNEF_HW_ZOO", ROOT.parent / "shared" / "zoo"))
CASES = [
    ("mnist_lenet5", "ulx3s_85f"),
    ("mlperf_kws_dscnn", "ulx3s_85f"),
    ("mlperf_sww_ds1d", "ulx3s_85f"),
    ("mlperf_ic_resnet8", "ulx3s_85f"),
    ("mlperf_vww_mobilenetv1", "ulx3s_85f"),
    ("mlperf_vww_mobilenetv1", "icebreaker"),
    ("mobilenetv2", "ulx3s_85f"),
]


def read(name: str) -> tuple[Graph, Samples | None]:
    """Return a network and its samples."""
    if name == "mobilenetv2":
        return mobilenet_v2(8, (4, 8, 8, 16, 24, 40, 80), 160, 10)
    graph = load(ZOO / name / "model.nnef.tgz")
    return graph, load_samples(ZOO / name / "samples.npz", graph)


def main() -> None:
    """Measure each network in a process of its own; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plan", action="store_true", help="only up to the beat times")
    parser.add_argument("names", nargs="*", help="only these networks")
    options = parser.parse_args()
    rows = []
    for name, board in CASES:
        absent = name != "mobilenetv2" and not (ZOO / name).exists()
        if absent or (options.names and name not in options.names):
            continue
        print(f"{name} on {board}...", flush=True)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context) as process:
            rows.append(process.submit(measure, name, board, options.plan).result())
        print_row(COLUMNS, _cells(rows[-1]))
        if "refused" in rows[-1]:
            print(f"  refused: {rows[-1]['refused']}", flush=True)
    table = Table(title="CPU seconds, and the most memory in MB", title_justify="left")
    for heading in COLUMNS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*_cells(row))
    Console(width=160).print(table)


def _cells(row: dict[str, Any]) -> list[str]:
    return [text(row) if name in row else "" for name, text in COLUMNS.items()]


def _seconds(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: f"{row[name]:.1f}"


COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "network": lambda row: str(row["network"]),
    "layers": lambda row: str(row["layers"]),
    "board": lambda row: str(row["board"]),
    "II": lambda row: f"{row['II']:,}",
    "load": _seconds("load"),
    "quantize": _seconds("quantize"),
    "solve": _seconds("solve"),
    "one run of beats": _seconds("one run of beats"),
    "memory": lambda row: f"{row['memory']:.0f}",
    "Verilog": _seconds("Verilog"),
    "MB of it": lambda row: f"{row['MB of it']:.1f}",
    "Verilator": _seconds("Verilator"),
}


def measure(name: str, board: str, plan_only: bool) -> dict[str, Any]:
    """Return what one network takes; memory is that of this process up to the beat times."""
    row: dict[str, Any] = {"network": name, "board": board}
    with _timed(row, "load"):
        graph, samples = read(name)
        simple = simplify(graph)
    with _timed(row, "quantize"):
        fixed, _ = fix_model(simple, samples)
    row["layers"] = len(fixed.nodes)
    _reset_memory()
    try:
        with _timed(row, "solve"):
            plan = schedule(fixed, find_board(board))
    except NnefHwError as error:
        return {**row, "memory": _memory(), "refused": str(error)}
    row["layers"], row["II"] = len(plan.blocks), plan.interval
    with _timed(row, "one run of beats"):
        simulate_beats(plan.blocks, plan.inputs, plan.outputs)
    row["memory"] = _memory()
    if plan_only:
        return row
    with _timed(row, "Verilog"):
        verilog = to_verilog(Accelerator(plan, fixed), comments=module_comments(plan, fixed))
    row["MB of it"] = len(verilog) / 1e6
    names = [[port.name for port in ports] for ports in (plan.inputs, plan.outputs)]
    with tempfile.TemporaryDirectory() as cache, _timed(row, "Verilator"):
        FastRunner(verilog, inputs=names[0], outputs=names[1], cache_dir=Path(cache))
    return row


@contextmanager
def _timed(row: dict[str, Any], name: str) -> Iterator[None]:
    """Note the CPU seconds of what is done here; also if it fails."""
    begin = _cpu_seconds()
    try:
        yield
    finally:
        row[name] = _cpu_seconds() - begin


def _cpu_seconds() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))


def _reset_memory() -> None:
    """Forget the most memory so far, where the system can: on Linux."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


def _memory() -> float:
    """Return the most memory in MB since then."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1e3


if __name__ == "__main__":
    main()
