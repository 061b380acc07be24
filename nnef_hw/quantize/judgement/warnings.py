"""Warnings of a network that may be worth little: one object for text, report.json, pages, API."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Attempt", "QualityWarning", "announce"]

COLUMNS = 100
INDENT = "    "

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Another way to quantize a network, and what it gave.

    Parameters
    ----------
    option
        Words of the command line that ask for it; empty for the way that was taken.
    layer_db, results_db
        Signal to noise of the layer that a warning is about, and the least one of all results;
        None if there is no noise, or it says nothing.
    accuracy
        Accuracy (0..1); None without labels.
    """

    option: str
    layer_db: float | None
    results_db: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class QualityWarning:
    """A reason to doubt a quantized network, with the numbers that tell.

    Parameters
    ----------
    kind
        What is wrong, a word for programs: ``samples`` (too few, or all alike), ``range`` (not
        those that the network was trained for), ``dead`` (a layer without a signal), ``masked`` (a
        softmax of nothing), ``noise`` or ``accuracy`` (quantization costs too much),
        ``calibration`` (another one is better).
    reason
        What is wrong, in words.
    remedy
        What to do about it.
    layer
        The layer or input that it is about.
    figures
        The numbers of the reason, by name.
    attempts
        Other schemes that were tried, the present one first.
    samples
        How many samples the attempts were judged by.
    """

    kind: str
    reason: str
    remedy: str = ""
    layer: str | None = None
    figures: Mapping[str, int | float | None] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    samples: int = 0

    def __str__(self) -> str:
        text = self.reason
        if self.remedy and not self.attempts:
            text += f"; {self.remedy}"
        lines = textwrap.wrap(
            text, COLUMNS, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
        )
        return "\n".join((*lines, *self._table()))

    def _table(self) -> Iterable[str]:
        """Yield a line for each attempt, in columns."""
        if not self.attempts:
            return
        columns = [
            ["layer", *(_decibels(each.layer_db) for each in self.attempts)],
            ["results", *(_decibels(each.results_db) for each in self.attempts)],
        ]
        if any(each.accuracy is not None for each in self.attempts):
            columns.append(["accuracy", *(_percent(each.accuracy) for each in self.attempts)])
        titles = [
            f"on {self.samples} samples", *(each.option or "as it is" for each in self.attempts)
        ]  # fmt: skip
        width = max(map(len, titles))
        for title, *cells in zip(titles, *columns, strict=True):
            yield f"{INDENT}{title:<{width}}" + "".join(f"{cell:>10}" for cell in cells)
        yield f"{INDENT}{self.remedy}"


def announce(warnings: Iterable[QualityWarning]) -> None:
    """Log warnings, which is how the command line and notebooks show them."""
    for warning in warnings:
        _log.warning("%s", warning)


def _decibels(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} dB"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}%"
