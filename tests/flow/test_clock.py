"""The clock of a build: what place and route reaches, and how the fastest one is found."""

import json
import math
from types import SimpleNamespace

import pytest

import nnef_hw
from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import Uart
from nnef_hw.boards.interfaces.mlperf import Mlperf
from nnef_hw.errors import NnefHwError, UnroutedError
from nnef_hw.flow import pipeline
from nnef_hw.flow.clock import choice_of, search_clock
from nnef_hw.flow.options import find_target
from nnef_hw.flow.pipeline import build
from nnef_hw.report.model.clock import ClockChoice
from nnef_hw.run.artifacts import BuildFolder

pytestmark = [pytest.mark.system, pytest.mark.verilator, pytest.mark.usefixtures("fixed_sources")]


@pytest.mark.usefixtures("fake_synthesis")
def test_missed_clock_is_reported(options, copy):
    report = build(options(copy, clock_mhz=48.0, bitstream=True))
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (False, 40.0, 48.0)
    assert report.clock == ClockChoice("option", 48.0)


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_is_found(options, copy, steps):
    """Place and route is asked once, for what it does not reach; the PLL is set to what it does."""
    report = build(options(copy, fastest=True, bitstream=True))
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (True, 40.0, 39.0)
    assert report.clock == ClockChoice("routing", 36.75, margin=0.02)
    assert steps.count("synthesize") == 1
    assert "simulate" not in steps
    manifest = json.loads((copy / "manifest.json").read_text())
    assert (manifest["clock_mhz"], manifest["oscillator_mhz"]) == (36.75, 12.0)


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
        return pretend(
            verilog, frequency_mhz=frequency_mhz, fmax=reached[frequency_mhz], **arguments
        )

    monkeypatch.setattr(pipeline, "synthesize", synthesize)
    return reached, asked


USUAL = find_board("icebreaker").clock_mhz
ASKED = 37.5
"""What is asked for so that the PLL can be set to that, 2% below what is reached."""
TIED = Uart(5_000_000)
"""A link that the oscillator of 12 MHz is too slow for, so that the clock is a constant."""
TIED_REASON = "link uart cannot run at the oscillator's 12 MHz"
TIED_USUAL, TIED_LOWER = 35.25, 30.375


@pytest.mark.parametrize(("reached", "found"), [(35.9, 34.5), (41.57, 40.5), (37.5, 36.75)])
def test_the_clock_follows_what_one_placement_reaches(
    reached, found, options, copy, placed, caplog
):
    """One that is asked for does not: it is missed or met as it is."""
    answers, asked = placed
    answers |= {ASKED: reached, USUAL: 36.0}
    report = build(options(copy, bitstream=True))
    assert asked == [ASKED]
    assert not any("placed again" in message for message in caplog.messages)
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (True, reached, found)
    assert report.inferences_per_second == found * 1e6 / report.cycles_per_inference
    assert BuildFolder.open(copy).clock_mhz == found
    asked.clear()
    assert build(options(copy, bitstream=True)).clock_mhz == found
    assert asked == []
    report = build(options(copy, clock_mhz=USUAL, bitstream=True))
    assert (asked, report.timing_met, report.clock_mhz) == ([USUAL], False, USUAL)


def test_a_clock_below_all_of_the_pll_is_a_constant(options, copy, placed, caplog):
    """An iCE40's PLL makes 16 MHz and more: below that there is the oscillator."""
    answers, asked = placed
    answers |= {ASKED: 15.9, 12.0: 16.3}
    report = build(options(copy, bitstream=True))
    assert (asked, report.clock_mhz, report.timing_met) == ([ASKED, 12.0], 12.0, True)
    assert "oscillator_mhz" not in json.loads((copy / "manifest.json").read_text())
    assert sum("makes no clock below that" in message for message in caplog.messages) == 1
    asked.clear()
    assert build(options(copy, bitstream=True)).clock_mhz == 12.0
    assert asked == []


def test_a_design_whose_link_needs_the_clock_is_placed_again(options, copy, placed, caplog):
    reached, asked = placed
    reached |= {TIED_USUAL: 34.2, TIED_LOWER: 39.0}
    wanted = options(copy, link=TIED, bitstream=True)
    report = build(wanted)
    assert asked == [TIED_USUAL, TIED_LOWER]
    assert (report.timing_met, report.fmax_mhz, report.clock_mhz) == (True, 39.0, TIED_LOWER)
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == TIED_LOWER
    assert report.seconds["total"] > 0
    told = (
        f"tiny reaches 34.20 MHz of {TIED_USUAL:g} MHz, the clock of icebreaker: placed again for "
        f"{TIED_LOWER:g} MHz"
    )
    assert caplog.messages.count(told) == 1
    asked.clear()
    assert build(wanted).clock_mhz == TIED_LOWER
    assert asked == []


