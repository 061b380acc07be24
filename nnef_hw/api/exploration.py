"""Many designs of a network, compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from nnef_hw.api.show import Shown, framed
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.model.exploration import Explored, Point
from nnef_hw.report.pages.exploration import exploration_tables, render_exploration

__all__ = ["Exploration"]


@dataclass(frozen=True, repr=False)
class Exploration(Shown):
    """Designs of a network on several boards; :meth:`nnef_hw.api.Model.explore` makes it.

    Parameters
    ----------
    model
        Its name.
    path
        The sweep's folder, with ``points.jsonl``, ``front.json`` and ``index.html``.
    points
        All designs: ``board``, ``weight_bits``, ``cycles_per_inference``, ``rate`` (inferences per
        second), ``lut`` (share of the device), ``quality``, ``placed``, ``refusal``, ``build``.
    warnings
        Why to doubt the samples.
    """

    model: str
    path: Path
    points: Sequence[Point]
    warnings: tuple[QualityWarning, ...] = ()

    @property
    def front(self) -> list[Point]:
        """Designs that no other one of their board beats, the fastest of each board first."""
        best = [point for point in self.points if point.is_front]
        return sorted(best, key=lambda point: (point.board, -point.rate))

    @property
    def explored(self) -> Explored:
        """The sweep as its page shows it."""
        return Explored(self.model, self.points, warnings=self.warnings)

    def to_json(self) -> dict[str, object]:
        """Return the sweep as plain JSON values."""
        return self.explored.to_json()

    def _parts(self) -> Iterator[RenderableType]:
        yield from exploration_tables(self.points)
        yield from map(Text, map(str, self.warnings))

    def _repr_html_(self) -> str:
        return framed(render_exploration(self.explored))
