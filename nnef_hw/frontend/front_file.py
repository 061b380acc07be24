"""Front ends that TOML files describe: ``--front FILE.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin, get_type_hints

from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import UsageError
from nnef_hw.frontend.audio_front import LogMelFront, MicroFront
from nnef_hw.frontend.front import Front
from nnef_hw.frontend.picture_front import ImageFront

__all__ = ["FRONTS", "read_front"]

FRONTS: tuple[type[Front], ...] = (LogMelFront, MicroFront, ImageFront)
"""Every front end that a user may choose."""

_TYPES: dict[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes",
    tuple: "a list of whole numbers",
}  # fmt: skip


def read_front(path: Path) -> Front:
    """Read the front end that a file describes.

    It has ``front = "log_mel"`` or another one's name, and parameters by name.

    Raises
    ------
    UsageError
        If there is no such file, front end or parameter, or a value does not fit.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", remedy="name a file: --front FILE") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: {error}", remedy='write it as TOML: front = "log_mel"'
        ) from error
    kinds = {kind.op: kind for kind in FRONTS}
    chosen = table.pop("front", None)
    if chosen not in kinds:
        choices = " or ".join(f'front = "{name}"' for name in kinds)
        what = "it names no front end" if chosen is None else f"there is no front end {chosen!r}"
        raise UsageError(f"{path}: {what}", remedy=f"write {choices}")
    kind = kinds[chosen]
    hints = get_type_hints(kind)
    parameters = [field.name for field in fields(kind)]
    required = [
        field.name for field in fields(kind) if field.default is MISSING and field.name not in table
    ]
    if required:
        raise UsageError(
            f"{path}: {chosen} lacks {required[0]}", remedy=f"write {required[0]} = ..."
        )
    values: Fields = {}
    for name, value in table.items():
        if name not in parameters:
            raise UsageError(
                f"{path}: {chosen} has no parameter {name!r}",
                remedy=f"its parameters are {', '.join(parameters)}",
            )
        wanted = _type(hints[name])
        if not _is(value, wanted):
            raise UsageError(f"{path}: {name} = {value!r} is not {_TYPES[wanted]}")
        values[name] = wanted(value)
    try:
        return kind(**values)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _type(hint: object) -> type:
    """Return the type of a parameter; of those that may be None, the other one."""
    if isinstance(hint, UnionType):
        hint = get_args(hint)[0]
    found = get_origin(hint) or hint
    assert isinstance(found, type)
    return found


def _is(value: object, wanted: type) -> bool:
    """Whether a value in a file is one of a type."""
    if wanted is tuple:
        return isinstance(value, list) and all(type(item) is int for item in value)
    return type(value) is wanted or (wanted is float and type(value) is int)
