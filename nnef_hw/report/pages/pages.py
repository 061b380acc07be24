"""The templates of all pages of reports, which extend ``page.html``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

__all__ = ["page_template"]


@cache
def page_template(
    name: str, *, keeps_newline: bool = False, finalize: Callable[[object], object] | None = None
) -> Template:
    """Return a template of this package, compiled once.

    Parameters
    ----------
    keeps_newline
        Keep the newline at the end of the template.
    finalize
        Called with every value that a page shows.
    """
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=keeps_newline, finalize=finalize,
    )  # fmt: skip
    return environment.get_template(name)


def _read(name: str) -> str:
    return files("nnef_hw.report.pages").joinpath(name).read_text(encoding="utf-8")
