"""A progress bar for what takes long, on standard error of terminals, and in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["progress_bar", "progress_console", "stages"]


def progress_console() -> Console:
    """Return standard error; in a notebook its cell, if what shows progress there is installed."""
    if find_spec("ipywidgets") is None:
        return Console(stderr=True, force_jupyter=False)
    return Console(stderr=True)


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Yield a function of what is being done, which is shown with the time since the beginning."""
    console = progress_console()
    if not (console.is_terminal or console.is_jupyter):
        yield lambda what: None
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what: bar.update(task, description=what, refresh=True)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a function of the current work, how much of it is done, and the total."""
    console = progress_console()
    if not (console.is_terminal or console.is_jupyter):
        yield None
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("")

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total, refresh=done == total)

        yield show
