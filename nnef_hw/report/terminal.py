"""The report as text: what a build prints when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nnef_hw.report.model.checks import Simulation
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import bounds, units
from nnef_hw.report.wording.labels import with_short_names

__all__ = ["print_report"]

BAR_COLUMNS = 12
NAME_COLUMNS = 16
GAP_COLUMNS = 2
DROPPED_FIRST = ("", "MACs", "BRAM", "op")

_ASCII = str.maketrans({
    units.TIMES: "x", units.MISSING: "-", units.MICRO: "u", "→": "->", "█": "#", "…": "~",
})  # fmt: skip


def print_report(report: Report, console: Console) -> None:
    """Print header, layers, resources and results; colour and width are the console's.

    Parameters
    ----------
    report
        What is known of a build.
    console
        Where to print. An encoding other than UTF-8 gets plain ASCII.
    """
    page = _Page(console)
    report, _ = with_short_names(report)
    place = f" → {report.board}"
    details = f"  {report.device}, {report.arch}"
    page.line(("bold", report.model), ("bold", place), ("dim", details))
    console.print()
    page.table(_layer_columns(report, page))
    console.print()
    page.table(_resource_columns(report, page))
    console.print()
    for title, parts in _results(report):
        page.line(("dim", f"{title:<12} "), *parts)


@dataclass(frozen=True, slots=True)
class _Column:
    """A table's column; bars are titled with nothing and stand at the left like words."""

    title: str
    cells: Sequence[Text]
    is_number: bool = True

    @property
    def width(self) -> int:
        return max(len(self.title), *(x.cell_len for x in self.cells), 0)


