"""One run of nextpnr, and what its failures mean to the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from nnef_hw.errors import SnaggedError, TargetError, ToolError, UnroutedError
from nnef_hw.place.nextpnr.congestion import Congestion
from nnef_hw.place.nextpnr.dialect import Dialect
from nnef_hw.place.toolchain import Design
from nnef_hw.system.tools import find_tool, run_tool

__all__ = ["SupersededError", "run_nextpnr", "utilisation_of"]

REMEDY = "take a smaller model, fewer multipliers or a bigger board"
_DISPLAY = {"lut": "logic cells", "ff": "flip-flops", "dsp": "DSP blocks", "bram": "block RAMs",
            "spram": "SPRAM blocks"}  # fmt: skip
_UTILISATION = re.compile(r"^Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", re.MULTILINE)
_MISFIT = re.compile(
    r"^ERROR: .*(no BELs remaining|[Uu]nable to find|[Ff]ailed to (?:place|route|expand|find)|"
    r"[Rr]outing design failed|too many|legal placement).*$",
    re.MULTILINE,
)

_UNKNOWN = re.compile(
    r"^ERROR: (No package for partnumber|Unable to read chipdb|[Uu]nable to load uarch for device|"
    r"Unsupported package)\b.*$",
    re.MULTILINE,
)


class SupersededError(Exception):
    """A placement was given up, since nobody needs it any more."""


def run_nextpnr(
    dialect: Dialect, design: Design, netlist: str, arguments: Sequence[str], own: Path, log: Path,
    is_needless: Callable[[], bool] = lambda: False,
) -> None:  # fmt: skip
    """Run nextpnr beside a folder, which receives what it writes.

    Parameters
    ----------
    netlist
        Name of the netlist, in the folder that ``own`` is in.
    is_needless
        Is asked meanwhile: when it says so, nextpnr is stopped.

    Raises
    ------
    TargetError, UnroutedError, SupersededError, ToolError
        As for :meth:`.Placer.place`.
    """
    own.mkdir(exist_ok=True)
    pins = None
    if design.constraints is not None:
        pins = f"{own.name}/{design.top}.{dialect.constraints_suffix}"
        (own.parent / pins).write_text(design.constraints)
    device = dialect.device_options(design.part, design.package, design.speed)
    command = [*device, "--json", netlist, *arguments, *dialect.pin_options(pins)]
    congestion = Congestion(log)
    try:
        run_tool(
            dialect.router, command, cwd=own.parent, log=log,
            is_stuck=lambda: is_needless() or congestion.is_stuck(),
        )  # fmt: skip
    except ToolError as error:
        if is_needless():
            raise SupersededError from error
        if congestion.is_stuck():
            found = SnaggedError if congestion.is_snag else UnroutedError
            raise found(
                f"the placement has no route: several nets want {congestion.overused} wires "
                f"after {congestion.iterations} iterations, and it gets no better",
                remedy=REMEDY,
            ) from error
        named = f"{design.part} {design.package}{design.speed}"
        _raise_if_unknown(log, dialect, named, error)
        _raise_if_misfit(log, dialect, f"{design.part}-{design.package}", error)
        raise


def utilisation_of(log: Path) -> dict[str, tuple[int, int]]:
    """Return how many cells of each type nextpnr has packed, and how many places there are."""
    rows = _UTILISATION.findall(log.read_text(errors="replace"))
    return {cell: (int(used), int(available)) for cell, used, available in rows}


def _raise_if_unknown(log: Path, dialect: Dialect, target: str, cause: ToolError) -> None:
    """Turn nextpnr's failure into an error of the user's, if it has no such device."""
    if match := _UNKNOWN.search(log.read_text(errors="replace")):
        reason = match[0].removeprefix("ERROR: ")
        raise TargetError(
            f"{find_tool(dialect.router).identity} does not know the device {target} ({reason})",
            remedy="correct part, package and speed of the board",
        ) from cause


def _raise_if_misfit(log: Path, dialect: Dialect, target: str, cause: ToolError) -> None:
    """Turn nextpnr's failure into an error of the user's, if it is one."""
    text = log.read_text(errors="replace")
    used = utilisation_of(log)
    names = {cell: _DISPLAY[name] for name, cell in dialect.cells.items()}
    over = [
        f"{n} {names.get(cell, cell)} of {limit}" for cell, (n, limit) in used.items() if n > limit
    ]
    if over:
        raise TargetError(
            f"the design does not fit into {target}: it needs {', '.join(over)}", remedy=REMEDY
        ) from cause
    if match := _MISFIT.search(text):
        cell, _ = next(iter(dialect.cells.items()))[::-1]
        n, limit = used.get(cell, (0, 0))
        share = f" with {n} of {limit} logic cells used" if limit else ""
        reason = match[0].removeprefix("ERROR: ")
        raise UnroutedError(
            f"the design cannot be placed and routed in {target}{share} ({reason}; see {log})",
            remedy=REMEDY,
        ) from cause
