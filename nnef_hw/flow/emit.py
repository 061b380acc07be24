"""The files of a build that follow from model and plan alone."""

from __future__ import annotations

import json
from pathlib import Path

import nnef_hw
from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.architectures import find_architecture
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.boards import Board
from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.codegen.board import BoardDesign, design_board, link_clock
from nnef_hw.codegen.bus import bus_files, bus_registers
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.fusesoc import axi_testbench, fusesoc_core, ip_readme
from nnef_hw.codegen.header import HEADER, model_header
from nnef_hw.codegen.ip import AXI_CLOCK, axi_wrapper, ip_name
from nnef_hw.codegen.ipxact import COMPONENT, component_xml
from nnef_hw.codegen.layer_cache import convert_layers
from nnef_hw.codegen.links import bind_link
from nnef_hw.codegen.lint import lint_waivers
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.vendors import clock_constraint
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow.clock import asked_clock
from nnef_hw.flow.language_models import bind_loop
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.sinks import bind_sinks
from nnef_hw.flow.sources import bind_sources
from nnef_hw.flow.weights import copy_board
from nnef_hw.frontend import save
from nnef_hw.hardware.devices import Target
from nnef_hw.host.manifest import HEX_IMAGE, IMAGE, MODULE, PROGRAM, read_manifest
from nnef_hw.host.streams import fill_batch
from nnef_hw.ir import Graph
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.rtl.base.primitives import PREFIX
from nnef_hw.run.artifacts import FIXED_MODEL, FLOAT_MODEL, BuildFolder
from nnef_hw.run.memories import image_text, with_memories
from nnef_hw.run.rtl import payloads
from nnef_hw.run.simulate import random_codes
from nnef_hw.samples.samples import Samples
from nnef_hw.sim.cocotb_bench import write_bench

__all__ = ["board_of", "emit"]

BENCH_FRAMES = 4
GENERATOR = f"nnef-hw {nnef_hw.__version__}"


