"""Waveforms of a build's simulation: which instances, how large, and where."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, OutputError, UsageError
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.rtl import Trace, run_rtl
from nnef_hw.system.files import output_error
from nnef_hw.verilog.names import identifier

__all__ = ["TRACED_FRAMES", "announce_trace", "layer_scopes", "traced"]

_log = logging.getLogger(__name__)

TRACED_FRAMES = 2
"""Frames that a waveform has by default: one that fills the pipeline, and another."""
MEGABYTE = 1_000_000


@contextmanager
def traced(path: Path) -> Iterator[Path]:
    """Give the file that receives a waveform; it becomes ``path`` if all goes well.

    Raises
    ------
    UsageError
        If the name tells no format.
    OutputError
        If it cannot be written.
    """
    if path.suffix not in {".fst", ".vcd"}:
        raise UsageError(f"--trace must end in .fst or .vcd, not {str(path)!r}")
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        partial.touch()
    except OSError as error:
        raise output_error(error, path) from error
    try:
        yield partial
        partial.replace(path)
    except OutputError as error:
        if error.location is None or error.location.file != str(partial):
            raise
        raise OutputError(
            error.reason, remedy=error.remedy, location=Location(str(path))
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def layer_scopes(build: BuildFolder, layers: Sequence[str]) -> tuple[str, ...]:
    """Return the instances of some layers in a build's Verilog; none if all are wanted.

    Raises
    ------
    UsageError
        If there is no such layer.
    """
    names = [station.name for station in build.plan.stations]
    for layer in layers:
        if layer not in names:
            raise UsageError(
                f"{str(build.path)!r} has no layer {layer!r}",
                remedy=f"--trace-layers takes some of {', '.join(names)}",
            )
    stations = [station for station in build.plan.stations if station.name in layers]
    instances = dict.fromkeys(identifier(x.instance) for x in stations)
    path = f"TOP.{build.module}"
    if build.plan.images:
        path = f"TOP.{build.simulated[1]}.board.core"
    return tuple(f"{path}.{instance}" for instance in instances)


def announce_trace(
    build: BuildFolder, codes: Mapping[str, Array], trace: Trace, path: Path
) -> None:
    """Say how large a waveform is going to be, by that of one frame.

    Raises
    ------
    OutputError
        If the disk has less space than that.
    """
    one = {name: values[:1] for name, values in codes.items()}
    verilog, top = build.simulated
    run_rtl(
        verilog,
        build.plan,
        build.fixed,
        one,
        top=top,
        trace=replace(trace, trace_frames=1),
    )
    plan = build.plan
    cycles = plan.latency + (trace.trace_frames - 1) * plan.interval
    size = trace.trace.stat().st_size * cycles / plan.latency
    free = shutil.disk_usage(path.parent).free
    about = f"{trace.trace_frames} frames take about {size / MEGABYTE:,.0f} MB"
    if size > free:
        raise OutputError(
            f"{about}, and {free / MEGABYTE:,.0f} MB are free",
            remedy="give a smaller --trace-frames, some --trace-layers, or another place",
            location=Location(str(path)),
        )
    _log.warning("%s: %s", path, about)
