"""A recording and what a simulated board made of it: waveforms, spectrogram, scores, events."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnef_hw.arithmetic.numerics import FloatArray, IntArray
from nnef_hw.report.model.hearing import Curve, Hearing
from nnef_hw.report.pages.pages import page_template
from nnef_hw.report.wording import units
from nnef_hw.system.files import write_atomic

__all__ = ["SoundPlot", "draw_sound", "render_sound", "write_sound"]

WIDTH, LEFT, TOP = 960.0, 60.0, 22.0
WAVE, SPECTRUM, SCORES, GAP = 90.0, 150.0, 120.0, 26.0
COLUMNS = 900
"""Columns of the waveform and of the spectrogram, at most."""
POINTS = 512
RANGE_DB = 80.0
"""What the spectrogram shows below the loudest place."""
MOST_TICKS = 10
COLORS = 8


@dataclass(frozen=True, slots=True)
class Line:
    """The scores of a class."""

    points: str
    color: int
    title: str


@dataclass(frozen=True, slots=True)
class Panel:
    """The scores of an output: a line for each class, limits of the axis, thresholds of sinks."""

    y: float
    title: str
    lines: tuple[Line, ...]
    low: str
    high: str
    thresholds: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Wave:
    """The waveform of a channel: where it begins, its name, and the points of its outline."""

    y: float
    title: str
    points: str


@dataclass(frozen=True, slots=True)
class Spectrum:
    """A spectrogram: where it begins, a picture as a data URI, and the highest frequency."""

    y: float
    picture: str
    highest: str


@dataclass(frozen=True, slots=True)
class SoundPlot:
    """Geometry of the drawing; ``events`` and ``ticks`` are places across with texts."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float
    waves: tuple[Wave, ...]
    wave_height: float
    spectrum: Spectrum | None
    spectrum_height: float
    panels: tuple[Panel, ...]
    panel_height: float
    events: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]


def write_sound(found: Hearing, path: Path) -> None:
    """Write :func:`render_sound` to a file."""
    write_atomic(path, render_sound(found))


def render_sound(found: Hearing) -> str:
    """Return a page that needs no other file, no network and no script."""
    return page_template("sound.html").render(
        say=units, told=found.told, name=found.sound.name, plot=draw_sound(found)
    )


def draw_sound(found: Hearing) -> SoundPlot:
    """Lay out what was heard, and what was found in it, over the same time."""
    sound = found.sound
    seconds = len(sound.samples) / sound.rate
    across = (WIDTH - LEFT - 12) / seconds

    def x(time: float) -> float:
        return round(LEFT + min(max(time, 0.0), seconds) * across, 1)

    waves = tuple(
        Wave(
            TOP + n * (WAVE + GAP), title,
            _wave(sound.samples[:, n], sound.limits, TOP + n * (WAVE + GAP), across * seconds),
        )
        for n, title in enumerate(sound.channels)
    )  # fmt: skip
    first = TOP + len(waves) * (WAVE + GAP)
    spectrum = None
    if sound.has_spectrum:
        spectrum = Spectrum(first, _spectrum(sound.samples[:, 0]), f"{sound.rate / 2_000:g} kHz")
        first += SPECTRUM + GAP
    panels = tuple(
        _panel(curve, first + n * (SCORES + GAP), across, sound.frame / sound.rate)
        for n, curve in enumerate(sound.curves)
    )
    bottom = first + len(panels) * (SCORES + GAP) - GAP
    return SoundPlot(
        width=WIDTH, height=bottom + 24, left=LEFT, top=TOP, right=WIDTH - 12, bottom=bottom,
        waves=waves, wave_height=WAVE, spectrum=spectrum, spectrum_height=SPECTRUM,
        panels=panels, panel_height=SCORES,
        events=tuple((x(event.seconds), event.name) for event in found.told.events),
        ticks=tuple((x(time), f"{time:g} s") for time in _ticks(seconds)),
    )  # fmt: skip


def _ticks(seconds: float) -> Iterator[float]:
    """Yield round times."""
    step = 10.0 ** np.floor(np.log10(seconds))
    step = next(step * n for n in (0.1, 0.2, 0.5, 1.0) if seconds / (step * n) <= MOST_TICKS)
    for n in range(int(seconds / step) + 1):
        yield float(round(n * step, 6))


def _wave(samples: IntArray, limits: tuple[int, int], top: float, width: float) -> str:
    """Return the outline of the samples of each column: the highest, then back the lowest."""
    parts = np.array_split(samples, min(COLUMNS, len(samples)))
    places = LEFT + (np.arange(len(parts)) + 0.5) * width / len(parts)
    high, low = (np.array([pick(part) for part in parts]) for pick in (np.max, np.min))

    lowest, highest = limits

    def points(values: FloatArray, at: FloatArray) -> list[str]:
        y = top + WAVE * (highest + 1 - values) / (highest + 1 - lowest)
        return [f"{a:.1f},{b:.1f}" for a, b in zip(at, y, strict=True)]

    return " ".join(points(high, places) + points(low, places)[::-1])


def _spectrum(samples: IntArray) -> str:
    """Return the power of the sound by time and frequency as a PNG picture, loud places dark."""
    padded = np.concatenate([samples, np.zeros(POINTS)])
    count = min(COLUMNS, max(1, len(samples) // (POINTS // 4)))
    begins = np.linspace(0, len(samples) - 1, count).astype(np.int64)
    frames = padded[begins[:, None] + np.arange(POINTS)] * np.hanning(POINTS)
    power = np.abs(np.fft.rfft(frames)[:, : POINTS // 2]) ** 2
    decibels = 10 * np.log10(np.maximum(power, 1.0))
    shade = ((decibels - decibels.max()) / RANGE_DB + 1).clip(0, 1)
    rows = 255 - np.rint(255 * shade.T[::-1]).astype(np.uint8)
    return "data:image/png;base64," + b64encode(_png(rows)).decode("ascii")


def _png(rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """Return a picture of 8 bits of grey."""
    height, width = rows.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    )  # fmt: skip


def _panel(curve: Curve, top: float, across: float, step: float) -> Panel:
    """Return the lines of an output's scores."""
    scores = curve.scores
    wanted = [*scores.reshape(-1), *(threshold for threshold, _ in curve.thresholds)]
    low, high = float(min(wanted)), float(max(wanted))
    span = high - low or 1.0

    def y(value: float) -> float:
        return round(top + SCORES * (1 - (value - low) / span), 1)

    places = LEFT + (np.arange(len(scores)) + 1) * step * across
    lines = (
        Line(
            " ".join(f"{x:.1f},{y(value)}" for x, value in zip(places, column, strict=True)),
            n % COLORS, f"class {n}",
        )
        for n, column in enumerate(scores.T)
    )  # fmt: skip
    return Panel(
        y=top, title=units.printable(curve.output), lines=tuple(lines), low=f"{low:.3g}",
        high=f"{high:.3g}",
        thresholds=tuple((y(value), f"{name}: {value:g}") for value, name in curve.thresholds),
    )  # fmt: skip
