"""Routing until nothing is late, with a nextpnr that prints what it would."""

import json
import math
from pathlib import Path

import pytest

from nnef_hw.errors import UnroutedError
from nnef_hw.hardware.families import ECP5
from nnef_hw.place.nextpnr import run as runs
from nnef_hw.place.nextpnr.attempt import Placer
from nnef_hw.place.nextpnr.ripup import estimated_share, is_in_reach, set_clock, stated_for
from nnef_hw.place.toolchain import Design, toolchain_of
from nnef_hw.system.tools import Tool, run_tool

DIALECT = toolchain_of(ECP5).dialect
DESIGN = Design(top="top", part="85k", package="CABGA381", speed="6", frequency_mhz=100.0)

SNAG = "a wire that two nets want to the end"
CLOCK = "Info: Max frequency for clock '$glbnet$clk': {} MHz ({} at {} MHz)\n"


@pytest.mark.parametrize(
    ("wanted", "estimate", "in_reach"),
    [(90, 100, True), (90, 61, True), (90, 60, False), (90, math.inf, True)],
)
def test_only_a_clock_in_reach_is_routed_for(wanted, estimate, in_reach):
    assert is_in_reach(wanted, estimate) is in_reach


def test_estimate_is_that_of_the_clock_closest_to_its_limit():
    log = CLOCK.format("300.00", "PASS", "25.00") + CLOCK.format("80.00", "FAIL", "100.00")
    assert estimated_share("Info: placed\n" + log) == 0.8
    assert estimated_share("Info: placed\n") == math.inf


@pytest.mark.parametrize("mhz", [3, 94.5, 123.456789])
def test_clock_of_a_placed_netlist(tmp_path, mhz):
    netlist = tmp_path / "placed.json"
    settings = {"place": "1", "target_freq": "95000000.000000", "router": "router2"}
    netlist.write_text(json.dumps({"modules": {"top": {"settings": settings, "ports": {}}}}))
    size = netlist.stat().st_size
    set_clock(netlist, mhz)
    found = json.loads(netlist.read_text())["modules"]["top"]["settings"]
    assert float(found.pop("target_freq")) == pytest.approx(1e6 * mhz, abs=0.1)
    assert found == {"place": "1", "router": "router2"}
    assert netlist.stat().st_size == size


def test_report_is_about_the_clock_that_was_asked_for(tmp_path):
    report = tmp_path / "timing.json"
    clocks = {
        "clk": {"achieved": 96.0, "constraint": 95.475001},
        "input": {"achieved": 400.0, "constraint": 25},
    }
    report.write_text(json.dumps({"fmax": clocks, "utilization": {}}))
    value = stated_for(report, 95.475, 95)
    assert value["fmax"]["clk"] == {"achieved": 96.0, "constraint": 95}
    assert value["fmax"]["input"] == clocks["input"]
    assert json.loads(report.read_text()) == value


def imitate(monkeypatch, estimate, reached, excess=(0.1,), heap=50, heap_reached=None):
    """Let nextpnr print what it would for a design with this estimate and these best routes.

    The static placer's estimate is followed by that of HeAP; None has no placement. So do their
    best routes. Routes that come to an end have so many MHz more than the aim in the report; None
    never does.
    Returns the clocks in MHz that it was to route for, and whether until nothing was late.
    """
    routed, seen = [], []

    def nextpnr(tool, arguments, *, cwd, log, is_stuck):
        def shell(script):
            program = Tool("nextpnr", ("/bin/sh", "-c", script), "1", Path("/bin/sh"))
            return run_tool(program, [], cwd=cwd, log=log, is_stuck=is_stuck)

        if "--no-route" in arguments:
            assert arguments[arguments.index("--seed") + 1] == "2"
            found = estimate if "--placer" in arguments else heap
            if found is None:
                return shell("echo ERROR: Unable to find legal placement for a cell; exit 1")
            settings = '"settings": {"target_freq": "100000000.000000"}\n'
            (cwd / arguments[arguments.index("--write") + 1]).write_text(settings)
            return shell(f"printf '%s' \"{CLOCK.format(found, 'FAIL', 100)}\"")
        assert {"--no-pack", "--no-place"} <= {*arguments}
        netlist = cwd / arguments[arguments.index("--json") + 1]
        aim = float(netlist.read_text().split('"')[-2]) / 1e6
        mends = "--tmg-ripup" in arguments
        # in another order without a seed
        kind = netlist.name, mends, aim >= 100
        assert ("--seed" in arguments) is (kind not in seen)
        seen.append(kind)
        routed.append((round(aim, 3), mends))
        more = excess[min(len(routed), len(excess)) - 1]
        is_heap = heap_reached is not None and netlist.name == "placed1.json"
        best = heap_reached if is_heap else reached
        if more is None or (aim > best and (mends or not best)) or more == SNAG:
            left = (1, 0) if more == SNAG else (0, 2)
            line = (
                f"Info:     iter=$n wires=300 overused={left[0]} overuse=0 tmgfail={left[1]} arch"
            )
            loop = f'n=1; while :; do echo "{line}"; n=$((n+1)); [ $n -lt 99 ] || sleep 60; done'
            return shell(loop)
        fmax = {"clk": {"achieved": min(aim, best) + more, "constraint": aim}}
        (cwd / "seed2" / "timing.json").write_text(json.dumps({"fmax": fmax}))
        for name in ("top.config", "top.config.json"):
            (cwd / "seed2" / name).write_text(f"route {len(routed)}")
        return shell(f"echo route {len(routed)}")

    def placings(dialect, seed):
        heap = ("--seed", str(seed), "--router", "router2")
        return [(*heap, "--placer", "static"), heap]

    monkeypatch.setattr(type(DIALECT), "placings", placings)
    monkeypatch.setattr(type(DIALECT), "tiles", lambda dialect: None)
    monkeypatch.setattr("nnef_hw.place.nextpnr.run.run_tool", nextpnr)
    return routed


