"""Plans of a network for several boards, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from nnef_hw.report.model.network import Outlook
from nnef_hw.report.wording import units

__all__ = ["fastest_first", "survey_tables"]


def fastest_first(rows: Sequence[Outlook], *, by_latency: bool = False) -> list[Outlook]:
    """Return the rows of boards that a network fits, by their rate or by their latency."""

    def order(row: Outlook) -> float:
        return (row.latency_seconds or 0) if by_latency else -(row.inferences_per_second or 0)

    return sorted((row for row in rows if row.fits), key=order)


def survey_tables(rows: Sequence[Outlook], *, by_latency: bool = False) -> Iterator[RenderableType]:
    """Yield a table of the boards that a network fits, the fastest first, and others' refusals.

    With ``by_latency`` those stand first whose result comes soonest.
    """
    fitting = fastest_first(rows, by_latency=by_latency)
    table = Table(box=None, pad_edge=False)
    for heading in ("board", "arch"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        "MHz",
        "cycles",
        "latency",
        "per second",
        "busy",
        "LUT",
        "DSP",
        "BRAM",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("bound by", no_wrap=True, max_width=10)
    for row in fitting:
        table.add_row(
            row.board, row.arch, f"{row.clock_mhz:g}",
            units.count(row.cycles_per_inference), units.duration(row.latency_seconds),
            units.rate(row.inferences_per_second),
            units.percent(row.mac_utilization),
            *(units.percent(share) for share in (row.lut, row.dsp, row.bram)), row.bottleneck,
        )  # fmt: skip
    if fitting:
        yield table
    clocks: dict[str, list[str]] = {}
    for row in rows:
        if row.clock:
            clocks.setdefault(row.clock.rule, []).append(row.board)
    for rule, boards in clocks.items():
        yield Text(f"\nclock of {', '.join(boards)}: {rule}", style="dim")
    refused: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if not row.fits:
            refused.setdefault((row.refusal, row.remedy), []).append(row.board)
    for (refusal, remedy), boards in refused.items():
        yield Text(f"\n{', '.join(boards)}: {refusal}" + (f"; {remedy}" if remedy else ""))
