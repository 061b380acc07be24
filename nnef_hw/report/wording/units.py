"""Formatting of numbers, sizes and names in reports; a missing value is a dash."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import ceil, floor

from nnef_hw.report.model.checks import Accuracy, Scores, Simulation
from nnef_hw.report.model.device import ResourceUse
from nnef_hw.report.model.layers import LayerReport
from nnef_hw.report.model.report import Report

__all__ = [
    "MICRO",
    "MISSING",
    "TIMES",
    "ResourceRow",
    "bottlenecks",
    "columns",
    "count",
    "decibels",
    "duration",
    "folding",
    "image",
    "images",
    "is_rtl_scored",
    "megahertz",
    "middle",
    "percent",
    "pieces",
    "printable",
    "rate",
    "reads",
    "resource_rows",
    "rtl_agreement",
    "score",
    "scored_samples",
    "share",
    "shorten",
    "step",
    "total",
    "window",
]

MISSING = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"
MICRO = "\N{MICRO SIGN}"

_RESOURCES = {"lut": "LUT", "ff": "FF", "dsp": "DSP", "bram": "block RAM", "spram": "SPRAM"}


def printable(text: str) -> str:
    r"""Spell out what would move the cursor, reorder text or break XML, as in ``\x1b``."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def columns(text: str) -> int:
    """Width in columns of a fixed-pitch font."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "FW" else 1
        for c in text
    )


def step(report: Report) -> str:
    """Compare the cost of a step of a stream with the cost of a window."""
    stream = report.stream
    assert stream is not None
    rows = sum(stream.rows.values())
    text = (
        f"{count(rows)} row{'s' * (rows > 1)}: {count(report.macs)} MACs, "
        f"{count(report.cycles_per_inference)} cycles"
    )
    if stream.window_rows is not None:
        window_rows = sum(stream.window_rows.values())
        text += f"; a window of {count(window_rows)}: {count(stream.window_macs)} MACs"
    if stream.window_cycles is not None:
        text += f", {count(stream.window_cycles)} cycles"
    return text


def middle(text: str, limit: int) -> str:
    """Shorten to a width, dropping the middle."""
    if columns(text) <= limit:
        return text
    head, tail = ceil((limit - 1) / 2), floor((limit - 1) / 2)
    return f"{_prefix(text, head)}…{_prefix(text[::-1], tail)[::-1]}"


def ending(text: str, limit: int) -> str:
    """Shorten to a width, dropping the beginning: layers of one block differ at their ends."""
    return text if columns(text) <= limit else f"…{_prefix(text[::-1], limit - 1)[::-1]}"


def shorten(names: Sequence[str], limit: int) -> list[str]:
    """Shorten the names that are too wide, first by the path that all of these share.

    Of several the ends are kept: layers of one block differ there.
    """
    long = [x for x in names if columns(x) > limit]
    if len(long) < 2:
        return [middle(x, limit) for x in names]
    head, tail = _shared_path(long), _shared_path([x[::-1] for x in long])

    def short(name: str) -> str:
        if columns(name) <= limit:
            return name
        kept = f"…{name[head:]}" if head else name
        if columns(kept) > limit and tail and len(name) > head + tail:
            kept = f"{kept[:-tail]}…"
        return ending(kept, limit)

    return [short(x) for x in names]


def _shared_path(names: Sequence[str]) -> int:
    """Length of what all begin with, back to the last separator; leaves something of each."""
    heads = (x[:-1] for x in names)
    same = takewhile(lambda chars: len(set(chars)) == 1, zip(*heads, strict=False))
    return len(re.sub(r"[^/.:]*$", "", "".join(chars[0] for chars in same)))


def pieces(name: str) -> list[str]:
    """Split a name after its separators, where a line may break."""
    return re.findall(r"[^/.:]*[/.:]|[^/.:]+", name)


def _prefix(text: str, limit: int) -> str:
    while columns(text) > limit:
        text = text[:-1]
    return text


def count(value: float | None) -> str:
    """Whole number with thousands separated."""
    return MISSING if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """Share of 1 in percent; only 1 itself reads 100.0%, and only 0 reads 0.0%."""
    if value is None:
        return MISSING
    if value == float("inf"):
        return "over"
    if 0 < value < 0.001:
        return "<0.1%"
    return "99.9%" if 0.999 < value < 1 else f"{value * 100:.1f}%"


def rate(value: float | None) -> str:
    """Write three digits, or all digits before the point."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def megahertz(value: float | None) -> str:
    """Clock in MHz, to 10 kHz."""
    return MISSING if value is None else f"{value:.2f}".rstrip("0").rstrip(".") + " MHz"


def decibels(value: float | None) -> str:
    """Ratio in dB, to a tenth."""
    return MISSING if value is None else f"{value:.1f} dB"