@pytest.mark.parametrize(
    ("estimate", "reached", "routed"),
    [
        (95, 110, [(100.5, True)]),
        (95, 99, [(100.5, True), (95, True)]),
        (95, 90, [(100.5, True), (95, True), (100, False)]),
        (60, 85, [(60, True)]),
        (60, 55, [(60, True), (100, False)]),
    ],
    ids=["met", "estimate", "neither", "far_away", "far_away_and_congested"],
)
def test_placement_is_routed_for_what_is_in_reach(
    tmp_path, monkeypatch, caplog, estimate, reached, routed
):
    found = imitate(monkeypatch, estimate, reached)
    placer = Placer(DIALECT, DESIGN)
    report = placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    assert found == routed
    late = [f"for {aim:.2f} MHz" for aim, _ in routed[:-1]]
    assert [clock in text for clock, text in zip(late, caplog.messages, strict=True)] == [
        True
    ] * len(late)
    assert report["fmax"]["clk"]["constraint"] == 100
    assert report["fmax"]["clk"]["achieved"] == pytest.approx(min(routed[-1][0], reached) + 0.1)
    assert (tmp_path / "seed2" / "placing.log").read_text().startswith("Info: Max frequency")
    assert not (tmp_path / "seed2" / "placed.json").exists()


@pytest.mark.parametrize(
    ("excess", "taken"),
    [((-0.7, -0.5), 2), ((-0.7, -1.5), 1), ((-0.7, None), 1), ((-0.4,), 1)],
    ids=["better", "worse", "congested", "needless"],
)
def test_a_clock_that_only_the_report_says_is_missed_is_routed_for_with_a_higher_aim(
    tmp_path, monkeypatch, excess, taken
):
    found = imitate(monkeypatch, 95, 110, excess)
    placer = Placer(DIALECT, DESIGN)
    report = placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    aims = [100.5, round(100.5 * 100.5 / 99.8, 3)][: len(excess)]
    assert found == [(aim, True) for aim in aims]
    reached = pytest.approx(aims[taken - 1] + excess[taken - 1], abs=1e-3)
    assert report["fmax"]["clk"] == {"achieved": reached, "constraint": 100}
    assert (tmp_path / "nextpnr.log").read_text() == f"route {taken}\n"
    assert (tmp_path / "seed2" / "top.config").read_text() == f"route {taken}"
    assert not [*tmp_path.glob("first-*"), *(tmp_path / "seed2").glob("first-*")]


@pytest.mark.parametrize(
    ("snags", "reached"), [(1, 100.6), (2, 95.1), (3, 95.1), (4, 100.1), (5, 100.1)]
)
def test_a_route_that_lacks_one_wire_is_taken_up_in_another_order(
    tmp_path, monkeypatch, snags, reached
):
    """For the clock, then for the estimate, then as it comes: each in one order, then another."""
    found = imitate(monkeypatch, 95, 110, (*[SNAG] * snags, 0.1))
    placer = Placer(DIALECT, DESIGN)
    report = placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    routed = [
        (aim, mends) for aim, mends in ((100.5, True), (95, True), (100, False)) for _ in "12"
    ]
    assert found == routed[: snags + 1]
    assert report["fmax"]["clk"] == {"achieved": reached, "constraint": 100}


