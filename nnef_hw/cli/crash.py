"""Traces of a defect of ours: one line for the user, and a file with all the rest for us."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import nnef_hw
from nnef_hw.errors import NnefHwError

__all__ = ["DefectError", "crash_message", "threads_crash"]


class DefectError(NnefHwError):
    """An error that nobody has foreseen."""

    exit_status = 3


class ThreadCrashes(list[BaseException]):
    """Exceptions of threads that nobody waits for."""


@contextmanager
def threads_crash() -> Iterator[ThreadCrashes]:
    """Collect exceptions that end threads, instead of printing them."""
    crashes = ThreadCrashes()

    def collect(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            crashes.append(arguments.exc_value)

    previous, threading.excepthook = threading.excepthook, collect
    try:
        yield crashes
    finally:
        threading.excepthook = previous


def crash_message(error: BaseException, arguments: Sequence[str]) -> str:
    """Write a report of an unexpected exception; return the line that tells the user."""
    command = shlex.join(["nnef-hw", *arguments])
    first = " ".join(str(error).split())
    what = f"{type(error).__name__}: {first[:200]}" if first else type(error).__name__
    path = _write_report(_report(error, command))
    attached = "; no report could be written"
    if path is not None:
        attached = f", please report it with the file {path}"
    return f"a defect of nnef-hw{attached} ({what}); to reproduce it: {command}"


def _report(error: BaseException, command: str) -> str:
    variables = {name: value for name, value in os.environ.items() if name.startswith("NNEF_HW_")}
    return "\n".join([
        f"nnef-hw {nnef_hw.__version__}",
        f"command: {command}",
        f"folder: {os.environ.get('PWD', '')}",
        f"Python {sys.version} at {sys.executable}",
        f"platform: {platform.platform()}, {os.cpu_count()} cores",
        *(f"variable: {name}={value}" for name, value in sorted(variables.items())),
        "",
        *traceback.format_exception(error),
        *_versions(),
        "",
    ])


def _versions() -> list[str]:
    """Return a line for each package that this one may use."""
    names = {re.split(r"[^\w.-]", line)[0] for line in requires("nnef-hw") or ()}
    lines = []
    for name in sorted(names):
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lines.append(f"{name} is not installed")
    return lines


def _write_report(text: str) -> Path | None:
    """Write a new file in the working folder, else in that for temporary files."""
    for folder in (".", None):
        try:
            handle, name = tempfile.mkstemp(prefix="nnef-hw-crash-", suffix=".txt", dir=folder)
            path = Path(name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)
            except OSError:
                path.unlink(missing_ok=True)
                raise
        except OSError:
            continue
        path.chmod(0o644)
        return Path(path.name) if folder == "." else path
    return None
