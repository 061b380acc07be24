"""Paths between registers are as long as their parts."""

import numpy as np
import pytest
from packed import Packed, random_logic

from nnef_hw.place.cells.ecp5_tiles import ECP5_TILES
from nnef_hw.place.cells.slack import Paths

WIRE = 0.08 * (6 + 2 * 5 + 7)
"""Of a net across 12 tiles, of which the first five count twice."""


def at(paths, places):
    """Return places of all cells, (0, 0) but for some."""
    points = np.zeros((2, len(paths.names)))
    for name, place in places.items():
        points[:, paths.names.index(name)] = place
    return points


def test_path_through_a_carry_chain():
    packed = Packed()
    start = packed.flip_flop("start")
    sums = packed.chain("sum", [start] * 4, [start] * 4)
    packed.flip_flop("end", sums[-1])
    packed.flip_flop("far", None, sums[0])
    paths = Paths(packed.cells, ECP5_TILES)
    far = dict.fromkeys((f"sum{n // 2}$CCU2_COMB{n % 2}" for n in range(4)), (12, 0))
    longest = paths.longest(at(paths, {**far, "end": (12, 0), "far": (12, 12)}))
    # carries and the flip-flop beside its sum take no wire
    whole = 0.52 + WIRE + 0.45 + 2 * 0.04 + 0.44
    assert longest[paths.bits.index(sums[-1])] == pytest.approx(whole)
    to_far = paths.bits.index(sums[0])
    assert longest[to_far] == pytest.approx(0.52 + WIRE + 0.24 + WIRE)
    # each arc says how long the longest path through it is
    [ripple] = packed.cells["sum0$CCU2_COMB0"]["connections"]["FCO"]
    through = longest[np.array(paths.bits) == ripple]
    assert through.tolist() == pytest.approx([whole - 0.08, whole])
    assert longest.max() == longest[to_far]


@pytest.mark.parametrize(("port", "slow"), [("A", 5.7), ("B", 0.6)])
def test_block_rams_without_a_register_are_slow_and_controls_late(port, slow):
    packed = Packed()
    out = packed.wire()
    modes = {"REGMODE_A": "NOREG", "REGMODE_B": "OUTREG"}
    packed.cell("ram", "DP16KD", {f"DO{port}0": out}, parameters=modes)
    packed.flip_flop("end", None, None, enable=packed.lut("lut", out))
    paths = Paths(packed.cells, ECP5_TILES)
    longest = paths.longest(at(paths, {}))
    assert longest.max() == pytest.approx(slow + 0.48 + 0.24 + 0.48 + 0.1)


def test_what_no_register_drives_is_never_late():
    packed = Packed()
    net = packed.lut("constant")
    for n in range(3):
        net = packed.lut(f"lut{n}", net)
    packed.flip_flop("end", net)
    assert len(Paths(packed.cells, ECP5_TILES).longest(np.zeros((2, 5)))) == 0


@pytest.mark.parametrize("seed", range(3))
def test_longest_paths_are_those_of_a_search(seed):
    rng = np.random.default_rng(seed)
    packed = random_logic(rng, chains=4, luts=30, lone=5)
    paths = Paths(packed.cells, ECP5_TILES)
    points = rng.integers(0, 30, (2, len(paths.names))).astype(float)
    place = dict(zip(paths.names, points.T, strict=True))
    users, best = {}, 0.0
    for name, cell in packed.cells.items():
        for path in ECP5_TILES.paths(cell):
            users.setdefault(cell["connections"][path.source][0], []).append((name, path))

    def follow(bit, source, time):
        nonlocal best
        for name, path in users.get(bit, ()):
            here = time + path.delay
            cell, (driver, port) = packed.cells[name], source
            if not ECP5_TILES.is_direct(port, path.source):
                dx, dy = np.abs(place[name] - place[driver])
                here += float(ECP5_TILES.wire_delay(dx, dy))
            best = max(best, here)
            if path.target:
                follow(cell["connections"][path.target][0], (name, path.target), here)

    for name, cell in packed.cells.items():
        if cell["type"] == "TRELLIS_FF":
            follow(cell["connections"]["Q"][0], (name, "Q"), 0.52)
    assert paths.longest(points).max() == pytest.approx(best)
