"""The clock of a build: what place and route reaches, and how the fastest one is found."""

import json
from dataclasses import replace

import pytest

from nnef_hw.build import pipeline
from nnef_hw.build.pipeline import build
from nnef_hw.errors import NnefHwError

pytestmark = [pytest.mark.verilator, pytest.mark.usefixtures("fixed_sources")]


@pytest.mark.usefixtures("fake_synthesis")
def test_missed_clock_is_reported(options, copy):
    report = build(options(copy, clock_mhz=36.0, bitstream=True))
    assert (report["timing_met"], report["fmax_mhz"], report["clock_mhz"]) == (False, 30.0, 36.0)


@pytest.mark.usefixtures("fake_synthesis")
def test_fastest_clock_is_found(options, copy, steps):
    """Place and route is asked twice: what it reaches, and whether it does."""
    report = build(options(copy, fastest=True, bitstream=True))
    assert (report["timing_met"], report["fmax_mhz"], report["clock_mhz"]) == (True, 30.0, 30.0)
    assert steps.count("synthesize") == 2
    assert "simulate" not in steps
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == 30.0


@pytest.mark.usefixtures("fake_synthesis")
@pytest.mark.parametrize("faster_is_met", [True, False])
def test_fastest_clock_goes_up_while_placements_allow_it(options, copy, monkeypatch, faster_is_met):
    """A placement for 30 MHz reaches 33.2 MHz: 33 MHz are tried, and left if they are missed."""
    reached = {48.0: 30.1, 30.0: 33.2, 33.0: 33.1 if faster_is_met else 32.5}
    asked = []
    pretend = pipeline.synthesize

    def synthesize(verilog, *, frequency_mhz, **arguments):
        asked.append(frequency_mhz)
        result = pretend(verilog, frequency_mhz=frequency_mhz, **arguments)
        fmax = reached[frequency_mhz]
        return replace(result, fmax_mhz=fmax, timing_met=fmax >= frequency_mhz)

    monkeypatch.setattr(pipeline, "synthesize", synthesize)
    report = build(options(copy, fastest=True, bitstream=True))
    found = [48.0, 30.0, 33.0] if faster_is_met else [48.0, 30.0, 33.0, 30.0]
    assert asked == found
    assert (report["timing_met"], report["clock_mhz"]) == (True, found[-1])
    assert json.loads((copy / "manifest.json").read_text())["clock_mhz"] == found[-1]

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
