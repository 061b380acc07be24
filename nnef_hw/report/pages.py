"""What all pages of reports share: templates, and the rules of style."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["page_environment", "page_style"]


def page_environment(**options: Any) -> Environment:
    """Return an environment of the templates of this package; ``options`` are Jinja's."""
    return Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, **options,
    )  # fmt: skip


def page_style() -> Markup:
    """Return the style rules that all pages share: those of a build's report."""
    text = _read("template.html")
    return Markup(text[text.index("<style>") + len("<style>") : text.index("</style>")].strip())


def _read(name: str) -> str:
    return files("nnef_hw.report").joinpath(name).read_text(encoding="utf-8")