class _Page:
    """A console, and the conversion of text for it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.is_ascii = console.options.ascii_only

    def text(self, value: str, style: str = "") -> Text:
        value = units.printable(value)
        if self.is_ascii:
            value = value.translate(_ASCII).encode("ascii", "backslashreplace").decode()
        return Text(value, style)

    def line(self, *parts: tuple[str, str]) -> None:
        """Print styled texts without ever breaking the line: it may hold a path."""
        whole = Text.assemble(*(self.text(text, style) for style, text in parts))
        self.console.print(whole, soft_wrap=True)

    def bar(self, value: float | None, style: str = "") -> Text:
        """Draw a share as a bar; a share above 0 has at least one mark."""
        marks = round(min(value or 0.0, 1.0) * BAR_COLUMNS)
        return self.text("█" * max(marks, int(bool(value))), style)

    def table(self, columns: Sequence[_Column]) -> None:
        """Print names and numbers in one line per row: drop columns, then shorten the names."""
        names, *others = columns
        wanted = min(names.width, NAME_COLUMNS)
        for title in DROPPED_FIRST:
            if wanted + _width(others) > self.console.width:
                others = [x for x in others if x.title != title]
        room = max(self.console.width - _width(others), NAME_COLUMNS // 2)

        table = Table(
            box=None if self.is_ascii else box.SIMPLE_HEAD,
            padding=(0, GAP_COLUMNS - int(not self.is_ascii), 0, 0),
            pad_edge=False,
            header_style="dim",
            show_edge=False,
        )
        for column in (names, *others):
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            table.add_column(self.text(column.title), justify=justify, no_wrap=True)
        labels = units.shorten([x.plain for x in names.cells], room)
        for name, label, *cells in zip(
            names.cells, labels, *(x.cells for x in others), strict=True
        ):
            table.add_row(self.text(label, str(name.style)), *cells)
        self.console.print(table)


def _width(columns: Sequence[_Column]) -> int:
    return sum(x.width + GAP_COLUMNS for x in columns)


def _layer_columns(report: Report, page: _Page) -> list[_Column]:
    layers = report.layers
    slowest = units.bottlenecks(report)
    styles = ["yellow" if x.name in slowest else "" for x in layers]
    shares = [units.share(x.cycles, report.cycles_per_inference) for x in layers]

    def counts(title: str, key: str) -> _Column:
        return _Column(title, [page.text(units.count(getattr(x, key))) for x in layers])

    return [
        _Column("layer", [*map(page.text, (x.name for x in layers), styles)], is_number=False),
        _Column("op", [page.text(units.window(x)) for x in layers], is_number=False),
        _Column("image", [page.text(units.images(x)) for x in layers], is_number=False),
        counts("MACs", "macs"),
        *_hardware(report, page, counts),
        counts("cycles", "cycles"),
        _Column("interval", [*map(page.text, map(units.percent, shares), styles)]),
        _Column("", [*map(page.bar, shares, styles)], is_number=False),
    ]


def _hardware(report: Report, page: _Page, counts: Callable[[str, str], _Column]) -> list[_Column]:
    """Return columns for the hardware of layers, or for their use of a shared array."""
    if not report.in_turn:
        return [counts("mult", "multipliers"), counts("BRAM", "bram")]
    used = [page.text(units.percent(x.utilization)) for x in report.layers]
    if not report.memory:
        return [_Column("use", used)]
    return [_Column("use", used), counts("bytes", "memory_bytes"), counts("waits", "stall_cycles")]


def _resource_columns(report: Report, page: _Page) -> list[_Column]:
    rows = list(units.resource_rows(report.resources))
    styles = [
        "red" if (row.share or 0) > 1 else "dim" if row.use.used is None else "" for row in rows
    ]
    shares = [row.share for row in rows]

    def counts(title: str) -> _Column:
        return _Column(title, [page.text(units.count(getattr(row.use, title))) for row in rows])

    return [
        _Column("resource", [page.text(row.title) for row in rows], is_number=False),
        counts("used"),
        counts("estimated"),
        counts("available"),
        _Column("share", [*map(page.text, map(units.percent, shares), styles)]),
        _Column("", [*map(page.bar, shares, styles)], is_number=False),
    ]


Parts = list[tuple[str, str]]


def _results(report: Report) -> Iterator[tuple[str, Parts]]:
    clock = report.clock_mhz
    slowest = [units.middle(x, 40) for x in units.bottlenecks(report)]
    others = f" and {len(slowest) - 1} more" if len(slowest) > 1 else ""
    limit = f", set by {slowest[0]}{others}" if slowest else ""
    cycles = max((layer.cycles for layer in report.layers), default=0)
    if report.in_turn:
        limit = f", of which {slowest[0]}{others} takes {units.count(cycles)}" if slowest else ""
    elif 0 < cycles < report.cycles_per_inference:
        has_states = any(layer.op == "update" for layer in report.layers)
        waits = "waits for states" if has_states else "waits"
        limit += f" at {units.count(cycles)} and {waits}"
    batch = f" in batches of {report.batch}" if report.batch > 1 else ""
    yield "interval", [
        ("bold", f"{units.count(report.cycles_per_inference)} cycles"), ("", batch + limit)
    ]  # fmt: skip

    if report.stream:
        yield "step", [("", units.step(report))]

    for title, text in bounds.summary(report):
        yield title, [("dim", text)]

    memory = report.memory
    if memory:
        waits = f"{units.count(memory.stall_cycles)} cycles of waiting for them"
        yield memory.kind, [
            ("", f"{units.count(memory.bytes)} bytes per inference, {waits}")
        ]  # fmt: skip

    latency = report.latency_cycles
    time = units.duration(units.share(latency, clock * 1e6 if clock else None))
    yield "latency", [("", f"{units.count(latency)} cycles, {time}")]

    parts = [("", units.megahertz(clock))]
    if report.fmax_mhz is not None:
        parts.append(("", f", the routed design allows {units.megahertz(report.fmax_mhz)}: "))
    if report.timing_met is None:
        parts.append(("dim", ", timing not known before place and route"))
    else:
        met = report.timing_met
        parts.append(("green", "timing met") if met else ("bold red", "timing NOT met"))
    yield "clock", parts
    if report.clock:
        yield "clock from", [("dim", report.clock.text)]

    link = report.link_inferences_per_second
    over_link = "" if link is None else f", {units.rate(link)} over the host link"
    core = f"{units.rate(report.inferences_per_second)} inferences/s"
    yield "throughput", [("bold", core), ("", over_link)]

    used = report.mac_utilization if report.multipliers else None
    busy = "" if used is None else f", {units.percent(used)} busy"
    work = f" with {units.count(report.macs)} MACs"
    yield "multipliers", [("", f"{units.count(report.multipliers)}{busy}{work}")]

    yield from _checks(report)
    path = report.bitstream
    yield "bitstream", [("dim", "not made") if path is None else ("bold", path)]


def _checks(report: Report) -> Iterator[tuple[str, Parts]]:
    simulation = report.simulation
    if simulation is None:
        yield "simulation", [("dim", "not run")]
    else:
        frames = units.simulated_frames(simulation)
        if simulation.bit_exact:
            parts = [("green", "bit-exact"), ("", f" over {frames}")]
        else:
            wrong = units.count(simulation.mismatches)
            parts = [("bold red", "NOT bit-exact"), ("", f": {wrong} mismatches over {frames}")]
        parts.append(_prediction(simulation, report.cycles_per_inference))
        yield "simulation", parts

    accuracy = report.accuracy
    if accuracy is not None:
        metric = accuracy.metric
        is_scored = units.is_rtl_scored(accuracy)
        keys = ("float", "fixed", "rtl") if is_scored else ("float", "fixed")
        scores = ", ".join(f"{key} {units.score(getattr(accuracy, key), metric)}" for key in keys)
        title = "accuracy" if metric == "accuracy" else "mean error"
        samples = f" on {units.scored_samples(accuracy.samples, calibrated=accuracy.calibrated)}"
        if not is_scored:
            samples += f", rtl {units.rtl_agreement(accuracy)}"
        yield title, [("", scores), ("dim", samples)]


def _prediction(simulation: Simulation, steady: int) -> tuple[str, str]:
    """Say which predictions were wrong, or what is predicted for so short a run."""
    wrong = [
        f"{title} {units.count(found)} instead of {units.count(predicted)}"
        for title, found, predicted in (
            (
                "interval",
                simulation.cycles_per_inference,
                simulation.predicted_cycles_per_inference,
            ),
            ("latency", simulation.latency_cycles, simulation.predicted_latency_cycles),
        )
        if found not in {None, predicted}
    ]
    if wrong:
        return "red", f", {', '.join(wrong)} cycles"
    predicted = units.short_run_interval(simulation, steady)
    short = "" if predicted is None else f" for so short a run, {units.count(predicted)} a frame"
    return "", f", cycles as predicted{short}"
