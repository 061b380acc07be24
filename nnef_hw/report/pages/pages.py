"""The templates of all pages of reports, which extend ``page.html``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

__all__ = ["page_template"]


@cache
def page_template(name: str, **options: Any) -> Template:
    """Return a template of this package, compiled once; ``options`` are those of Jinja."""
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, **options,
    )  # fmt: skip
    return environment.get_template(name)


def _read(name: str) -> str:
    return files("nnef_hw.report.pages").joinpath(name).read_text(encoding="utf-8")
