"""Two builds side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from nnef_hw.report.pages.pages import page_template
from nnef_hw.report.wording import units
from nnef_hw.report.wording.labels import short_names
from nnef_hw.system.files import write_atomic

__all__ = ["Side", "beside_tables", "put_beside", "render_beside", "write_beside"]

Report = Mapping[str, Any]
Get = Callable[[Report], Any]


@dataclass(frozen=True, slots=True)
class Side:
    """What of one build is compared.

    Parameters
    ----------
    figures
        Of the design, by name; None where it has none.
    layers
        By name, the figures of each.
    """

    figures: Mapping[str, Any]
    layers: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, report: Report) -> Side:
        """Take it from a report.

        Raises
        ------
        LookupError, TypeError, AttributeError
            If that is none of this version.
        """
        noise = report["noise"]
        return cls(
            figures={name: get(report) for name, get in _figures()},
            layers={
                layer["name"]: {
                    **{key: layer[key] for key in ("cycles", "multipliers", "lut", "bram")},
                    "sqnr_db": noise.get(layer["name"]),
                }
                for layer in report["layers"]
            },
        )


def put_beside(first: Side, second: Side) -> dict[str, Any]:
    """Return two builds side by side.

    Returns
    -------
    dict
        ``figures`` of the designs: ``name``, ``first``, ``second`` and ``ratio`` (second to first;
        None if it is no number, or 0). ``layers`` by their names: ``name``, the ``label`` that is
        shown, and of both ``cycles``, ``multipliers``, ``lut``, ``bram``, ``sqnr_db``; None where
        one has no such layer.
    """
    figures = []
    for name in first.figures:
        pair = first.figures[name], second.figures[name]
        if pair != (None, None):
            figures.append({"name": name, "first": pair[0], "second": pair[1],
                            "ratio": _ratio(*pair)})  # fmt: skip
    known = list(dict.fromkeys((*first.layers, *second.layers)))
    short = short_names(known)
    rows = [
        {
            "name": name,
            "label": short[name],
            **{key: [side.layers.get(name, {}).get(key) for side in (first, second)]
               for key in _KEYS},
        }
        for name in known
    ]  # fmt: skip
    return {"figures": figures, "layers": rows}


def _figures() -> Iterator[tuple[str, Get]]:
    for name, key in (
        ("model", "model"), ("board", "board"), ("device", "device"), ("architecture", "arch"),
        ("inferences/s", "inferences_per_second"), ("cycles per inference", "cycles_per_inference"),
        ("latency in cycles", "latency_cycles"), ("clock in MHz", "clock_mhz"),
        ("possible clock in MHz", "fmax_mhz"), ("MACs", "macs"), ("multipliers", "multipliers"),
        ("share of their cycles used", "mac_utilization"),
    ):  # fmt: skip
        yield name, itemgetter(key)
    for key in ("lut", "ff", "dsp", "bram", "spram"):
        for kind in ("used", "estimated"):
            yield f"{key} {kind}", partial(_resource, key, kind)
    for key in ("float", "fixed", "rtl"):
        yield f"{key} score", partial(_score, key)
    yield "least signal to noise in dB", _least_ratio


def _resource(key: str, kind: str, report: Report) -> Any:
    return report["resources"][key][kind]


def _score(key: str, report: Report) -> Any:
    """Return a score; none of the Verilog's of fewer samples than the others are of."""
    accuracy = report["accuracy"]
    if accuracy is None or (key == "rtl" and not units.is_rtl_scored(accuracy)):
        return None
    return accuracy[key]


def _least_ratio(report: Report) -> float | None:
    known = (value for value in report["noise"].values() if value is not None)
    return min(known, default=None)


def _ratio(first: Any, second: Any) -> float | None:
    numbers = all(isinstance(x, int | float) for x in (first, second))
    return second / first if numbers and first else None


def beside_tables(found: Mapping[str, Any], names: tuple[str, str]) -> Iterator[RenderableType]:
    """Yield the figures, and the layers that differ."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in (*names, "ratio"):
        table.add_column(name, justify="right")
    for row in found["figures"]:
        table.add_row(row["name"], *(said(row[key]) for key in ("first", "second")),
                      ratio(row["ratio"]))  # fmt: skip
    yield table
    differing = [row for row in found["layers"] if any(row[key][0] != row[key][1] for key in _KEYS)]
    if differing:
        yield "\nlayers that differ"
        table = Table(box=None, pad_edge=False)
        table.add_column("layer", no_wrap=True)
        for key in _KEYS:
            table.add_column(key, justify="right")
        for row in differing:
            table.add_row(row["label"], *(change(row[key]) for key in _KEYS))
        yield table


_KEYS = ("cycles", "multipliers", "lut", "bram", "sqnr_db")


def said(value: Any) -> str:
    """Write a figure, whatever it is."""
    if value is None:
        return units.MISSING
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.4g}" if value < 1000 else units.count(value)
    return units.count(value) if isinstance(value, int | float) else str(value)


def ratio(value: float | None) -> str:
    """Write a ratio; none where nothing changes."""
    return "" if value is None or value == 1 else f"{units.TIMES}{value:.4g}"


def change(pair: list[Any]) -> str:
    """Write both figures, or the one if they are equal."""
    return said(pair[0]) if pair[0] == pair[1] else f"{said(pair[0])} → {said(pair[1])}"


def write_beside(found: Mapping[str, Any], names: tuple[str, str], path: Path) -> None:
    """Write :func:`render_beside` to a file, whose folder is made if need be."""
    write_atomic(path, render_beside(found, names))


def render_beside(found: Mapping[str, Any], names: tuple[str, str]) -> str:
    """Return a page that needs no other file, no network and no script."""
    return page_template("beside.html").render(
        shown=units.printable, said=said, ratio=ratio, found=found, names=names, keys=_KEYS
    )
