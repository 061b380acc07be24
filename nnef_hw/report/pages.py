"""The environment of the templates of all pages of reports, which extend ``page.html``."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

__all__ = ["page_environment"]


def page_environment(**options: Any) -> Environment:
    """Return an environment of the templates of this package; ``options`` are Jinja's."""
    return Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, **options,
    )  # fmt: skip


def _read(name: str) -> str:
    return files("nnef_hw.report").joinpath(name).read_text(encoding="utf-8")
