"""DSP blocks and block RAMs get their places before the rest of a netlist is placed."""

import json
from itertools import pairwise, permutations

import numpy as np
import pytest

from nnef_hw.hardware.families import ECP5, GOWIN, ICE40
from nnef_hw.place.blocks.block_plan import Sites, plan_blocks
from nnef_hw.place.blocks.spreading import Charges, Spreader
from nnef_hw.place.blocks.wires import Wires
from nnef_hw.place.netlist.bels import place_of
from nnef_hw.place.nextpnr.attempt import Placer
from nnef_hw.place.nextpnr.probe import lone_cells, places_of
from nnef_hw.place.toolchain import Design, toolchain_of

ROWS = {"DSP": (10, 34), "RAM": (22,)}
SITES = Sites(
    1000,
    {kind: [f"X{x}/Y{y}/{kind}" for y in rows for x in range(4, 60, 4)]
     for kind, rows in ROWS.items()},
)  # fmt: skip


def mapped(cells):
    """Build a mapped netlist from (type, bits) by name."""
    return {
        "modules": {
            "cells_sim": {"attributes": {"blackbox": "1"}, "cells": {}},
            "top": {
                "cells": {
                    name: {"type": kind, "attributes": {}, "connections": {"A": list(bits)}}
                    for name, (kind, bits) in cells.items()
                },
            },
        },
    }  # fmt: skip


def half_perimeters(netlist, at):
    """Sum up width and height of all nets of a netlist with its cells in some places."""
    nets = {}
    for place, cell in zip(at.T, netlist["modules"]["top"]["cells"].values(), strict=True):
        for bit in cell["connections"]["A"]:
            if isinstance(bit, int):
                nets.setdefault(bit, []).append(place)
    return sum(np.ptp(places, axis=0).sum() for places in nets.values())


def chain(length, rng):
    """Build a chain of blocks, with logic between one and the next, in any order."""
    cells = {}
    for n in range(length):
        kind = "RAM" if n % 3 == 2 else "DSP"
        cells[f"block{n}"] = kind, [2 * n, 2 * n + 1]
        cells |= {f"lut{n}_{m}": ("LUT", [2 * n + 1, 2 * n + 2]) for m in range(4)}
    return mapped({name: cells[name] for name in rng.permutation(list(cells)).tolist()})


def blocks_apart(places):
    """Sum up the distances along a chain of blocks."""
    at = [np.array(place_of(places[f"block{n}"])) for n in range(len(places))]
    return sum(int(np.abs(a - b).sum()) for a, b in pairwise(at))


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_a_chain_are_beside_each_other(seed):
    rng = np.random.default_rng(seed)
    netlist = chain(24, rng)
    text = json.dumps(netlist)
    places = plan_blocks(netlist, SITES)
    assert json.dumps(netlist) == text
    assert len(places) == len({*places.values()}) == 24
    kinds = {name: cell["type"] for name, cell in netlist["modules"]["top"]["cells"].items()}
    assert all(place in SITES.blocks[kinds[name]] for name, place in places.items())
    chance = []
    for _ in range(20):
        shuffled = {kind: iter(rng.permutation(names)) for kind, names in SITES.blocks.items()}
        chance.append(blocks_apart({name: next(shuffled[kinds[name]]) for name in places}))
    assert blocks_apart(places) < 0.7 * min(chance)
    # as it was, whatever else has been placed meanwhile
    assert plan_blocks(netlist, SITES) == places


def test_blocks_and_logic_move_by_turns(monkeypatch):
    netlists = [chain(24, np.random.default_rng(seed)) for seed in range(4)]

    def apart():
        plans = [plan_blocks(netlist, SITES) for netlist in netlists]
        return sum(map(blocks_apart, plans))

    found = apart()
    monkeypatch.setattr("nnef_hw.place.blocks.block_plan.TURNS", 0)
    assert found < apart()


def test_kinds_of_which_there_are_too_many_have_no_place():
    rng = np.random.default_rng(3)
    netlist = chain(60, rng)
    places = plan_blocks(netlist, Sites(1000, {**SITES.blocks, "DSP": SITES.blocks["DSP"][:5]}))
    assert places == {}
    netlist = chain(12, rng)
    places = plan_blocks(netlist, Sites(1000, {**SITES.blocks, "DSP": SITES.blocks["DSP"][:5]}))
    assert {*places} == {"block2", "block5", "block8", "block11"}


