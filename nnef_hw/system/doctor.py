"""Do the external tools start, and what is missing if they do not: ``nnef-hw doctor``."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnef_hw.errors import ToolError
from nnef_hw.system.tools import PROBE, TOOLS, Spec, Tool, find_tool, run_tool

__all__ = ["ToolStatus", "doctor", "is_well", "library_error"]

LIBRARIES = {
    "libusb-1.0": "libusb-1.0-0",
    "libftdi1": "libftdi1-2",
    "libhidapi-hidraw": "libhidapi-hidraw0",
    "libhidapi-libusb": "libhidapi-libusb0",
    "libudev": "libudev1",
    "libz": "zlib1g",
    "libstdc++": "libstdc++6",
}
"""Debian's packages of the libraries that programs in wheels take from the system."""


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """One row of ``nnef-hw doctor``; ``problem`` and ``remedy`` are empty if all is well."""

    name: str
    purpose: str
    found: bool
    version: str
    path: str
    problem: str
    remedy: str

    @property
    def lack(self) -> str:
        """The fault of a tool that was not found, in a few words."""
        return "does not start" if self.path else "missing"


def doctor(
    chains: Sequence[Sequence[Spec]], progress: Callable[[str], None] = lambda _: None
) -> list[ToolStatus]:
    """State of every tool, found or not; each one that is found is started.

    Parameters
    ----------
    chains
        The programs of each toolchain.
    progress
        Is told which one starts.
    """
    rows = []
    owned = {spec.name: spec for chain in chains for spec in chain}
    for name, spec in {**TOOLS, **owned}.items():
        progress(f"starting {name}")
        version = path = ""
        try:
            tool = find_tool(spec)
            version, path = tool.version, str(tool.path)
            _probe(tool, spec)
        except ToolError as error:
            remedy = error.remedy or spec.remedy
            rows.append(ToolStatus(name, spec.purpose, False, version, path, error.reason, remedy))
        else:
            rows.append(ToolStatus(name, spec.purpose, True, version, path, "", ""))
    return rows


def is_well(rows: Sequence[ToolStatus], chains: Sequence[Sequence[Spec]]) -> bool:
    """Whether one toolchain is complete; programs of those that are not may be absent."""
    found = {row.name for row in rows if row.found}
    owned = [{spec.name for spec in chain} for chain in chains]
    absent = {row.name for row in rows if not (row.found or row.path)}
    may_be_absent = {name for names in owned if names & absent for name in names}
    needed = {row.name for row in rows} - (absent & may_be_absent)
    return needed <= found and any(names <= found for names in owned)


def _probe(tool: Tool, spec: Spec) -> None:
    """Start a tool, and see whether it ends as it should."""
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
        folder = Path(scratch)
        (folder / PROBE).touch()
        log = folder / "log"
        try:
            run_tool(tool, spec.probe, cwd=folder, log=log)
        except ToolError as error:
            text = log.read_text(errors="replace")
            if spec.usage and "sage" in text:
                return
            raise library_error(tool, text) or ToolError(
                f"{tool.name} does not start: {text.strip()[-300:] or error.reason}"
            ) from error


def library_error(tool: Tool, text: str) -> ToolError | None:
    """Return an error that names the libraries which a program misses; None if it misses none."""
    missing = re.findall(r"error while loading shared libraries: ([^\s:]+)", text)
    if not missing:
        return None
    # the first one that is missing ends the program; the loader lists all if it is asked to
    answer = subprocess.run(
        tool.command, env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True,
        text=True, check=False, errors="replace",
    )  # fmt: skip
    missing = re.findall(r"(\S+) => not found", answer.stdout) or missing
    packages = [LIBRARIES.get(name.partition(".so")[0], f"the one of {name}") for name in missing]
    return ToolError(
        f"{tool.name} cannot start: the system lacks {', '.join(missing)}",
        remedy=f"install them (Debian and Ubuntu: apt install {' '.join(packages)})",
    )
