"""The picture of a sound: where samples, frequencies, scores and events are drawn."""

import re
import struct
import zlib
from base64 import b64decode

import numpy as np
import pytest

from nnef_hw.report.model.hearing import Curve, Event, Heard, Hearing, Sound
from nnef_hw.report.pages.sound import SCORES, SPECTRUM, TOP, WAVE, draw_sound, render_sound

RATE = 16_000


def hearing(samples, curves=(), events=(), limits=(-32_768, 32_767), **changes):
    told = {
        "seconds": len(samples) / RATE, "steps": 10, "cycles": 1, "cycles_per_second": 1,
        "duty": 0.075, "equal": True, "lost": 0, "medium": "sound", "events": tuple(events),
    }  # fmt: skip
    codes = np.asarray(samples, np.int64).reshape(len(samples), -1)
    names = ("samples",) if codes.shape[1] == 1 else ("x", "y<", "z")
    sound = Sound("a<b.wav", RATE, 1_600, codes, limits, names, len(names) == 1, tuple(curves))
    return Hearing(Heard(**(told | changes)), sound)


def picture(uri):
    """Return the rows of a PNG of 8 bits of grey."""
    data = b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, found = 8, {}
    while place < len(data):
        [size] = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        [check] = struct.unpack(">I", data[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(kind + body)
        found[kind], place = body, place + 12 + size
    width, height, depth, kind = struct.unpack(">2I2B", found[b"IHDR"][:10])
    assert (depth, kind) == (8, 0)
    rows = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


def outline(wave):
    return np.array([p.split(",") for p in wave.points.split()], float)


def test_each_channel_has_a_waveform():
    """Its lowest code is at the bottom of its own frame, and there is no spectrogram of motion."""
    samples = np.stack([np.full(400, -128), np.full(400, 0), np.full(400, 127)], axis=1)
    found = hearing(
        samples, limits=(-128, 127), medium="motion", events=[Event(0.01, 1, "y", 0, "tap", 0.4)]
    )
    plot = draw_sound(found)
    assert plot.spectrum is None
    assert [wave.title for wave in plot.waves] == ["x", "y<", "z"]
    ends = [
        wave.y + share * WAVE for wave, share in zip(plot.waves, (1, 0.5, 1 / 256), strict=True)
    ]
    for wave, end in zip(plot.waves, ends, strict=True):
        assert np.abs(outline(wave)[:, 1] - end).max() <= 0.06
    assert plot.waves[0].y == TOP
    assert plot.waves[1].y > TOP + WAVE
    page = render_sound(found)
    assert page.count('<polygon class="wave"') == 3
    assert "<image" not in page
    assert "y&lt;" in page
    assert "s of motion" in page


def test_a_tone_is_a_dark_line_at_its_frequency():
    """Silence, then a tone of 2 kHz: a quarter of the height, from the middle on."""
    n = np.arange(RATE)
    samples = np.where(n < RATE // 2, 0, 20_000 * np.sin(2 * np.pi * 2_000 / RATE * n))
    plot = draw_sound(hearing(np.rint(samples)))
    rows = picture(plot.spectrum.picture)
    height, width = rows.shape
    early, late = rows[:, : width // 2 - 10], rows[:, width // 2 + 10 : -10]
    assert early.min() == 255
    assert abs(late.argmin(axis=0) - 0.75 * height).max() <= 1
    assert late.min() < 5
    [wave] = plot.waves
    points = outline(wave)
    assert TOP <= points[:, 1].min() < points[:, 1].max() <= TOP + WAVE
    loud = points[:, 0] > (plot.left + plot.right) / 2 + 2
    middle = TOP + WAVE / 2
    assert np.abs(points[loud, 1] - middle).min() > 0.5 * WAVE / 2
    assert np.abs(points[~loud][:50, 1] - middle).max() == 0
    assert plot.spectrum.highest == "8 kHz"
    assert plot.spectrum_height == SPECTRUM


def test_scores_and_events_share_the_axis_of_time():
    scores = np.linspace(0, 1, 10)[:, None] * [1.0, 0.5]
    curve = Curve("y", scores, ((0.9, "sink pin"),))
    event = Event(0.5, 4, "y", 0, "y 0", 0.4)
    plot = draw_sound(hearing(np.zeros(RATE), [curve], [event]))
    [panel] = plot.panels
    first, second = ([p.split(",") for p in line.points.split()] for line in panel.lines)
    middle = (plot.left + plot.right) / 2
    # a step's scores are there at its end
    assert float(first[4][0]) == pytest.approx(middle, abs=0.1)
    assert plot.events == ((middle, "y 0"),)
    assert float(first[9][0]) == pytest.approx(plot.right, abs=0.1)
    assert (float(first[9][1]), float(first[0][1])) == (panel.y, panel.y + SCORES)
    assert float(second[9][1]) == pytest.approx(panel.y + SCORES / 2, abs=0.1)
    assert panel.thresholds == ((round(panel.y + 0.1 * SCORES, 1), "sink pin: 0.9"),)
    assert [text for _, text in plot.ticks][:3] == ["0 s", "0.1 s", "0.2 s"]
    assert plot.ticks[5][0] == middle


def test_the_page_says_what_is_wrong():
    curve = Curve("y", np.zeros((10, 1)), ())
    page = render_sound(hearing(np.zeros(1_600), [curve], equal=False, lost=3))
    assert "events differ from the fixed-point model" in page
    assert '<li class="bad"><span>3 samples lost' in page
    assert "a&lt;b.wav" in page
    assert "None." in page
    assert not re.search(r"https?://(?!www\.w3)", page)
