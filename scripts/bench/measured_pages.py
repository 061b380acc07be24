"""Write the tables of measured figures into README.md and docs/ from ``docs/measured/builds.json``.

A page says where a table stands, with two comments: ``<!-- measured: NAME -->`` and
``<!-- end of measured -->``. What is between them is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bench_builds import SETS
from measured import ROOT, Measured, read

__all__ = ["PAGES", "with_tables", "write_pages"]

PAGES = (ROOT / "README.md", ROOT / "docs" / "gallery.md")
OLD = "†"
OLD_NOTE = f"{OLD} Measured with an earlier version, whose netlist was another one."
BLOCK = re.compile(r"(<!-- measured: (?P<name>[\w ]+) -->\n).*?(<!-- end of measured -->)", re.S)
Cell = Callable[[Measured], str]
Columns = Mapping[str, Cell]


def with_tables(text: str) -> str:
    """Return a page's text with its tables as they are measured.

    Raises
    ------
    KeyError
        If it names a table that there is not.
    """
    tables = _tables()
    return BLOCK.sub(lambda found: f"{found[1]}{tables[found['name']].text}{found[3]}", text)


class Table(NamedTuple):
    """A table: its rows, and its columns by their headings."""

    rows: Sequence[Measured]
    columns: Columns

    @property
    def text(self) -> str:
        """The table in Markdown, with a note if any row is old."""
        if not self.rows:
            return "None was measured yet.\n"
        texts = ("network", "board")
        lines = [
            f"| {' | '.join(self.columns)} |",
            f"|{'|'.join('---' if name in texts else '---:' for name in self.columns)}|",
            *(
                f"| {' | '.join(cell(row) for cell in self.columns.values())} |"
                for row in self.rows
            ),
        ]
        notes = ["", OLD_NOTE] if any(row.old for row in self.rows) else []
        return "\n".join([*lines, *notes]) + "\n"


def _network(row: Measured) -> str:
    options = f"<br>`{row.options}`" if row.options else ""
    return f"{row.network}{' ' + OLD if row.old else ''}{options}"


def _clock(row: Measured) -> str:
    found = row.figures.fmax_mhz
    return f"{row.figures.clock_mhz:g} / {'not placed' if found is None else f'{found:.1f}'}"


def _scores(row: Measured) -> str:
    figures = row.figures
    if figures.fixed_score is None:
        return ""
    digits = "mae {:.4f} / {:.4f}" if figures.metric == "mae" else "{:.2%} / {:.2%}"
    return digits.format(figures.score, figures.fixed_score)


def _frames(row: Measured) -> str:
    figures = row.figures
    return f"{figures.frames:,} of {figures.samples:,}"


def _second(step: str) -> Cell:
    return lambda row: f"{(row.figures.seconds or {}).get(step, 0):.0f}"


DESIGN: Columns = {
    "network": _network,
    "board": lambda row: row.board,
    "cycles": lambda row: f"{row.figures.cycles:,}",
    "latency": lambda row: f"{row.figures.latency:,}",
    "multipliers": lambda row: f"{row.figures.multipliers:,}",
    "busy": lambda row: f"{row.figures.utilization:.1%}",
    "clock / fmax (MHz)": _clock,
    "inferences/s": lambda row: f"{row.figures.rate:,.0f}",
    "LUTs": lambda row: f"{row.figures.luts:,}",
    "DSP blocks": lambda row: f"{row.figures.dsp}",
    "block RAMs": lambda row: f"{row.figures.bram}",
    "samples, bit-exact": _frames,
    "float / fixed": _scores,
}
SPEED: Columns = {
    "network": _network,
    "board": lambda row: row.board,
    "whole build (s)": _second("total"),
    "yosys": _second("yosys"),
    "place and route": _second("nextpnr"),
    "simulation": _second("simulate"),
}
CHOSEN: Mapping[tuple[str, str], tuple[str, str]] = {
    ("digits_cnn", "icebreaker"): ("digits_cnn", ""),
    ("digits_cnn", "tang_nano_20k"): ("digits_cnn", ""),
    ("mlperf_kws_dscnn", "icebreaker"): ("DS-CNN, keyword spotting", ""),
    ("digits_vit", "tang_nano_20k"): (
        "[digits_vit](examples/digits_vit/README.md), a vision transformer", "",
    ),
    ("mlperf_ic_resnet8", "ulx3s_85f"): (
        "ResNet-8, image classification", "6,790, fpgaConvNet on a ZC706",
    ),
    ("mlperf_kws_dscnn", "ulx3s_85f"): ("DS-CNN", "3,088, fpgaConvNet on a ZedBoard"),
    ("mlperf_vww_mobilenetv1", "ulx3s_85f"): (
        "MobileNetV1, visual wake words", "1,388, fpgaConvNet on a ZC706",
    ),
}  # fmt: skip
"""Rows of README by network and board, with what they are called and somebody else's figure."""
SUMMARY: Columns = {
    "network": lambda row: CHOSEN[row.network, row.board][0] + (f" {OLD}" if row.old else ""),
    "board": lambda row: row.board,
    "inferences/s": lambda row: f"{row.figures.rate:,.0f}",
    "clock": lambda row: f"{row.figures.clock_mhz:g} MHz, {row.label}",
    "somebody else's, with vendor tools": lambda row: CHOSEN[row.network, row.board][1],
}


def _fastest(rows: Iterable[Measured]) -> list[Measured]:
    """Return the fastest row of each chosen network and board, in the order of the choice."""
    found = []
    for key in CHOSEN:
        known = [row for row in rows if (row.network, row.board) == key]
        found += [max(known, key=lambda row: row.figures.rate)] if known else []
    return found


def _tables() -> dict[str, Table]:
    rows = read()
    by_set = {
        name: [rows[build.key] for build in builds if build.key in rows]
        for name, (_, builds) in SETS.items()
    }
    return {
        **{name: Table(of_set, DESIGN) for name, of_set in by_set.items()},
        "chosen": Table(_fastest(rows.values()), SUMMARY),
        "tools": Table([row for row in by_set["full"] if row.figures.seconds], SPEED),
    }


def write_pages() -> None:
    """Write all pages."""
    for page in PAGES:
        page.write_text(with_tables(page.read_text()))


if __name__ == "__main__":
    write_pages()