@pytest.mark.parametrize(
    "cells",
    [
        {"dsp": ("DSP", [])},
        {"dsp": ("DSP", ["0", "1"]), "ram": ("RAM", [])},
        {"dsp": ("DSP", [1]), "ram": ("RAM", [1])},
        {"dsp": ("DSP", [1]), "lut": ("LUT", [1]), "idle": ("LUT", ["0"])},
    ],
    ids=["alone", "constants", "without_logic", "one_net"],
)
def test_small_netlists_have_places(cells):
    places = plan_blocks(mapped(cells), SITES)
    assert {*places} == {*cells} & {"dsp", "ram"}
    assert plan_blocks(mapped({"lut": ("LUT", [1])}), SITES) == {}


def test_sites_are_what_a_netlist_of_all_blocks_takes():
    netlist = json.loads(lone_cells({"DSP": 2, "RAM": 1}, "probe"))
    cells = netlist["modules"]["probe"]["cells"]
    for n, cell in enumerate(cells.values()):
        assert cell["connections"] == {}
        cell["attributes"]["NEXTPNR_BEL"] = f"X{n}/Y0/{cell['type']}"
    assert places_of(netlist) == {"DSP": ["X0/Y0/DSP", "X1/Y0/DSP"], "RAM": ["X2/Y0/RAM"]}


def test_wires_are_as_long_as_half_the_perimeters():
    netlist = mapped({
        "a": ("LUT", [1, 2, "0"]), "b": ("LUT", [1, 1]), "c": ("DSP", [1, 2]), "d": ("LUT", [3]),
    })  # fmt: skip
    wires = Wires(netlist)
    at = np.array([[1.0, 5, 3, 90], [2, 2, 7, 90]])
    assert half_perimeters(netlist, at) == (4 + 5) + (2 + 5)
    assert wires.pins.tolist() == [2, 1, 2, 0]
    assert wires.names == list("abcd")
    assert wires.cells("DSP").tolist() == [2]
    # pins at the ends pull, and what is between them does not
    assert wires.slope(at, 0.01) == pytest.approx(
        np.array([[-2, 1, 1, 0], [-1.5, -0.5, 2, 0]]), abs=1e-9
    )


def test_slope_is_that_of_smoothed_wires():
    rng = np.random.default_rng(4)
    wires = Wires(mapped({f"c{n}": ("LUT", rng.integers(0, 5, 3).tolist()) for n in range(9)}))
    at = rng.uniform(0, 20, (2, 9))

    def smooth(pins):
        weights = np.exp((pins - pins.max()) / 3)
        return float((weights * pins).sum() / weights.sum())

    def length(at):
        nets = [wires._pins[wires._net == n] for n in range(wires._net.max() + 1)]
        return sum(smooth(axis[net]) + smooth(-axis[net]) for net in nets for axis in at)

    slope = wires.slope(at, 3)
    for axis, cell in np.ndindex(2, 9):
        step = np.zeros_like(at)
        step[axis, cell] = 1e-5
        rise = (length(at + step) - length(at - step)) / 2e-5
        assert slope[axis, cell] == pytest.approx(rise, abs=1e-6)


def test_blocks_take_the_places_with_the_shortest_wires():
    rng = np.random.default_rng(5)
    for _ in range(20):
        # no net has two blocks: what one of them costs does not depend on the others
        cells = {f"dsp{n}": ("DSP", [n]) for n in range(4)}
        cells |= {f"lut{n}": ("LUT", rng.choice(5, 2, replace=False)) for n in range(8)}
        cells = {name: (kind, [int(bit) for bit in bits]) for name, (kind, bits) in cells.items()}
        netlist = mapped(cells)
        wires = Wires(netlist)
        at = rng.integers(0, 50, (2, 12)).astype(float)
        places = rng.integers(0, 50, (2, 6)).astype(float)
        blocks = wires.cells("DSP")

        def length(chosen, netlist=netlist, at=at, places=places, blocks=blocks):
            moved = at.copy()
            moved[:, blocks] = places[:, chosen]
            return half_perimeters(netlist, moved)

        best = min(length(list(chosen)) for chosen in permutations(range(6), 4))
        assert length(wires.assign(blocks, places, at)) == best