def emit(
    folder: Path,
    fixed: Graph,
    canonical: Graph | None,
    plan: AcceleratorPlan,
    samples: Samples | None,
    target: Target,
    options: BuildOptions,
    base: BuildFolder | None = None,
) -> None:
    """Write models, manifest, plan, Verilog and bench; and the board's top, or the IP's wrapper.

    Of a build whose bitstream is kept (``base``) the Verilog is copied, unless it has the program
    from the beginning: then it is the same with another one.
    """
    save(fixed, folder / FIXED_MODEL)
    if canonical is not None:
        save(canonical, folder / FLOAT_MODEL)
    is_ip = not isinstance(target, Board)
    module = (options.ip_name or ip_name(plan.model)) if is_ip else MODULE
    oscillator_mhz = None
    if isinstance(target, Board):
        kinds = [wish.kind for wish in (*options.sources, *options.sinks)]
        oscillator_mhz = link_clock(target, plan, options.link, kinds)
    manifest = make_manifest(
        fixed,
        plan,
        generator=GENERATOR,
        link=options.streams if is_ip else bind_link(options.link, fixed, plan),
        sinks=() if is_ip else bind_sinks(options.sinks, fixed, target, plan.outputs),
        sources=() if is_ip else bind_sources(options.sources, fixed, plan),
        oscillator_mhz=oscillator_mhz,
        loop=bind_loop(fixed, plan.outputs) if options.token_loop else None,
        module=module,
        bitstream=None if base is None else read_manifest(base.path).hash,
    )
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    (folder / "plan.json").write_text(plan.dumps())
    (folder / "rtl").mkdir()
    if base is None or plan.loaded is not None:
        verilog = _accelerator(plan, fixed, module, is_ip=is_ip)
    else:
        verilog = base.verilog
    (folder / "rtl" / "top.v").write_text(verilog)

    if samples is None:
        codes = random_codes(fixed, BENCH_FRAMES)
    else:
        codes = quantize_inputs(fixed, samples[:BENCH_FRAMES].inputs)
    if fixed.is_sequential:
        # The bench does not reset: it runs steps of one sequence.
        codes = {name: x[0, :BENCH_FRAMES] for name, x in codes.items()}
    codes = {name: fill_batch(x, plan.batch) for name, x in codes.items()}
    fed = payloads(fixed.inputs, plan.inputs, codes)
    expected = payloads(fixed.outputs, plan.outputs, run_fixed(fixed, codes))
    vectors = {**fed, **expected}
    for stored in plan.images:
        (folder / IMAGE).parent.mkdir(exist_ok=True)
        (folder / IMAGE).write_bytes(stored.data)
    if plan.images:
        _write_memory_bench(folder, plan, vectors, verilog, module)
    else:
        write_bench(folder / "sim", vectors, top=module)

    if not isinstance(target, Board):
        (folder / "ip").mkdir()
        beats = {name: len(payload) for name, payload in vectors.items()}
        frames = len(codes[fixed.inputs[0]])
        bench = axi_testbench(plan, module, beats, frames, restart=fixed.is_sequential)
        (folder / "ip" / f"{module}_axis.v").write_text(axi_wrapper(plan, fixed, module))
        (folder / "ip" / f"{module}_tb.v").write_text(bench)
        streams, build_hash, registers = options.streams, read_manifest(folder).hash, None
        if streams.bus is not None:
            registers = bus_registers(plan, module, streams, build_hash)
        files = bus_files(plan, module, streams, build_hash, verilog)
        for path, text in files.items():
            (folder / path).write_text(text)
        if plan.loaded is not None:
            (folder / PROGRAM).write_bytes(plan.loaded)
        verilog_files = [str(path) for path in files if path.suffix == ".v"]
        waivers = lint_waivers(("rtl/top.v", f"ip/{module}_axis.v", *verilog_files))
        (folder / "ip" / f"{module}.vlt").write_text(waivers)
        clock = AXI_CLOCK if streams.bus is None else streams.bus.clock
        timing = clock_constraint(clock, plan.clock_mhz)
        (folder / "ip" / f"{module}.sdc").write_text(timing)
        (folder / "ip" / HEADER).write_text(model_header(read_manifest(folder)))
        (folder / "ip" / "README.md").write_text(ip_readme(plan, fixed, module, streams, registers))
        (folder / f"{module}.core").write_text(fusesoc_core(plan, module, streams))
        (folder / COMPONENT).write_text(component_xml(plan, fixed, module, streams, registers))
        return
    (folder / "board").mkdir(exist_ok=True)
    (folder / "board" / HEADER).write_text(model_header(read_manifest(folder)))
    if base is not None:
        copy_board(base, folder, target.device.family)
        return
    asked_mhz = plan.clock_mhz
    if options.clock_mhz is None and oscillator_mhz is not None:
        asked_mhz = options.asked_mhz or asked_clock(target)
    board = design_board(plan, fixed, manifest, target, asked_mhz)
    (folder / "board" / "board_top.v").write_text(board.verilog)
    (folder / "board" / f"board_top.{board.suffix}").write_text(board.constraints)


def board_of(fixed: Graph, plan: AcceleratorPlan, board: Board) -> BoardDesign:
    """Return the board's top as a build with the usual link has it."""
    manifest = make_manifest(
        fixed, plan, generator=GENERATOR, link=DEFAULT_LINK,
        oscillator_mhz=link_clock(board, plan, DEFAULT_LINK),
    )  # fmt: skip
    return design_board(plan, fixed, manifest, board)


def _accelerator(plan: AcceleratorPlan, fixed: Graph, module: str, *, is_ip: bool) -> str:
    """Return the Verilog of the accelerator."""
    comments = module_comments(plan, fixed)
    prefix = f"{module}_" if is_ip else PREFIX
    accelerator = find_architecture(plan.arch).component(plan, fixed)
    convert_layers(accelerator.layers, prefix)
    return to_verilog(accelerator, name=module, prefix=prefix, comments=comments)


def _write_memory_bench(
    folder: Path, plan: AcceleratorPlan, vectors: dict[str, Array], verilog: str, module: str
) -> None:
    """Write the bench of an accelerator with its memory, which runs beside the image."""
    path = folder / HEX_IMAGE
    path.parent.mkdir(exist_ok=True)
    for stored in plan.images:
        path.write_text(image_text(stored))
    text, top = with_memories(verilog, plan, module, Path(path.name))
    path.with_name("simulated.v").write_text(text)
    write_bench(path.parent, vectors, top=top, verilog="simulated.v")
