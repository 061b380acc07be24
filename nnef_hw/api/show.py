"""Looks of the API's values: text in a terminal, HTML in a notebook."""

from __future__ import annotations

import html
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from nnef_hw.report.model.report import Report
from nnef_hw.report.terminal import print_report

__all__ = ["Shown", "framed", "printed"]

COLUMNS = 100
PAGE_HEIGHT = 640
CODE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.25;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace\">{code}</pre>"
)
"""Columns stay below each other in every notebook, whatever its own style of ``pre`` is."""


class Shown(ABC):
    """A value that is shown as a title and tables."""

    @abstractmethod
    def _parts(self) -> Iterator[RenderableType]:
        """Yield the parts that are shown, one below the other."""

    def __rich__(self) -> RenderableType:
        return Group(*self._parts())

    def __repr__(self) -> str:
        console = _recorder(is_styled=False)
        console.print(self)
        return "\n".join(line.rstrip() for line in console.export_text().strip().splitlines())

    def _repr_html_(self) -> str:
        console = _recorder(is_styled=True)
        console.print(self)
        return console.export_html(inline_styles=True, code_format=CODE)


def _recorder(*, is_styled: bool) -> Console:
    """Return a console that records and shows nothing, in a notebook either."""
    return Console(
        file=io.StringIO(),
        width=COLUMNS,
        record=True,
        markup=False,
        force_jupyter=False,
        force_terminal=True if is_styled else None,
        color_system="auto" if is_styled else None,
    )


def printed(report: Report) -> RenderableType:
    """Return the report of a build or a plan as the command line prints it."""

    class Printed:
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            with console.capture() as captured:
                print_report(report, console)
            yield Text.from_ansi(captured.get())

    return Printed()


def framed(page: str) -> str:
    """Return a whole page as a part of another one, which neither changes the other's styles."""
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" '
        f'style="width:100%;height:{PAGE_HEIGHT}px;border:0"></iframe>'
    )
