"""The quantization report as one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from nnef_hw.report.model.quantization import Quantization
from nnef_hw.report.pages.pages import page_template
from nnef_hw.report.wording import units
from nnef_hw.report.wording.labels import short_names
from nnef_hw.system.files import write_atomic

__all__ = ["render_quantization", "write_quantization_html"]

_HEIGHT = 36
_THIN = "\N{THIN SPACE}"


def write_quantization_html(report: Quantization, path: Path) -> None:
    """Write :func:`render_quantization` to a file, whose folder is made if need be."""
    write_atomic(path, render_quantization(report))


def render_quantization(report: Quantization) -> str:
    """Return a page that needs no other file, no network and no script.

    Parameters
    ----------
    report
        What :func:`~nnef_hw.report.quantization.describe_quantization` returns.
    """
    short = short_names([layer.name for layer in report.layers])
    noisy = [layer for layer in report.layers if layer.sqnr_db is not None]
    return page_template("quantization.html").render(
        say=units,
        shown=units.printable,
        number=_number,
        interval=_interval,
        share=_share,
        decibels=_decibels,
        height_of=_height,
        label=lambda name: units.printable(short[name]),
        report=report,
        worst=min(noisy, key=lambda layer: layer.sqnr_db or 0.0, default=None),
    )


def _number(value: float) -> str:
    return f"{value:.4g}"


def _interval(limits: Sequence[float]) -> str:
    return f"{limits[0]:.4g}{_THIN}…{_THIN}{limits[1]:.4g}"


def _share(value: float | None) -> str:
    if value is None:
        return units.MISSING
    return "0" if not value else f"{100 * value:.2g}{_THIN}%"


def _decibels(value: float | None) -> str:
    return units.MISSING if value is None else f"{value:.1f}{_THIN}dB"


def _height(count: int, most: int) -> float:
    """Return the height of a bar; a single value is still seen."""
    return round(_HEIGHT * max(math.log(count + 1) / math.log(most + 1), 0.05), 2)
