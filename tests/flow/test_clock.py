"""The clock of a build: what place and route reaches, and how the fastest one is found."""

import json
import math
import re
from dataclasses import replace

import pytest

import nnef_hw
from nnef_hw.boards import find_board
from nnef_hw.errors import NnefHwError, TargetError, UnroutedError
from nnef_hw.flow import pipeline
from nnef_hw.flow.clock import search_clock
from nnef_hw.flow.pipeline import build

pytestmark = [pytest.mark.system, pytest.mark.verilator, pytest.mark.usefixtures("fixed_sources")]


@pytest.mark.usefixtures("fake_synthesis")
def test_missed_clock_is_reported(options, copy):
    report = build(options(copy, clock_mhz=48.0, bitstream=True))
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (False, 40.0, 48.0)


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_is_found(options, copy, steps):
    """Place and route is asked twice: what it reaches, and whether it does."""
    report = build(options(copy, fastest=True, bitstream=True))
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (True, 40.0, 39.75)
    assert steps.count("synthesize") == 2
    assert "simulate" not in steps
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 39.75


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


@pytest.fixture
def placed(fake_synthesis, monkeypatch):
    """What placements reach, by the clock in MHz that is asked for; and the clocks asked for."""
    reached: dict[float, float] = {}
    asked: list[float] = []
    pretend = pipeline.synthesize

    def synthesize(verilog, *, frequency_mhz, **arguments):
        asked.append(frequency_mhz)
        result = pretend(verilog, frequency_mhz=frequency_mhz, **arguments)
        fmax = reached[frequency_mhz]
        return replace(result, fmax_mhz=fmax, timing_met=fmax >= frequency_mhz)

    monkeypatch.setattr(pipeline, "synthesize", synthesize)
    return reached, asked


def test_the_clock_of_a_board_gives_way_to_what_is_reached(options, copy, placed, caplog):
    """But one that was asked for is missed, and what another design missed is tried anew."""
    reached, asked = placed
    usual = find_board("icebreaker").clock_mhz
    reached |= {usual: 35.9, 35.25: 39.0}
    report = build(options(copy, bitstream=True))
    assert asked == [usual, 35.25]
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (True, 39.0, 35.25)
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 35.25
    assert report.seconds["total"] > 0
    told = (
        "tiny reaches 35.90 MHz of 36.75 MHz, the clock of icebreaker: placed again for 35.25 MHz"
    )
    assert caplog.messages.count(told) == 1

    asked.clear()
    assert build(options(copy, bitstream=True)).clock_mhz == 35.25
    assert asked == []
    report = build(options(copy, clock_mhz=usual, bitstream=True))
    assert (asked, report.timing_met, report.clock_mhz) == ([usual], False, usual)

    asked.clear()
    reached[usual] = 37.0
    report = build(options(copy, seeds=2, bitstream=True))
    assert (asked, report.timing_met, report.clock_mhz) == ([usual], True, usual)


def test_a_rate_that_no_lower_clock_has_leaves_the_missed_one(options, copy, placed):
    """The rate takes the fastest design at the board's clock; timing is not met then, as it was."""
    reached, asked = placed
    usual = find_board("icebreaker").clock_mhz
    with pytest.raises(TargetError) as caught:
        build(options(copy, target_fps=1e9, bitstream=True))
    assert asked == []
    rate = int(re.match(r"use --target-fps (\d+)", caught.value.remedy)[1])
    reached |= {usual: usual / 4}
    wanted = options(copy, target_fps=rate, bitstream=True)
    report = build(wanted)
    assert (asked, report.timing_met, report.clock_mhz) == ([usual], False, usual)
    assert report.inferences_per_second >= rate
    assert build(wanted).timing_met is False
    assert asked == [usual]


def test_a_plan_is_made_anew_for_the_clock_that_is_reached(model, placed, tmp_path):
    """A plan in memory stays what it was; its build says what it has."""
    reached, asked = placed
    plan = nnef_hw.load(model).quantize(model.with_name("samples.npz")).schedule("icebreaker")
    reached |= {plan.clock_mhz: 35.9, 35.25: 39.0}
    report = plan.build(tmp_path / "build").report
    assert asked == [plan.clock_mhz, 35.25]
    assert (report.clock_mhz, report.timing_met) == (35.25, True)
    assert (report.cycles_per_inference, plan.clock_mhz) == (plan.interval, asked[0])


def test_the_first_clock_that_is_met_can_be_enough():
    asked = []

    def place(clock):
        asked.append(clock)
        return 1.2 * clock if clock < 47 else 46.5, clock < 47

    assert search_clock(48, math.floor, place, gain=math.inf) == 46
    assert asked == [48, 46]


def test_fastest_clock_is_kept(options, copy, placed):
    """A placement for 30 MHz reaches 33.2 MHz, one for 33 MHz not: the first is made again."""
    probe = 2 * find_board("icebreaker").clock_mhz
    reached, asked = placed
    reached |= {probe: 30.1, 30.0: 33.2, 33.0: 30.2}
    report = build(options(copy, fastest=True, bitstream=True))
    assert asked == [probe, 30.0, 33.0, 30.0]
    assert (report.timing_met, report.clock_mhz) == (True, 30.0)
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 30.0

    asked.clear()
    build(options(copy, fastest=True, bitstream=True))
    assert asked == []
    build(options(copy, fastest=True, bitstream=True, seeds=2))
    assert asked[0] == probe


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_of_a_wrong_model_leaves_nothing(options, tmp_path):
    wrong = tmp_path / "wrong.nnef"
    wrong.write_text("version 1.0;\n")
    with pytest.raises(NnefHwError):
        build(options(tmp_path / "deep" / "build", model=wrong, fastest=True, bitstream=True))
    assert not (tmp_path / "deep").exists()
