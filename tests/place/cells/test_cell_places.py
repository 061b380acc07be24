"""Cells of logic tiles get places that nextpnr accepts, along their wires."""

import json
import re
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from packed import CLOCK, Packed, random_logic
from sweeps import few

from nnef_hw.errors import UnroutedError
from nnef_hw.place.cells.cell_places import _Plan, place_cells
from nnef_hw.place.cells.ecp5_tiles import ECP5_TILES
from nnef_hw.place.cells.tile_grid import Spot, TileGrid
from nnef_hw.place.cells.tiles import Control, Member, Unit
from nnef_hw.place.netlist.bels import place_of

# A row without logic, and one that is shorter.
PLACES = [(x, y) for y in (1, 2, 3, 4, 6, 7, 8) for x in range(2, 18) if y != 8 or x > 6]
MARKS = [f"X{x}/Y{y}/SLICEC.RAMW" for x, y in PLACES]
BEL = re.compile(r"X(\d+)/Y(\d+)/SLICE([A-D])\.(K|FF|RAMW)(\d?)")


def go_on():
    """Never end the search."""


def positions(cells):
    """Return (x, y, slot, part) of each cell by its name, from nextpnr's names."""
    found = {}
    for name, cell in cells.items():
        if bel := BEL.fullmatch(cell["attributes"].get("BEL", "")):
            x, y, letter, part, lane = bel.groups()
            found[name] = int(x), int(y), 2 * "ABCD".index(letter) + int(lane or 0), part
    return found


