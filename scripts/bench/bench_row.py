"""Rows of benches, printed as soon as they are measured: a run that is killed keeps its figures."""

from collections.abc import Iterable

__all__ = ["print_row"]


def print_row(headings: Iterable[str], cells: Iterable[str]) -> None:
    """Print a row as a line of its own, each cell behind its heading; empty cells are left out."""
    pairs = zip(headings, cells, strict=True)
    print("  " + "; ".join(f"{heading} {cell}" for heading, cell in pairs if cell), flush=True)
