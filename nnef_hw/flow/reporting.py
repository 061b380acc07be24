"""The last step of a build: its report."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import nnef_hw
from nnef_hw.flow.clock import choice_of
from nnef_hw.flow.files import built_files
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.steps import Compiled, Steps, Verified
from nnef_hw.flow.summary import make_report
from nnef_hw.hardware.devices import Target
from nnef_hw.place.critical import owners_of
from nnef_hw.place.floorplan import Places, share_out
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.synthesis import tool_identities
from nnef_hw.quantize.judgement.diagnosis import LOSSES
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.files import write_json
from nnef_hw.report.model.conversion import from_json, to_json
from nnef_hw.report.model.report import Origin, Report
from nnef_hw.report.pages.html import write_html
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.system.files import digest
from nnef_hw.system.sources import package_digest
from nnef_hw.system.tools import find_tool

__all__ = ["library_versions", "write_report"]

Warnings: TypeAlias = tuple[QualityWarning, ...]


def write_report(
    options: BuildOptions,
    folder: BuildFolder,
    target: Target,
    compiled: Compiled,
    verified: Verified,
    placed: SynthesisResult | None,
    seconds: dict[str, float],
    steps: Steps,
) -> Report:
    """Write the report, unless it is there already; the times are those of the first build."""
    bitstream = None
    if placed is not None and "bitstream" in placed.files:
        bitstream = str(options.out / "board" / placed.files["bitstream"])
    again = [str(options.out)]
    if options.calibrate is not None:
        again += ["--samples", str(options.calibrate)]
    commands = [options.command] if options.command else []
    commands.append(shlex.join(["nnef-hw", "sim", *again]))
    if options.calibrate is not None:
        commands.append(shlex.join(["nnef-hw", "compare", *again]))
    placement = None if placed is None else placed.to_json()
    kinds = [wish.kind for wish in (*options.sources, *options.sinks)]
    clock = choice_of(
        target, folder.plan, options.link, kinds,
        fixed=options.clock_mhz is not None, searched=options.searched,
    )  # fmt: skip
    places = _places(folder, placed)
    origin = Origin(
        model_hash=folder.manifest["model_hash"],
        tools=tuple(_tools(target, is_placed=placed is not None)),
    )
    found = [replace(compiled, seconds={}), verified, placement, commands, places, origin, clock]
    key = digest(package_digest(), folder.plan.dumps(), json.dumps(to_json(found)))

    def produce(scratch: Path) -> Report:
        architecture, plan = folder.architecture, folder.plan
        timeline = architecture.timeline(plan)
        floorplan = None if places is None else share_out(places, owners_of(plan.stations))
        report = make_report(
            plan=plan, clock_mhz=placed.clock_mhz if placed else None, clock=clock,
            insides=architecture.report(plan, folder.fixed, target, timeline),
            others=compiled.others, stream=compiled.stream,
            target=target, synthesis=placed, simulation=verified.simulation,
            accuracy=verified.accuracy, noise=verified.noise, bitstream=bitstream,
            warnings=_warnings(compiled.warnings, verified.losses),
            seconds=seconds, commands=commands, link=options.link, floorplan=floorplan,
            origin=replace(origin, files=built_files(folder.path, target.device.family)),
        )  # fmt: skip
        write_json(report, scratch / "report.json")
        write_html(report, timeline, scratch / "report.html", floorplan)
        return report

    return steps.run("report", key, produce, Report)


def _warnings(known: Warnings, losses: Warnings) -> Warnings:
    """Return all warnings; of losses those that remedies were tried for, if there are any."""
    return known if any(warning.kind in LOSSES for warning in known) else known + losses


def _places(folder: BuildFolder, placed: SynthesisResult | None) -> Places | None:
    """Return where the cells of a placed design are; None if its toolchain does not tell."""
    if placed is None or "floorplan" not in placed.files:
        return None
    path = folder.path / "board" / placed.files["floorplan"]
    return from_json(json.loads(path.read_text()), Places)


def _tools(target: Target, *, is_placed: bool) -> list[str]:
    """Return names and versions of what a build was made with."""
    names = [f"nnef-hw {nnef_hw.__version__}", *library_versions()]
    names += [find_tool(name).identity for name in ("verilator", "c++")]
    return [*names, *(tool_identities(target.device.family) if is_placed else ())]


def library_versions() -> list[str]:
    """Return the versions of the libraries that decide what is computed and emitted."""
    return [f"{name} {version(name)}" for name in ("amaranth", "numpy")]