@pytest.mark.parametrize(
    ("static", "heap", "aim", "taken"),
    [
        (68, 99, 100.5, 68), (66, 95, 100.5, 95), (66, 65, 66, 66), (64, 65, 65, 65),
        (60, None, 60, 60), (None, 95, 100.5, 95),
    ],
    ids=["in_reach", "far", "both_far", "both_far_but_higher", "unplaced", "only"],
)  # fmt: skip
def test_the_first_placement_in_reach_is_routed_or_else_the_nearest(
    tmp_path, monkeypatch, static, heap, aim, taken
):
    found = imitate(monkeypatch, static, 110, heap=heap)
    placer = Placer(DIALECT, DESIGN)
    placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    assert found == [(aim, True)]
    assert f": {taken} MHz" in (tmp_path / "seed2" / "placing.log").read_text()
    assert not [*(tmp_path / "seed2").glob("placed*"), *(tmp_path / "seed2").glob("best*")]


@pytest.mark.parametrize(
    ("static", "heap", "reached", "excess", "routes", "taken"),
    [
        ((95, 99), (90, 110), 100.6, (0.1,), 2, 2),
        ((60, 110), (90, 99), 90.1, (0.1,), 2, 2),
        ((95, 110), (90, 110), 99.9, (-0.7, -2, -0.6, -2), 4, 3),
        ((95, 110), (90, 110), 99.8, (-0.7, -2, -0.9), 3, 1),
        ((95, 110), (90, 99), 99.8, (-0.7, -2), 3, 1),
    ],
    ids=["congested", "far", "later_is_better", "earlier_is_better", "only_one"],
)
def test_the_other_placement_is_routed_where_one_misses_the_clock(
    tmp_path, monkeypatch, static, heap, reached, excess, routes, taken
):
    found = imitate(monkeypatch, *static, excess, *heap)
    placer = Placer(DIALECT, DESIGN)
    report = placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    own = tmp_path / "seed2"
    assert len(found) == routes
    assert report["fmax"]["clk"]["achieved"] == pytest.approx(reached)
    for name in ("top.config", "top.config.json"):
        assert (own / name).read_text() == f"route {taken}"
    assert (tmp_path / "nextpnr.log").read_text() == f"route {taken}\n"
    assert sorted(path.name for path in own.iterdir()) == [
        "placing.log", "timing.json", "top.config", "top.config.json",
    ]  # fmt: skip


def test_a_design_that_no_placer_can_place_is_an_error(tmp_path, monkeypatch):
    imitate(monkeypatch, None, 110, heap=None)
    placer = Placer(DIALECT, DESIGN)
    with pytest.raises(UnroutedError, match="cannot be placed"):
        placer.place(tmp_path, 2, tmp_path / "nextpnr.log")


@pytest.mark.parametrize("excess", [(0.1,), (SNAG,)])
def test_placement_without_any_route_is_an_error(tmp_path, monkeypatch, excess):
    imitate(monkeypatch, 95, 0, excess)
    placer = Placer(DIALECT, DESIGN)
    with pytest.raises(UnroutedError, match="has no route"):
        placer.place(tmp_path, 2, tmp_path / "nextpnr.log")


def test_places_of_our_own_are_the_second_way(tmp_path, monkeypatch):
    imitate(monkeypatch, 60, 85, heap=55)
    run, placings = runs.run_tool, []

    def nextpnr(tool, arguments, **options):
        if "--no-route" in arguments:
            name = arguments[arguments.index("--json") + 1]
            placings.append((name, "--no-pack" in arguments, "static" in arguments))
        return run(tool, arguments, **options)

    def place(placer, folder, tiles, seed, options, log, is_needless):
        assert (tiles, seed, is_needless()) == ("tiles", 2, False)
        netlist = folder / "seed2" / "packed.json"
        netlist.write_text("{}")
        return netlist

    monkeypatch.setattr(runs, "run_tool", nextpnr)
    monkeypatch.setattr(type(DIALECT), "tiles", lambda dialect: "tiles")
    monkeypatch.setattr(Placer, "_place_cells", place)
    placer = Placer(DIALECT, DESIGN)
    placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    own = "seed2/packed.json", True, True
    assert placings == [("top.json", False, True), own, ("top.json", False, False)]
    assert not (tmp_path / "seed2" / "packed.json").exists()