def duration(seconds: float | None) -> str:
    """Time with three digits in the unit that fits."""
    if seconds is None:
        return MISSING
    if seconds >= 60:
        minutes, remainder = divmod(round(seconds), 60)
        return f"{minutes} min {remainder} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), (f"{MICRO}s", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return "0 s"


def image(shape: Sequence[int]) -> str:
    """Height x width x channels, or only the channels of a vector."""
    height, width, channels = shape
    return f"{channels:,}" if height == width == 1 else f"{height}{TIMES}{width}{TIMES}{channels}"


def images(layer: LayerReport) -> str:
    """Input and output image of a layer."""
    return f"{image(layer.input_image)} → {image(layer.output_image)}"


def window(layer: LayerReport) -> str:
    """Operator of a layer with its kernel."""
    kernel = layer.kernel
    size = " " + TIMES.join(map(str, kernel)) if kernel else ""
    operator = "depthwise" if layer.kind == "depthwise" else layer.op
    return f"{operator}{size}"


def folding(layer: LayerReport) -> str:
    """Folding of a layer: the factors of its number of multipliers."""
    counts = {"row": layer.rows, "lane": layer.lanes, "tap": layer.taps}
    factors = [f"{n} {unit}{'s' * (n > 1)}" for unit, n in counts.items() if n > 1]
    return f" {TIMES} ".join(factors) or "1 row"


def reads(layers: Sequence[LayerReport], layer: LayerReport) -> str:
    """List the sources of a layer and their FIFOs; empty if that is the layer before, or none."""
    names = {other.tensor: other.name for other in layers}
    place, sources = layers.index(layer), layer.sources
    if not sources:
        return ""
    before = layers[place - 1].tensor if place else sources[0].tensor
    if [(source.tensor, source.fifo) for source in sources] == [(before, 0)]:
        return ""
    return ", ".join(
        names.get(source.tensor, source.tensor)
        + (f" (FIFO of {count(source.fifo)})" if source.fifo else "")
        for source in sources
    )


def score(value: float | None, metric: str) -> str:
    """Accuracy in percent, or a mean absolute error as it is."""
    if value is None or metric != "accuracy":
        return MISSING if value is None else f"{value:.4g}"
    return f"{value * 100:.2f}%"


def simulated_frames(simulation: Simulation) -> str:
    """Write how many frames were simulated, and of how many."""
    frames, available = simulation.frames, simulation.frames_given
    if frames == available:
        return f"{count(frames)} frames"
    return f"{count(frames)} of {count(available)} frames (--frames all for all)"


def short_run_interval(simulation: Simulation, steady: int) -> int | None:
    """Return the interval predicted for a run too short to reach the steady one, otherwise None."""
    predicted = simulation.predicted_cycles_per_inference
    return None if predicted == steady else predicted


def scored_samples(samples: int, *, calibrated: bool) -> str:
    """Write how many samples were scored, and whether the same ones calibrated."""
    also = ""
    if calibrated:
        also = ", those that calibrated" if samples > 1 else ", the one that calibrated"
    return f"{count(samples)} sample{'s' * (samples != 1)}{also}"


def is_rtl_scored(accuracy: Scores) -> bool:
    """Whether the score of the Verilog is of the samples that the others are of."""
    return accuracy.rtl_samples == accuracy.samples


def rtl_agreement(accuracy: Accuracy) -> str:
    """Say on how many samples the Verilog gives what the fixed-point model does."""
    equal = "equal to" if accuracy.rtl_equal else "unlike"
    samples = accuracy.rtl_samples
    return f"{equal} fixed on {count(samples)} of them" if samples else "run on none of them"


def share(part: float | None, whole: float | None) -> float | None:
    """``part / whole``, or None if a part is missing or the whole is 0."""
    return None if part is None or not whole else part / whole


def total(layers: Sequence[LayerReport], key: str) -> int:
    """Sum of one figure over the layers, unknown ones left out."""
    return sum(getattr(layer, key) or 0 for layer in layers)


def bottlenecks(report: Report) -> list[str]:
    """Names of the layers that take longest, which set the interval; without cycles, none."""
    longest = max((layer.cycles for layer in report.layers), default=0)
    return [layer.name for layer in report.layers if layer.cycles == longest > 0]


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """Resources of one kind as a row.

    Parameters
    ----------
    title
        What they are called.
    use
        Numbers of them.
    share
        Share of the device that is used, or estimated before synthesis; above 1 the design does
        not fit, and it is infinite where the device has none of them.
    """

    title: str
    use: ResourceUse
    share: float | None


def resource_rows(resources: Mapping[str, ResourceUse]) -> Iterator[ResourceRow]:
    """Yield a row for each resource that is available, used or estimated."""
    for key, title in _RESOURCES.items():
        use = resources.get(key)
        if use is None or not (use.used or use.available or use.estimated):
            continue
        wanted = use.estimated if use.used is None else use.used
        lacking = wanted and not use.available
        yield ResourceRow(title, use, math.inf if lacking else share(wanted, use.available))