def test_charges_part():
    areas = np.ones(400)
    charges = Charges(np.arange(400), areas, (40, 20), 2.0, 1.0)
    x, y = np.meshgrid(np.arange(20) * 2 + 1.0, np.arange(10) * 2 + 1.0)
    even = np.array([np.tile(x.ravel(), 2), np.tile(y.ravel(), 2)])
    overlap, slope = charges.slope(even)
    assert overlap == pytest.approx(0, abs=1e-12)
    assert np.abs(slope).max() < 1e-12
    rng = np.random.default_rng(6)
    crowd = np.array([[10.0], [10]]) + rng.normal(0, 1.5, (2, 400))
    overlap, slope = charges.slope(crowd)
    assert overlap > 0.8
    # downhill leads outwards, and to the right, where there is more room
    outwards = crowd - crowd.mean(axis=1, keepdims=True)
    assert (-slope * outwards).sum() > 0
    assert -slope[0].sum() > abs(slope[1].sum())


def test_cells_are_spread_over_the_chip():
    rng = np.random.default_rng(7)
    wires = Wires(mapped({f"c{n}": ("LUT", [n, (n + 1) % 300]) for n in range(300)}))
    begin = rng.normal(15, 0.5, (2, 300))
    charges = Charges(np.arange(300), np.ones(300), (30, 30), 2.0, 1.5)
    held = np.zeros(300, bool)
    held[:10] = True
    at = Spreader(wires, [charges], (30, 30)).spread(begin, held)
    assert (at[:, :10] == begin[:, :10]).all()
    assert at.min() >= 0
    assert at.max() <= 30
    assert charges.slope(begin)[0] > 0.8
    assert charges.slope(at)[0] < 0.2


def placer_of(family, constraints=None):
    design = Design(
        top="top", part="85k", package="CABGA381", speed="6", frequency_mhz=100.0,
        constraints=constraints,
    )  # fmt: skip
    return Placer(toolchain_of(family).dialect, design)


def test_placer_asks_nextpnr_for_the_places(tmp_path, monkeypatch):
    netlist = mapped({
        "l": ("MULT18X18D", [1]), "r": ("MULT18X18D", [2]), "between": ("LUT4", [1, 2]),
    })  # fmt: skip
    (tmp_path / "top.json").write_text(json.dumps(netlist))
    asked = []

    def nextpnr(tool, arguments, *, cwd, log, is_stuck):
        assert not is_stuck()
        assert arguments[: len(device)] == device
        assert "--lpf" not in arguments
        source = json.loads((cwd / arguments[arguments.index("--json") + 1]).read_text())
        cells = source["modules"]["probe"]["cells"]
        asked.append(("--pack-only" in arguments, len(cells)))
        log.write_text("Info: MULT18X18D: 1/ 3 33%\nInfo: TRELLIS_COMB: 0/ 24 0%\n")
        if "--write" in arguments:
            assert "--no-route" in arguments
            for n, cell in enumerate(cells.values()):
                cell["attributes"]["NEXTPNR_BEL"] = f"X{[4, 90, 5][n]}/Y10/MULT18_{n}"
            (cwd / arguments[arguments.index("--write") + 1]).write_text(json.dumps(source))
        return 0.0

    device = ["--85k", "--package", "CABGA381", "--speed", "6"]
    monkeypatch.setattr("nnef_hw.place.nextpnr.run.run_tool", nextpnr)
    placer_of(ECP5, "LOCATE COMP ...").plan(tmp_path, tmp_path / "plan.log")
    assert asked == [(True, 1), (False, 3)]
    cells = json.loads((tmp_path / "top.json").read_text())["modules"]["top"]["cells"]
    taken = {cells[name]["attributes"]["BEL"] for name in "lr"}
    assert len(taken) == 2
    assert taken < {"X4/Y10/MULT18_0", "X90/Y10/MULT18_1", "X5/Y10/MULT18_2"}
    assert cells["between"]["attributes"] == {}
    assert [path.name for path in tmp_path.iterdir()] == ["top.json"]


@pytest.mark.parametrize("family", [ICE40, GOWIN, ECP5], ids=lambda family: family.name)
def test_nothing_is_asked_where_nothing_is_planned(tmp_path, monkeypatch, family):
    text = json.dumps(mapped({"lut": ("LUT4", [1])}))
    (tmp_path / "top.json").write_text(text)
    monkeypatch.setattr("nnef_hw.place.nextpnr.run.run_tool", None)
    placer_of(family).plan(tmp_path, tmp_path / "log")
    assert (tmp_path / "top.json").read_text() == text