def test_a_rate_that_is_missed_is_planned_anew(options, copy, placed, caplog):
    """For a lower clock there are more multipliers, so that the rate is met after all."""
    reached, asked = placed
    report = build(options(copy, target_fps=2000.0, bitstream=False))
    cycles = report.cycles_per_inference
    rate = USUAL * 1e6 / cycles * 0.98
    reached |= dict.fromkeys([ASKED, 28.5], 28.6)
    wanted = options(copy, target_fps=rate, bitstream=True)
    report = build(wanted)
    assert asked[0] == ASKED
    assert report.inferences_per_second >= rate
    assert report.cycles_per_inference < cycles
    assert any("planned and placed again" in message for message in caplog.messages)


def test_a_plan_stays_what_it_was(model, placed, tmp_path):
    """A plan in memory keeps the clock that it was made for; its build says what it has."""
    reached, asked = placed
    plan = nnef_hw.load(model).quantize(model.with_name("samples.npz")).schedule("icebreaker")
    reached |= {ASKED: 35.9}
    report = plan.build(tmp_path / "build").report
    assert (asked, plan.clock_mhz) == ([ASKED], USUAL)
    assert (report.clock_mhz, report.timing_met) == (34.5, True)
    assert report.cycles_per_inference == plan.interval


def test_clocks_without_a_route_give_way(options, copy, fake_synthesis, monkeypatch):
    """The fastest one is followed by the usual one, and that by one of half its frequency."""
    asked = []
    pretend = pipeline.synthesize

    def synthesize(verilog, *, frequency_mhz, **arguments):
        asked.append(frequency_mhz)
        if len(asked) == 1:
            raise UnroutedError("the placement has no route", remedy="take a smaller model")
        return pretend(verilog, frequency_mhz=frequency_mhz, **arguments)

    monkeypatch.setattr(pipeline, "synthesize", synthesize)
    report = build(options(copy, fastest=True, bitstream=True))
    assert asked == [75.0, ASKED]
    assert (report.clock_mhz, report.timing_met) == (39.0, True)
    asked.clear()
    build(options(copy, target_fps=100.0, bitstream=True))
    assert asked == [ASKED, 18.375]


def test_the_first_clock_that_is_met_can_be_enough():
    asked = []

    def place(clock):
        asked.append(clock)
        return 1.2 * clock if clock < 47 else 46.5, clock < 47

    assert search_clock(48, math.floor, place, gain=math.inf) == 46
    assert asked == [48, 46]


def test_fastest_clock_is_kept(options, copy, placed):
    """A placement for 30 MHz reaches 35.3 MHz, one for 35.25 MHz not: the first is made again."""
    probe = 70.5
    reached, asked = placed
    reached |= {probe: 30.1, 30.0: 35.3, 35.25: 30.2}
    report = build(options(copy, link=TIED, fastest=True, bitstream=True))
    assert asked == [probe, 30.0, 35.25, 30.0]
    assert (report.timing_met, report.clock_mhz) == (True, 30.0)
    assert report.clock == ClockChoice("search", 30.0, reason=TIED_REASON)
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 30.0

    asked.clear()
    build(options(copy, link=TIED, fastest=True, bitstream=True))
    assert asked == []
    build(options(copy, link=TIED, fastest=True, bitstream=True, seeds=2))
    assert asked[0] == probe


@pytest.mark.parametrize(
    ("link", "images", "clock", "reason"),
    [
        (TIED, (), USUAL, TIED_REASON),
        (Mlperf(), (), USUAL, "link mlperf runs at the accelerator's clock"),
        (Uart(), (), 12.0, "it is the oscillator's"),
        (Uart(), ("weights",), USUAL, "a memory beside the FPGA is read with it"),
        (Uart(), (), USUAL, ""),
    ],
)
def test_constant_clocks_have_a_reason(link, images, clock, reason):
    plan = SimpleNamespace(clock_mhz=clock, images=images)
    choice = choice_of(find_board("icebreaker"), plan, link)
    assert choice.reason == reason
    assert choice.by == ("constant" if reason else "routing")
    assert f"{clock:g} MHz" in choice.text
    assert choice.rule in choice.text


def test_plain_ip_gets_its_clock():
    plan = SimpleNamespace(clock_mhz=50.0, images=())
    target = find_target("none", "ecp5-25k")
    assert choice_of(target, plan, Uart()).text == (
        "planned for 50 MHz, given by the design around it"
    )
    assert choice_of(target, plan, Uart(), fixed=True).by == "option"


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_of_a_wrong_model_leaves_nothing(options, tmp_path):
    wrong = tmp_path / "wrong.nnef"
    wrong.write_text("version 1.0;\n")
    with pytest.raises(NnefHwError):
        build(options(tmp_path / "deep" / "build", model=wrong, fastest=True, bitstream=True))
    assert not (tmp_path / "deep").exists()
