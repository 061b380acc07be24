"""Sentences about what limits a design's interval, and what it takes to halve it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nnef_hw.report.model.limits import BoardOutlook, Headroom
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import units

__all__ = ["ceilings", "explain", "names", "summary"]

FEW = 3
_UNITS = {"lut": "LUTs", "dsp": "DSP blocks", "bram": "block RAMs"}


def names(layers: Sequence[str], most: int = FEW) -> str:
    """List some names, and how many more there are."""
    if len(layers) > most + 1:
        return f"{', '.join(layers[:most])} and {len(layers) - most} more"
    *first, last = layers
    return f"{', '.join(first)} and {last}" if first else last


def explain(report: Report) -> Iterator[str]:
    """Yield sentences: what bounds the interval, and what it would take to halve it."""
    slowest = units.bottlenecks(report)
    if not slowest:
        return
    interval, headroom = report.cycles_per_inference, report.headroom
    cycles = max(layer.cycles for layer in report.layers)
    verb = "takes" if len(slowest) == 1 else "take"
    text = f"{names(slowest)} {verb} {units.count(cycles)} cycles a frame"
    if report.in_turn:
        text += f" of {units.count(interval)}: all layers take turns on one array"
    elif report.loop:
        text += (
            f", but the way around the loop of {names(report.loop)} {units.count(interval)}: "
            "a step begins when the one before has ended. No faster folding that fits shortens it"
        )
    elif interval > cycles:
        text += f"; waits between layers add {units.count(interval - cycles)}"
    yield f"{text}."
    if report.loop:
        return
    half = f"Half the interval, {units.count(headroom.wanted)} cycles,"
    for place, ((codes, cycles), layers) in enumerate(_limits(headroom)):
        reason = f"no folding takes fewer than {units.count(cycles)} cycles"
        if codes:
            beat = report.beat
            reason = f"streams pass one {beat} per cycle, and here {units.count(codes)} a frame"
        yield f"{half if not place else 'It'} is out of reach for {names(layers)}: {reason}."
    if headroom.changes:
        start = half
        if headroom.limits:
            start = f"The best that any folding gives, {units.count(headroom.cycles)} cycles,"
        joint = ", and " if headroom.lacking else ", "
        yield (
            f"{start} would take {units.count(headroom.multipliers)} multipliers instead of "
            f"{units.count(report.multipliers)}{joint}"
            f"{_resources(headroom, 'instead of at most')}."
        )
    elif headroom.limits:
        yield "No folding of these layers is faster, whatever the device."
    for layer, text in _overlaps(report):
        yield f"{layer} computes several frames at once, {text}."
    for arch, text, _ in _others(report):
        yield f"With --arch {arch}: {text}."


def summary(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the explanation in one or two lines, each with its title."""
    for arch, text, is_refusal in _others(report):
        yield "otherwise", f"--arch {arch}: {'refused, see the report' if is_refusal else text}"
    for layer, text in _overlaps(report):
        yield "overlap", f"{units.middle(layer, 40)}: {text}"
    if loop := report.loop:
        around = units.count(report.cycles_per_inference)
        yield "bound by", f"the loop of {len(loop)} layers: {around} cycles"
        return
    headroom = report.headroom
    wanted, limits = units.count(headroom.wanted), headroom.limits
    cost = f"{units.count(headroom.multipliers)} multipliers, {_resources(headroom)}"
    if not limits:
        if headroom.changes:
            yield "halved", f"{wanted} cycles: {cost}"
        return
    (codes, cycles), layers = next(_limits(headroom))
    count = layers[0] if len(layers) == 1 else f"{len(layers)} layers"
    reason = f"{units.count(cycles)} cycles in any folding"
    if codes:
        reason = f"{units.count(codes)} {report.beat}s, one per cycle"
    yield "halved", f"{wanted} cycles: not with {units.middle(count, 14)}, {reason}"
    if headroom.changes:
        yield "at best", f"{units.count(headroom.cycles)} cycles: {cost}"


def _others(report: Report) -> Iterator[tuple[str, str, bool]]:
    """Yield the architectures that were not taken: what they would give, or why they cannot."""
    for other in report.other_architectures:
        text = other.refused
        if text is None:
            cycles, luts = units.count(other.cycles_per_inference), units.count(other.lut)
            text = f"{cycles} cycles, an estimate of {luts} LUTs"
        yield other.arch, text, other.refused is not None


def _overlaps(report: Report) -> Iterator[tuple[str, str]]:
    """Yield every layer that computes several frames at once, and what that gains and costs."""
    for layer in report.layers:
        if overlap := layer.overlap:
            cycles = [units.count(n) for n in (layer.cycles, overlap.cycles_alone)]
            more = [(getattr(overlap, name), _UNITS[name]) for name in ("lut", "bram")]
            cost = " and ".join(
                f"{units.count(n)} {unit.removesuffix('s') if n == 1 else unit}" for n, unit in more
            )
            yield layer.name, f"every {cycles[0]} cycles instead of {cycles[1]}, for {cost} more"


def ceilings(report: Report) -> Iterator[tuple[str, str, BoardOutlook, str]]:
    """Yield boards by the speed they could reach, fastest first: names, device, row, and the end.

    Boards with the same device and clock share a line.
    """
    lines: dict[str, list[BoardOutlook]] = {}
    for row in report.boards:
        lines.setdefault(repr(replace(row, board="")), []).append(row)
    for rows in sorted(lines.values(), key=lambda rows: -(rows[0].inferences_per_second or 0)):
        boards = ", ".join(row.board for row in rows)
        yield boards, rows[0].device, rows[0], _end(rows[0])


def _end(row: BoardOutlook) -> str:
    """Name the resource or layer that keeps a board from being faster."""
    interval = row.cycles_per_inference
    if interval is None:
        return "it does not fit"
    if interval == row.floor:
        return "no folding is faster"
    ends = [f"{_UNITS[name]} ({units.count(n)})" for name, n in row.with_twice.items()]
    if not ends and row.floor is None:
        return "not known"
    return " or ".join(ends) or "several resources at once"


def _limits(headroom: Headroom) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Yield why layers are not faster: codes that a stream passes, or else cycles, and their names.

    What limits most layers comes first.
    """
    reasons: dict[tuple[int, int], list[str]] = {}
    for limit in headroom.limits:
        reason = (0, limit.cycles)
        if limit.codes > headroom.wanted:
            reason = (limit.codes, 0)
        reasons.setdefault(reason, []).append(limit.name)
    yield from sorted(reasons.items(), key=lambda item: -len(item[1]))


def _resources(headroom: Headroom, between: str = "of") -> str:
    if not headroom.lacking:
        return "which the device has"
    shortages = [
        f"{units.count(row.wanted)} {_UNITS[row.resource]} {between} {units.count(row.usable)}"
        for row in headroom.lacking
    ]
    return " and ".join(shortages)
