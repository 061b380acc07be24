"""Errors a user can cause or meet: each has a location, a reason and a remedy.

The command line prints them and exits with :attr:`NnefHwError.exit_status`; a traceback is
always a defect of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

__all__ = [
    "CheckError",
    "ErrorGroup",
    "Location",
    "ModelError",
    "NnefHwError",
    "OutputError",
    "SampleError",
    "ShortageError",
    "TargetError",
    "ToolError",
    "UnroutedError",
    "UnsupportedError",
    "UsageError",
    "raise_all",
]


@dataclass(frozen=True, slots=True)
class Location:
    """Where something stands in the user's files.

    ``line`` and ``column`` count from 1 (0: the whole file); ``text`` is the source line that
    the caret points into, without its line end.
    """

    file: str
    line: int = 0
    column: int = 0
    text: str = ""

    @property
    def in_file(self) -> Location:
        """Place with the file's name alone: equal wherever a model lies."""
        return replace(self, file=PurePath(self.file).name)

    def __str__(self) -> str:
        if not self.line:
            return self.file
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}"


class NnefHwError(Exception):
    """Base of all errors that are shown to the user instead of a traceback.

    Parameters
    ----------
    reason
        What is wrong: subject first, lower case, the offending value in it.
    remedy
        What to do about it.
    location
        Where it is; its source line is shown with a caret.
    """

    exit_status = 2

    def __init__(
        self, reason: str, *, remedy: str | None = None, location: Location | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.location = location

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        message = where + self.reason + (f"; {self.remedy}" if self.remedy else "")
        if self.location and self.location.text:
            text = self.location.text
            message += f"\n    {text}"
            if self.location.column:
                before = text[: self.location.column - 1]
                indent = "".join("\t" if c == "\t" else " " for c in before)
                message += f"\n    {indent}^"
        return message


class ModelError(NnefHwError):
    """The model is invalid: syntax, types, shapes, data files, archives."""


class UnsupportedError(ModelError):
    """The model is valid, but this toolkit cannot do what it asks for."""


class SampleError(NnefHwError):
    """Samples or inputs are missing, of the wrong shape, or hold NaN or infinity."""


class OutputError(NnefHwError):
    """A file cannot be written: the disk is full, the place is read-only or does not exist."""


class UsageError(NnefHwError):
    """Arguments that make no sense together, or name something that does not exist."""


class TargetError(NnefHwError):
    """The model cannot be put on the chosen board: it does not fit, or no clock can be made."""


class ShortageError(TargetError):
    """A plan needs more of a target than it has: of its resources, or of its cycles.

    Parameters
    ----------
    claim
        What the model does not: ``model 'm' does not fit icebreaker (up5k)``.
    arch
        The architecture that was planned.
    lack
        What is short, and by how much.
    """

    def __init__(self, claim: str, arch: str, lack: str) -> None:
        super().__init__(f"{claim} with --arch {arch}: {lack}")
        self.claim = claim
        self.arch = arch
        self.lack = lack

    def __reduce__(self) -> tuple[Any, ...]:
        # to and from other processes
        return type(self), (self.claim, self.arch, self.lack), self.__dict__


class UnroutedError(TargetError):
    """A placement has no route; that of another seed may have one."""


class SnaggedError(UnroutedError):
    """All but a few wires of a placement have a route; in another order these may have one, too."""


class CheckError(NnefHwError):
    """A check of ours failed: hardware differs from the model, or timing is not met."""

    exit_status = 1


class ToolError(NnefHwError):
    """An external tool is missing, too old, or broke."""

    exit_status = 3


class ErrorGroup(NnefHwError):
    """Several independent errors found in one run."""

    def __init__(self, errors: Sequence[NnefHwError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)
        self.exit_status = max(error.exit_status for error in errors)

    def __reduce__(self) -> tuple[Any, ...]:
        # to and from other processes
        return type(self), (self.errors,), self.__dict__


def raise_all(errors: Sequence[NnefHwError]) -> None:
    """Raise the only error, or all of them together; do nothing if there is none."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ErrorGroup(errors)
