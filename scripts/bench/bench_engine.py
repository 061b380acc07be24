"""Measure the shared engine: cycles and use of its multipliers, by simulation.

The trained networks are read from NNEF_HW_ZOO (or a folder ``shared/zoo`` beside the repository);
those that are absent are left out. The first rows of a network are of arrays that are not chosen
for a board, with all in block RAM: docs/engine.md compares sizes. The last rows are of an
iCEBreaker with the model of its flash, whether the design fits or not, and of an ULX3S-85F with
that of its SDRAM, of networks whose engine reads it; the last number is of results per cycle.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from bench_mobilenet import mobilenet_v2
from bench_row import print_row
from rich.console import Console
from rich.table import Table

from nnef_hw.boards import Board, find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.engine.architecture import SharedArray
from nnef_hw.engine.hardware.accelerator import EngineAccelerator
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.memory.store import Store, stores
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.timing.residency import feeds
from nnef_hw.errors import TargetError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load, save
from nnef_hw.ir import Graph
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.memories import image_text, with_memories
from nnef_hw.run.rtl import run_rtl
from nnef_hw.samples.samples import Samples, load_samples

ROOT = Path(__file__).resolve().parents[2]
ZOO = Path(os.environ.get("NNEF_HW_ZOO", ROOT.parent / "shared" / "zoo"))
NETWORKS = (
    "mlperf_ic_resnet8", "mlperf_kws_dscnn", "mlperf_sww_ds1d", "mlperf_vww_mobilenetv1",
    "mlperf_ad_fcae", "mnist_lenet5", "mlperf_ic_resnet8_wide", "mobilenetv2",
)  # fmt: skip
SIZES = (Shape(4, 4), Shape(8, 8))
TARGET = find_board("ulx3s_85f")
RING_WORDS = (512, 256)
MEASURED = (
    "cycles", "use", "frames", "bit exact", "cycles predicted = simulated", "bytes from memory",
    "cycles waiting", "read",
)  # fmt: skip
# Board, clock, and the array that its multipliers make; or that which a build takes.
BOARDS = (
    (find_board("icebreaker"), 36.0, Shape(4, 4)),
    (find_board("ulx3s_85f"), 90.0, None),
)


def main() -> None:
    """Quantize, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=2, help="frames of each simulation")
    parser.add_argument("--batch", type=int, default=1, help="frames of a batch, from memories")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("names", nargs="*", help="only these networks")
    options = parser.parse_args()

    table = Table("network", "array", *MEASURED, title="Shared engine", title_justify="left")
    for name in options.names or NETWORKS:
        if name != "mobilenetv2" and not (ZOO / name / "model.nnef.tgz").exists():
            continue
        path, samples = fixed_network(name, options.out)
        graph = load(path)
        frames = samples[np.arange(options.frames) % len(samples)]
        for size in SIZES:
            print(f"{name}, {size.rows} x {size.lanes}...", flush=True)
            cells = _measure(_sized(graph, size), graph, frames)
            print_row(MEASURED, cells)
            table.add_row(name, f"{size.rows} x {size.lanes}", *cells)
        for board, clock_mhz, size in BOARDS:
            for store in stores(board, clock_mhz):
                print(f"{name}, {board.name}, {store.command}...", flush=True)
                plan = (
                    schedule_engine(graph, board, clock_mhz=clock_mhz, batch=options.batch)
                    if size is None
                    else _from_memory(graph, board, size, store, options.batch)
                )
                if plan.design.store is None:
                    continue
                cells = _measure(plan, graph, frames)
                print_row(MEASURED, cells)
                shape = plan.design.shape
                array = f"{board.name}, {shape.rows} x {shape.lanes}, {shape.results}"
                table.add_row(name, array, *cells)
    Console(width=160).print(table)


def fixed_network(name: str, folder: Path) -> tuple[Path, Samples]:
    """Return the file of a network's fixed graph, quantized once, and its samples."""
    if name == "mobilenetv2":
        # At 0.35 of its width, 10,656,688 products.
        model, samples = mobilenet_v2(16, (8, 8, 16, 24, 32, 56, 112), 1280, 2)
    else:
        model = load(ZOO / name / "model.nnef.tgz")
        samples = load_samples(ZOO / name / "samples.npz", model)
    path = folder / f"{name}-fixed.nnef.tgz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        save(fix_model(model, samples)[0], path)
    return path, samples


def _sized(graph: Graph, size: Shape) -> EnginePlan:
    return EnginePlan.of(Design(lower(graph, TARGET.device), size, TARGET.device), TARGET, None)


def _from_memory(
    graph: Graph, board: Board, size: Shape, store: Store, batch: int = 1
) -> EnginePlan:
    network = lower(graph, board.device)
    designs = [
        Design(network, size, board.device, words, store, batch=batch) for words in RING_WORDS
    ]

    def planned(design: Design) -> EnginePlan:
        return EnginePlan.of(design, board, store.clock_mhz)

    def fits(design: Design) -> bool:
        return planned(design).resources.bram <= board.device.bram

    plans = (
        planned(trial) for design in designs if _has_room(design) for trial in feeds(design, fits)
    )
    return min(plans, key=lambda plan: plan.interval)


def _has_room(design: Design) -> bool:
    """Whether every pass of the network has room in the ring."""
    try:
        return bool(design.program.parts)
    except TargetError:
        return False


def _measure(plan: EnginePlan, graph: Graph, samples: Samples) -> list[str]:
    codes = quantize_inputs(graph, samples.inputs)
    verilog, top = to_verilog(EngineAccelerator(plan)), "top"
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
        moved = ["", "", ""]
        for stored in plan.images:
            path = Path(scratch) / "memory.hex"
            path.write_text(image_text(stored))
            verilog, top = with_memories(verilog, plan, top, path)
            stalled = sum(span.stalled for span in plan.spans)
            moved = [
                f"{2 * plan.design.packets.frame_words // plan.batch:,}",
                f"{stalled // plan.batch:,}", stored.read,
            ]  # fmt: skip
        run = run_rtl(verilog, plan, graph, codes, top=top)
    expected = run_fixed(graph, codes)
    is_exact = all((run.codes[name] == found).all() for name, found in expected.items())
    interval = SharedArray().predict_interval(plan, len(samples))
    is_predicted = (run.interval, run.latency) == (interval, plan.latency)
    return [
        f"{plan.interval:,}", f"{plan.mac_utilization:.1%}", str(len(samples)),
        "yes" if is_exact else "NO", "equal" if is_predicted else "DIFFERENT", *moved,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
