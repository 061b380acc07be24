"""Results as plain tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

__all__ = ["result_tables", "rows_table"]


def result_tables(result: Mapping[str, object]) -> Iterator[Table]:
    """Yield a flat result as lines of key and value, then each of its lists of objects."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in result.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {_text(v)}" for k, v in value.items() if v is not None)
        if value is not None and not isinstance(value, list):
            table.add_row(key.replace("_", " "), _text(value))
    yield table
    for value in result.values():
        if isinstance(value, list) and value:
            yield rows_table(value)


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
