"""The files of a build that follow from model and plan alone."""

from __future__ import annotations

import json
from pathlib import Path

import nnef_hw
from nnef_hw.boards import Board
from nnef_hw.build.options import BuildOptions
from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.board import design_board
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.ip import axi_wrapper, fusesoc_core
from nnef_hw.codegen.manifest import link_entry, make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.devices import Target
from nnef_hw.frontend import save
from nnef_hw.ir import Graph
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import FIXED_MODEL, FLOAT_MODEL
from nnef_hw.run.rtl import payloads
from nnef_hw.run.simulate import random_codes
from nnef_hw.samples import Samples
from nnef_hw.schedule import Plan
from nnef_hw.sim.cocotb_bench import write_bench

__all__ = ["emit"]

BENCH_FRAMES = 4
IP_NAME = "accelerator_axis"


def emit(
    folder: Path,
    fixed: Graph,
    canonical: Graph | None,
    plan: Plan,
    samples: Samples | None,
    target: Target,
    options: BuildOptions,
) -> None:
    """Write models, manifest, plan, Verilog and bench; and the board's top, or the IP's wrapper."""
    save(fixed, folder / FIXED_MODEL)
    if canonical is not None:
        save(canonical, folder / FLOAT_MODEL)
    kind = options.link if isinstance(target, Board) else "axi4-stream"
    manifest = make_manifest(
        fixed,
        plan,
        generator=f"nnef-hw {nnef_hw.__version__}",
        link=link_entry(kind, options.baud),
    )
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    (folder / "plan.json").write_text(plan.dumps())
    (folder / "rtl").mkdir()
    comments = module_comments(plan, fixed)
    verilog = to_verilog(Accelerator(plan, fixed), comments=comments)
    (folder / "rtl" / "top.v").write_text(verilog)

    if samples is None:
        codes = random_codes(fixed, BENCH_FRAMES)
    else:
        codes = quantize_inputs(fixed, samples[:BENCH_FRAMES].inputs)
    fed = payloads(fixed.inputs, plan.inputs, codes)
    expected = payloads(fixed.outputs, plan.outputs, run_fixed(fixed, codes))
    write_bench(folder / "sim", {**fed, **expected})

    if not isinstance(target, Board):
        (folder / "ip").mkdir()
        (folder / "ip" / f"{IP_NAME}.v").write_text(axi_wrapper(plan, IP_NAME))
        (folder / "ip" / f"{IP_NAME}.core").write_text(fusesoc_core(plan, IP_NAME))
        return
    board = design_board(plan, fixed, manifest, target)
    (folder / "board").mkdir()
    (folder / "board" / "board_top.v").write_text(board.verilog)
    (folder / "board" / f"board_top.{board.suffix}").write_text(board.constraints)
