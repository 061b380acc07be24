"""Front ends of audio that TOML files describe: ``--front FILE.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args, get_type_hints

from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import UsageError
from nnef_hw.frontend.audio_front import FRONTS, AudioFront

__all__ = ["read_front"]

_TYPES: dict[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes",
}  # fmt: skip


def read_front(path: Path) -> AudioFront:
    """Read the front end that a file describes.

    It has ``front = "log_mel"`` or ``"micro_frontend"``, and parameters by name.

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
    parameters = list(kind.__dataclass_fields__)
    values: Fields = {}
    for name, value in table.items():
        if name not in parameters:
            raise UsageError(
                f"{path}: {chosen} has no parameter {name!r}",
                remedy=f"its parameters are {', '.join(parameters)}",
            )
        # the first one of those that may be None
        wanted = (*get_args(hints[name]), hints[name])[0]
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise UsageError(f"{path}: {name} = {value!r} is not {_TYPES[wanted]}")
        values[name] = wanted(value)
    try:
        return kind(**values)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
