"""The clock of a build: what place and route reaches, and how the fastest one is found."""

import json
import math
from dataclasses import replace

import pytest

from nnef_hw.errors import NnefHwError, UnroutedError
from nnef_hw.flow import pipeline
from nnef_hw.flow.clock import search_clock
from nnef_hw.flow.pipeline import build

pytestmark = [pytest.mark.system, pytest.mark.verilator, pytest.mark.usefixtures("fixed_sources")]


@pytest.mark.usefixtures("fake_synthesis")
def test_missed_clock_is_reported(options, copy):
    report = build(options(copy, clock_mhz=36.0, bitstream=True))
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (False, 30.0, 36.0)


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_is_found(options, copy, steps):
    """Place and route is asked twice: what it reaches, and whether it does."""
    report = build(options(copy, fastest=True, bitstream=True))
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (True, 30.0, 30.0)
    assert steps.count("synthesize") == 2
    assert "simulate" not in steps
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 30.0


@pytest.mark.parametrize(
    ("reached", "found"),
    [
        ({48: 30, 30: 30}, 30),
        ({48: 30, 30: 33, 33: 33}, 33),
        ({48: 30, 30: 33, 33: 31, 31: 31}, 31),
        ({48: 30, 30: 33, 33: 32.5, 32: 30}, 30),
        ({48: 30, 30: 29, 29: 35}, 29),
        ({48: 30, 30: 29.9, 29: 28.9, 28: 28}, 28),
        ({48: 30, 30: 31, 31: 32, 32: 33, 33: 34, 34: 40}, 34),
    ],
    ids=["at_once", "up", "between", "back", "not_again", "down", "enough"],
)
def test_fastest_clock_is_approached(reached, found):
    """Every placement reaches another clock; what one says is tried, until it is little more."""
    asked = []

    def place(clock):
        asked.append(clock)
        return reached[clock], reached[clock] >= clock

    assert search_clock(48.5, math.floor, place) == found
    assert asked == [*reached, *([] if found == [*reached][-1] else [found])]


@pytest.mark.parametrize(
    ("reached", "found"),
    [
        ({48: None, 24: 26, 26: 25, 25: 24}, 24),
        ({48: 20, 20: 30, 30: None}, 20),
        ({48: 30, 30: None, 15: 40, 29: None}, 15),
    ],
    ids=["at first", "beyond one that was met", "twice"],
)
def test_clock_without_a_route_is_missed(reached, found):
    asked = []

    def place(clock):
        asked.append(clock)
        if reached[clock] is None:
            raise UnroutedError("the placement has no route", remedy="take a smaller model")
        return reached[clock], reached[clock] >= clock

    assert search_clock(48.5, math.floor, place) == found
    assert asked == [*reached, found]


def test_clocks_without_any_route_are_an_error():
    asked = []

    def place(clock):
        asked.append(clock)
        raise UnroutedError("the placement has no route", remedy="take a smaller model")

    with pytest.raises(UnroutedError):
        search_clock(48.5, math.floor, place)
    assert asked == [48, 24]


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_is_kept(options, copy, monkeypatch):
    """A placement for 30 MHz reaches 33.2 MHz, one for 33 MHz not: the first is made again."""
    reached = {48.0: 30.1, 30.0: 33.2, 33.0: 30.2}
    asked = []
    pretend = pipeline.synthesize

    def synthesize(verilog, *, frequency_mhz, **arguments):
        asked.append(frequency_mhz)
        result = pretend(verilog, frequency_mhz=frequency_mhz, **arguments)
        fmax = reached[frequency_mhz]
        return replace(result, fmax_mhz=fmax, timing_met=fmax >= frequency_mhz)

    monkeypatch.setattr(pipeline, "synthesize", synthesize)
    report = build(options(copy, fastest=True, bitstream=True))
    assert asked == [48.0, 30.0, 33.0, 30.0]
    assert (report.timing_met, report.clock_mhz) == (True, 30.0)
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 30.0

    asked.clear()
    build(options(copy, fastest=True, bitstream=True))
    assert asked == []
    build(options(copy, fastest=True, bitstream=True, seeds=2))
    assert asked[0] == 48.0


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_of_a_wrong_model_leaves_nothing(options, tmp_path):
    wrong = tmp_path / "wrong.nnef"
    wrong.write_text("version 1.0;\n")
    with pytest.raises(NnefHwError):
        build(options(tmp_path / "deep" / "build", model=wrong, fastest=True, bitstream=True))
    assert not (tmp_path / "deep").exists()
