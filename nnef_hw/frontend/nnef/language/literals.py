"""Spelling of names and values in NNEF."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import UnsupportedError

__all__ = ["KEYWORDS", "fits_literals", "format_value", "identifiers", "unique"]

KEYWORDS = frozenset({
    "version", "extension", "graph", "fragment", "tensor", "integer", "scalar", "logical",
    "string", "shape_of", "length_of", "range_of", "for", "in", "yield", "if", "else", "true",
    "false",
})  # fmt: skip

_INTEGER_LIMIT = 1 << 31


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a valid and unique NNEF identifier for each name: the name itself where it is one."""
    wanted = list(names)
    reserved = {name for name in wanted if _is_identifier(name)} | KEYWORDS
    result: dict[str, str] = {}
    for name in wanted:
        if _is_identifier(name):
            result[name] = name
        else:
            result[name] = unique(re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII) or "_", reserved)
            reserved.add(result[name])
    return result


def unique(name: str, reserved: Container[str]) -> str:
    """Return ``name``, with a number appended if it is reserved."""
    result, count = name, 0
    while result in reserved:
        count += 1
        result = f"{name}_{count}"
    return result


def fits_literals(data: Array) -> bool:
    """Whether numbers survive being written out and read by any tool.

    Tools read floats as float32 and integers in 32 bits; there is no literal for NaN or infinity.
    """
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return bool(np.all(np.isfinite(data) & (data.astype(np.float32) == data)))
    if data.dtype.kind in "iu" and data.size:
        return int(data.min()) >= -_INTEGER_LIMIT and int(data.max()) < _INTEGER_LIMIT
    return True


def format_value(value: Any) -> str:
    """Return a literal, an array ``[a, b]`` or a tuple ``(a, b)``; NumPy values count as Python's.

    Raises
    ------
    UnsupportedError
        If it is NaN or infinity.
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, float | np.floating):
        return _float(value)
    if isinstance(value, np.ndarray):
        return format_value(value.tolist())
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))})"
    return str(int(value))


def _float(value: float | np.floating[Any]) -> str:
    if not np.isfinite(value):
        raise UnsupportedError(f"the value {value} cannot be written: NNEF has no literal for it")
    text = str(value)
    return text if "." in text or "e" in text else f"{text}.0"


def _is_identifier(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name not in KEYWORDS