def check(cells):
    """Check what nextpnr's ``slices_compatible`` and its clusters ask for, anew."""
    at = positions(cells)
    assert at.keys() == {name for name, cell in cells.items() if cell["type"] != "DP16KD"}
    assert len({*at.values()}) == len(at)
    assert {(x, y) for x, y, *_ in at.values()} <= {*PLACES}
    drivers = {
        cell["connections"][port][0]: (name, port)
        for name, cell in cells.items() for port in ("F", "FCO", "Q")
        if cell["connections"].get(port)
    }  # fmt: skip
    resets, enables, carries = defaultdict(set), defaultdict(set), defaultdict(set)
    inverted = defaultdict(set)
    for name, cell in cells.items():
        x, y, slot, part = at.get(name, (0, 0, 0, ""))
        pins = cell["connections"]
        if part == "FF":
            resets[x, y].add(tuple(pins["LSR"]))
            inverted[x, y].add(cell["parameters"]["LSRMUX"] == "INV")
            enables[x, y, slot // 2].add((tuple(pins["CE"]), cell["parameters"]["CEMUX"]))
            if pins["DI"]:
                beside, _ = drivers[pins["DI"][0]]
                assert at[beside] == (x, y, slot, "K")
        if part == "K":
            carries[x, y, slot // 2].add(cell["parameters"].get("MODE"))
            if "WREMUX" in cell["parameters"]:
                inverted[x, y].add(cell["parameters"]["WREMUX"] == "INV")
            if carry := pins.get("FCI"):
                before = at[drivers[carry[0]][0]]
                assert 8 * x + slot == 8 * before[0] + before[2] + 1
                assert y == before[1]
    alike = resets, enables, carries, inverted
    assert all(len(kinds) == 1 for found in alike for kinds in found.values())
    for name in {name.split("$")[0] for name in cells if "$DPRAM" in name}:
        tile = at[f"{name}$DPRAM_COMB0"][:2]
        parts = [*(f"$DPRAM_COMB{n}" for n in range(4)), "$RAMW_BLOCK0", "$RAMW_BLOCK1"]
        assert [at[name + part] for part in parts] == [(*tile, n, "K") for n in range(6)]
        assert at[f"{name}$RAMW_SLICE"] == (*tile, 4, "RAMW")


def wire_length(cells):
    """Sum up half the perimeters of the nets between cells with places."""
    nets = defaultdict(list)
    for cell in cells.values():
        place = place_of(cell["attributes"].get("BEL", ""))
        for port, bits in cell["connections"].items():
            if bits and place and bits[0] != CLOCK and not port.startswith("FC"):
                nets[bits[0]].append(place)
    return sum(int(np.ptp(places, axis=0).sum()) for places in nets.values())


@pytest.mark.parametrize("seed", few(range(4), [0]))
def test_places_are_legal_and_wires_short(seed):
    rng = np.random.default_rng(seed)
    packed = random_logic(rng)
    packed.cell("ram", "DP16KD", {"ADA0": 5, "DOA0": packed.wire()}, NEXTPNR_BEL="X9/Y5/EBR0")
    before = json.dumps(packed.netlist)
    place_cells(packed.netlist, ECP5_TILES, MARKS, 60, seed, go_on)
    check(packed.cells)
    again = json.loads(before)
    place_cells(again, ECP5_TILES, MARKS, 60, seed, go_on)
    assert again == packed.netlist
    # the same slots, each unit given to another one of its size
    units = defaultdict(list)
    for unit in ECP5_TILES.units(packed.cells):
        units[unit.slots, tuple(member[1:] for member in unit.members)].append(unit)
    scattered = json.loads(before)["modules"]["top"]["cells"]
    for alike in units.values():
        for unit, other in zip(alike, rng.permutation(len(alike)), strict=True):
            for here, there in zip(unit.members, alike[other].members, strict=True):
                place = packed.cells[there.name]["attributes"]["BEL"]
                scattered[here.name]["attributes"]["BEL"] = place
    assert wire_length(packed.cells) < 0.8 * wire_length(scattered)


def test_a_full_chip_has_places_and_a_fuller_one_none():
    packed = Packed()
    for n in range(8 * len(PLACES)):
        packed.flip_flop(f"q{n}", packed.lut(f"lut{n}", 2, 3))
    place_cells(packed.netlist, ECP5_TILES, MARKS, 60, 1, go_on)
    check(packed.cells)
    packed.lut("last", 2, 3)
    with pytest.raises(UnroutedError, match="no 1 LUTs in a row are left for"):
        place_cells(packed.netlist, ECP5_TILES, MARKS, 60, 1, go_on)


def test_search_ends_when_nobody_needs_it():
    packed = random_logic(np.random.default_rng(8))
    calls = []

    def check():
        calls.append(1)
        if len(calls) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        place_cells(packed.netlist, ECP5_TILES, MARKS, 60, 1, check)
    assert positions(packed.cells) == {}


def test_few_cells_of_a_large_chip_are_together():
    packed = random_logic(np.random.default_rng(6))
    marks = [f"X{x}/Y{y}/SLICEC.RAMW" for x in range(2, 80) for y in range(1, 60)]
    place_cells(packed.netlist, ECP5_TILES, marks, 60, 1, go_on)
    at = np.array([place[:2] for place in positions(packed.cells).values()])
    assert np.ptp(np.percentile(at, [5, 95], axis=0), axis=0).prod() < 0.1 * len(marks)


def test_nothing_is_placed_where_there_is_no_logic():
    packed = Packed()
    packed.cell("ram", "DP16KD", {"DOA0": 5}, BEL="X9/Y5/EBR0")
    place_cells(packed.netlist, ECP5_TILES, MARKS, 60, 1, go_on)
    assert packed.cells["ram"]["attributes"] == {"BEL": "X9/Y5/EBR0"}


def test_late_paths_pull_their_cells_together():
    """A path of many LUTs between registers that other nets pull apart."""
    longest = {}
    for mhz in (10, 200):
        rng = np.random.default_rng(7)
        packed = random_logic(rng, chains=30, luts=100, lone=100)
        ends = [f"lone{n}" for n in range(100)]
        net = packed.cells["lone0"]["connections"]["Q"][0]
        for n in range(12):
            far = packed.cells[ends[8 * n]]["connections"]["Q"][0]
            net = packed.lut(f"path{n}", net, far)
        packed.flip_flop("end", net)
        place_cells(packed.netlist, ECP5_TILES, MARKS, mhz, 1, go_on)
        check(packed.cells)
        at = [place_of(packed.cells[f"path{n}"]["attributes"]["BEL"]) for n in range(12)]
        longest[mhz] = sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(at))
    assert longest[200] < longest[10]


def test_areas_grow_where_wires_are_dense():
    packed = random_logic(np.random.default_rng(3), rams=0)
    units = ECP5_TILES.units(packed.cells)
    plan = _Plan(packed.cells, units, ECP5_TILES, PLACES, 10)
    rng = np.random.default_rng(4)
    at = np.array([rng.uniform(2, 6, len(units)), rng.uniform(2, 6, len(units))])
    far = np.arange(len(units)) % 10 == 0
    at[:, far] = rng.uniform(12, 17, (2, far.sum()))[:, : far.sum()]
    at[1, far] = rng.uniform(5, 8, far.sum())
    demand = plan._demand(at)
    assert demand.mean() == pytest.approx(1)
    assert demand[~far].mean() > 1.2 * demand[far].mean()


def unit(slots, *, tile=None, pair=None, inverted=False, is_aligned=False, has_lut=True):
    """Build a unit of LUTs, with flip-flops if they are to have anything in common."""
    members = [Member(f"k{n}", n, "K") for n in range(slots) if has_lut]
    controls = []
    if tile or pair:
        members += [Member(f"f{n}", n, "FF") for n in range(slots)]
        controls = [(n, Control(tile, pair, inverted)) for n in range(slots)]
    return Unit(slots, members, is_aligned, controls)


def test_units_fit_where_their_slots_and_controls_allow():
    grid = TileGrid(ECP5_TILES, [(3, 1), (4, 1), (6, 1), (4, 2)])
    assert [*grid.columns] == [3, 4, 5, 6]
    assert grid.rows == [1, 2]
    assert grid.fit(unit(2), 0, 2) is grid.fit(unit(1), 1, 0) is None
    # across two tiles, but not across the gap behind them
    assert grid.fit(unit(10), 0, 0) == Spot(0, 0)
    assert grid.fit(unit(10), 0, 1) is None
    first = unit(6, tile="reset", pair="enable")
    grid.put(first, Spot(0, 2))
    assert grid.fit(unit(2, tile="reset", pair="other"), 0, 0) == Spot(0, 0)
    assert grid.fit(unit(2, tile="other", pair="enable"), 0, 0) is None
    assert grid.fit(unit(6, is_aligned=True), 0, 0) is None
    assert grid.fit(unit(6, is_aligned=True), 0, 1) == Spot(0, 8)
    assert grid.fit(unit(4), 0, 0) is None
    assert grid.fit(unit(10), 0, 0) is None
    # a lone LUT beside one with a flip-flop of another enable, and one with a register of its own
    grid.put(unit(1, tile="reset", pair="a"), Spot(0, 0))
    assert grid.fit(unit(1), 0, 0) == Spot(0, 1)
    assert grid.fit(unit(1, tile="reset", pair="b"), 0, 0) is None
    assert grid.fit(unit(1, tile="reset", pair="a"), 0, 0) == Spot(0, 1)
    grid.take(first, Spot(0, 2))
    assert grid.fit(unit(6, tile="reset", pair="b"), 0, 0) == Spot(0, 2)
    assert grid.place(unit(8), Spot(0, 0)) == (3, 1)
    assert grid.place(unit(4), Spot(1, 12)) == (4.25, 2)


def test_flip_flops_beside_a_ram_invert_what_it_does():
    grid = TileGrid(ECP5_TILES, [(3, 1), (4, 1)])
    ram = Unit(
        6, [Member(f"k{n}", n, "K") for n in range(6)], True, [(0, Control(None, None, True))]
    )
    grid.put(ram, Spot(0, 0))
    own, other = (unit(2, tile="reset", pair="a", inverted=inverted) for inverted in (True, False))
    assert grid.fit(own, 0, 0) == Spot(0, 6)
    assert grid.fit(other, 0, 0) is None
    assert grid.fit(other, 0, 1) == Spot(0, 8)
    grid.put(other, Spot(0, 8))
    assert grid.fit(ram, 0, 1) is None
    grid.take(ram, Spot(0, 0))
    assert grid.fit(other, 0, 0) == Spot(0, 0)


def test_rams_and_flip_flops_that_invert_other_signals_are_apart():
    packed = random_logic(np.random.default_rng(9), chains=4, luts=30, lone=300, rams=25)
    place_cells(packed.netlist, ECP5_TILES, MARKS, 60, 1, go_on)
    check(packed.cells)


def test_lone_flip_flops_are_beside_chains_without():
    grid = TileGrid(ECP5_TILES, [(3, 1)])
    grid.put(unit(8), Spot(0, 0))
    assert grid.fit(unit(1, has_lut=False, tile="reset", pair="a"), 0, 0) == Spot(0, 0)
    assert grid.fit(unit(1), 0, 0) is grid.fit(unit(1, tile="reset", pair="a"), 0, 0) is None


@pytest.mark.parametrize(("shares", "chosen"), [((0.9, 1.2), 0), ((1.2, 0.9), -1), ((1.2, 1.3), 0)])
def test_moves_that_make_paths_late_are_taken_back(monkeypatch, shares, chosen):
    packed = random_logic(np.random.default_rng(5))
    units = ECP5_TILES.units(packed.cells)
    plan = _Plan(packed.cells, units, ECP5_TILES, PLACES, 10)
    at = plan.spread(1, go_on)
    first, *rest = shares
    turns = iter([first, *rest * 99])
    kept = []

    def weigh(plan, at, how):
        kept.append(at.copy())
        return next(turns)

    monkeypatch.setattr(_Plan, "_weigh", weigh)
    settled = plan.settle(at, go_on)
    assert len(kept) > 2
    moved = [plan.grid.place(u, spot) for u, spot in zip(units, settled.spots, strict=True)]
    assert np.array_equal(np.array(moved).T, kept[chosen][:, : len(units)])
    lengths = [(high - low).sum() for low, high in map(plan.wires.boxes, kept)]
    assert lengths[-1] < lengths[0]
