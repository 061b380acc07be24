"""Results as plain tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from rich.table import Table

__all__ = ["result_tables", "rows_table"]

ON_ONE_LINE = 5
"""Most entries of an object that is shown in one line."""


def result_tables(result: Mapping[str, object]) -> Iterator[Table]:
    """Yield a result as lines of key and value, then each of its lists of objects.

    An object within it is one line if it is short; its own lists of objects follow, too.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    lists: list[Sequence[Mapping[str, object]]] = []
    for key, value in result.items():
        found = value if isinstance(value, dict) else {"": value}
        lists += [each for each in found.values() if _has_rows(each)]
        lines = {
            name: _text(each) for name, each in found.items()
            if not (each is None or each == [] or _has_rows(each))
        }  # fmt: skip
        if isinstance(value, dict) and len(lines) <= ON_ONE_LINE:
            lines = {"": ", ".join(f"{name} {text}" for name, text in lines.items())}
        for name, text in lines.items():
            table.add_row(f"{key} {name}".strip().replace("_", " "), text)
    yield table
    yield from map(rows_table, lists)


def _has_rows(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    """Whether a value is a list of objects."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def rows_table(rows: Sequence[Mapping[str, object]]) -> Table:
    """Return objects with the same keys as a table; columns without a value are left out."""
    table = Table(box=None, pad_edge=False)
    keys = [key for key in rows[0] if any(row[key] not in ("", None) for row in rows)]
    for key in keys:
        table.add_column(key.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(_text(row[key]) for key in keys))
    return table


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
