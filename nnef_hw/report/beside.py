"""Two builds side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from rich.console import RenderableType
from rich.table import Table

from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Figures
from nnef_hw.report.pages.pages import page_template
from nnef_hw.report.wording import units
from nnef_hw.report.wording.labels import short_names
from nnef_hw.system.files import write_atomic

__all__ = ["Beside", "Side", "beside_tables", "put_beside", "render_beside", "write_beside"]

Figure: TypeAlias = str | int | float | None
Get: TypeAlias = Callable[[Figures], Figure]


@dataclass(frozen=True, slots=True)
class LayerSide:
    """Figures of a layer that are compared; None where a build has no such layer."""

    cycles: int | None = None
    multipliers: int | None = None
    lut: int | None = None
    bram: int | None = None
    sqnr_db: float | None = None


NO_LAYER = LayerSide()


@dataclass(frozen=True, slots=True)
class Side:
    """Figures of one build that are compared.

    Parameters
    ----------
    figures
        Of the design, by name; None where it has none.
    layers
        By name, the figures of each.
    """

    figures: Mapping[str, Figure]
    layers: Mapping[str, LayerSide]

    @classmethod
    def read(cls, value: object) -> Side:
        """Take the figures from the contents of ``report.json``.

        Raises
        ------
        LookupError, ValueError
            If that is none of this version.
        """
        return cls.of(from_json(value, Figures))

    @classmethod
    def of(cls, report: Figures) -> Side:
        """Take the figures from a report."""
        return cls(
            figures={name: get(report) for name, get in _figures()},
            layers={
                layer.name: LayerSide(
                    layer.cycles, layer.multipliers, layer.lut, layer.bram,
                    report.noise.get(layer.name),
                )
                for layer in report.layers
            },
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FigurePair:
    """A figure of two designs, and the second in relation to the first.

    ``ratio`` is None if one is no number, or the first one is 0.
    """

    name: str
    first: Figure
    second: Figure
    ratio: float | None


@dataclass(frozen=True, slots=True)
class LayerPair:
    """A layer of two designs: its name, the one that is shown, and the figures of both.

    They are None where one has no such layer.
    """

    name: str
    label: str
    cycles: tuple[Figure, Figure]
    multipliers: tuple[Figure, Figure]
    lut: tuple[Figure, Figure]
    bram: tuple[Figure, Figure]
    sqnr_db: tuple[Figure, Figure]

    def pairs(self) -> tuple[tuple[Figure, Figure], ...]:
        """Return the figures in the order of their columns."""
        return self.cycles, self.multipliers, self.lut, self.bram, self.sqnr_db


@dataclass(frozen=True, slots=True)
class Beside:
    """Two builds side by side: what is known of either design, and of either's layers."""

    figures: tuple[FigurePair, ...]
    layers: tuple[LayerPair, ...]


def put_beside(first: Side, second: Side) -> Beside:
    """Return two builds side by side."""
    pairs = {name: (found, second.figures[name]) for name, found in first.figures.items()}
    figures = tuple(
        FigurePair(name, one, other, _ratio(one, other))
        for name, (one, other) in pairs.items()
        if one is not None or other is not None
    )
    known = list(dict.fromkeys((*first.layers, *second.layers)))
    short = short_names(known)

    def layer(name: str) -> LayerPair:
        one, other = (side.layers.get(name, NO_LAYER) for side in (first, second))
        return LayerPair(
            name,
            short[name],
            cycles=(one.cycles, other.cycles),
            multipliers=(one.multipliers, other.multipliers),
            lut=(one.lut, other.lut),
            bram=(one.bram, other.bram),
            sqnr_db=(one.sqnr_db, other.sqnr_db),
        )

    return Beside(figures, tuple(map(layer, known)))


def _figures() -> Iterator[tuple[str, Get]]:
    for name, key in (
        ("model", "model"), ("board", "board"), ("device", "device"), ("architecture", "arch"),
        ("inferences/s", "inferences_per_second"), ("cycles per inference", "cycles_per_inference"),
        ("latency in cycles", "latency_cycles"), ("clock in MHz", "clock_mhz"),
        ("possible clock in MHz", "fmax_mhz"), ("MACs", "macs"), ("multipliers", "multipliers"),
        ("share of their cycles used", "mac_utilization"),
    ):  # fmt: skip
        yield name, attrgetter(key)
    for key in ("lut", "ff", "dsp", "bram", "spram"):
        for kind in ("used", "estimated"):
            yield f"{key} {kind}", partial(_resource, key, kind)
    for key in ("float", "fixed", "rtl"):
        yield f"{key} score", partial(_score, key)
    yield "least signal to noise in dB", _least_ratio


def _resource(key: str, kind: str, report: Figures) -> int | None:
    found: int | None = getattr(report.resources[key], kind)
    return found


def _score(key: str, report: Figures) -> float | None:
    """Return a score; none of the Verilog's of fewer samples than the others are of."""
    accuracy = report.accuracy
    if accuracy is None or (key == "rtl" and not units.is_rtl_scored(accuracy)):
        return None
    found: float | None = getattr(accuracy, key)
    return found


def _least_ratio(report: Figures) -> float | None:
    known = (value for value in report.noise.values() if value is not None)
    return min(known, default=None)


def _ratio(first: Figure, second: Figure) -> float | None:
    if isinstance(first, int | float) and isinstance(second, int | float) and first:
        return second / first
    return None


def beside_tables(found: Beside, names: tuple[str, str]) -> Iterator[RenderableType]:
    """Yield the figures, and the layers that differ."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in (*names, "ratio"):
        table.add_column(name, justify="right")
    for row in found.figures:
        table.add_row(row.name, said(row.first), said(row.second), ratio(row.ratio))
    yield table
    differing = [layer for layer in found.layers if any(x != y for x, y in layer.pairs())]
    if differing:
        yield "\nlayers that differ"
        table = Table(box=None, pad_edge=False)
        table.add_column("layer", no_wrap=True)
        for key in _KEYS:
            table.add_column(key, justify="right")
        for layer in differing:
            table.add_row(layer.label, *map(change, layer.pairs()))
        yield table


_KEYS = ("cycles", "multipliers", "lut", "bram", "sqnr_db")


def said(value: Figure) -> str:
    """Write a figure, whatever it is."""
    if value is None:
        return units.MISSING
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.4g}" if value < 1000 else units.count(value)
    return units.count(value) if isinstance(value, int | float) else str(value)


def ratio(value: float | None) -> str:
    """Write a ratio; none where nothing changes."""
    return "" if value is None or value == 1 else f"{units.TIMES}{value:.4g}"


def change(pair: Sequence[Figure]) -> str:
    """Write both figures, or the one if they are equal."""
    return said(pair[0]) if pair[0] == pair[1] else f"{said(pair[0])} → {said(pair[1])}"


def write_beside(found: Beside, names: tuple[str, str], path: Path) -> None:
    """Write :func:`render_beside` to a file, whose folder is made if need be."""
    write_atomic(path, render_beside(found, names))


def render_beside(found: Beside, names: tuple[str, str]) -> str:
    """Return a page that needs no other file, no network and no script."""
    return page_template("beside.html").render(
        shown=units.printable, said=said, ratio=ratio, found=found, names=names, keys=_KEYS
    )
