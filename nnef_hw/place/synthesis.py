"""Verilog to a bitstream, with the toolchain of a family."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nnef_hw.hardware.families import Family
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.toolchain import Design, Progress, Tuning, say_nothing, toolchain_of

__all__ = ["map_only", "synthesize", "tool_identities"]


def synthesize(
    verilog: Path | Sequence[Path],
    *,
    top: str,
    family: Family,
    device: str,
    package: str,
    speed: str = "",
    out_dir: Path,
    frequency_mhz: float,
    constraints: str | None = None,
    seeds: Sequence[int] = (1,),
    bitstream: bool = True,
    log_dir: Path | None = None,
    progress: Progress = say_nothing,
    tuning: Tuning | None = None,
) -> SynthesisResult:
    """Map, place, route and pack a design, as far as the family's toolchain does that.

    Parameters
    ----------
    verilog
        Source files. The macro of the family is defined.
    family
        Whose toolchain and cells are used.
    top, device, package, speed, frequency_mhz, constraints, tuning
        The design: :class:`.Design`.
    out_dir
        Folder that receives all files.
    seeds
        Seeds of the placer, in ascending order. The first placement that is in time is used, for
        which later ones are given up; if there is none, the fastest. If none of them has a route,
        further ones may follow.
    bitstream
        Whether to pack a bitstream.
    log_dir
        Folder where logs are written, and stay if a tool fails: errors name them. In the end they
        move to ``out_dir``, which is the default.
    progress
        Is told which tool runs.

    Raises
    ------
    TargetError
        The design does not fit, or no placement has a route; or the toolchain does not have the
        device.
    ToolError
        A tool is missing or failed for another reason.

    Notes
    -----
    A missed clock constraint is a result, not an error: see ``timing_met``.
    """
    logs = log_dir or out_dir
    logs.mkdir(parents=True, exist_ok=True)
    toolchain = toolchain_of(family)
    design = Design(
        top=top, part=device, package=package, speed=speed, frequency_mhz=frequency_mhz,
        constraints=constraints, tuning=tuning,
    )  # fmt: skip
    mapped = toolchain.map(
        design, _listed(verilog), out_dir, logs, pads=constraints is not None, progress=progress
    )
    result = toolchain.place(
        design, mapped, out_dir, logs, seeds=seeds, bitstream=bitstream, progress=progress
    )
    for path in logs.glob("*.log"):
        path.replace(out_dir / path.name)
    return result


def map_only(
    verilog: Path | Sequence[Path],
    *,
    top: str,
    family: Family,
    device: str,
    out_dir: Path,
    pads: bool | None = None,
) -> dict[str, int]:
    """Map a design to cells and count them by type, in seconds; nothing is placed.

    ``out_dir`` receives the netlist as ``{top}_netlist.v``, the names and cells of which
    Verilator takes together with the models of the cells. ``pads`` are those of
    :meth:`.Toolchain.map`.
    """
    design = Design(top=top, part=device, package="", frequency_mhz=0)
    return toolchain_of(family).map(design, _listed(verilog), out_dir, out_dir, pads=pads).cells


def tool_identities(family: Family) -> tuple[str, ...]:
    """Names and versions of the tools that a result depends on, for the keys of caches."""
    return toolchain_of(family).identities


def _listed(verilog: Path | Sequence[Path]) -> list[Path]:
    return [verilog] if isinstance(verilog, Path) else list(verilog)
