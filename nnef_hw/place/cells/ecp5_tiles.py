"""The logic tiles of an ECP5: four slices of two LUTs and two flip-flops.

What a tile can hold is in nextpnr's ``Arch::slices_compatible`` (ecp5/arch_place.cc), what it packs
together in ecp5/pack.cc, and delays are in ns for speed grade 6.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nnef_hw.place.cells.tiles import Cell, Control, LogicTiles, Member, Path, Unit
from nnef_hw.place.netlist.mapped import Bit, drivers_of

__all__ = ["ECP5_TILES"]

COMB, FLIP_FLOP, RAM_WRITE = "TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW"
RAM_SLOTS = 6
"""Of a RAM of 16 x 4 bits: four LUTs that are read, and a slice for writing."""
RAM_PARTS = {"$DPRAM_COMB": 0, "$RAMW_BLOCK": 4, "$RAMW_SLICE": 4}
"""The slots of a RAM's cells by what nextpnr calls them."""
INVERTED = {"INV", "0"}
"""Settings that invert a clock, or the signal that lets a RAM be written."""
LUT, TO_CARRY, CARRY, FROM_CARRY = 0.24, 0.45, 0.04, 0.44
CLOCK_TO_Q, CONTROL = 0.52, 0.1
BLOCK_RAM = {"NOREG": 5.7, "OUTREG": 0.6}
"""By the mode of the output registers of a port, whose outputs are DOA0 or DOB0 and so on."""
TILE = 0.08
NEAR = 5
"""Tiles that count twice."""


class _Ecp5Tiles(LogicTiles):
    """Logic tiles of every ECP5."""

    mark = RAM_WRITE
    slots = 8
    lut, flip_flop = "K", "FF"
    # Of wires across six tiles several nets wanted eight times as many horizontal ones as vertical
    # ones where both had as many tiles to cross.
    stretch = 1.15

    def units(self, cells: Mapping[str, Cell]) -> list[Unit]:
        drivers = drivers_of(cells)
        units = [*_chains(cells, drivers), *_rams(cells)]
        taken = {member.name for unit in units for member in unit.members}
        units += [
            Unit(1, [Member(name, 0, self.lut)])
            for name, cell in cells.items()
            if cell["type"] == COMB and name not in taken
        ]
        slots = {
            member.name: (unit, member.slot)
            for unit in units for member in unit.members if member.part == self.lut
        }  # fmt: skip
        for name, cell in cells.items():
            if cell["type"] != FLIP_FLOP:
                continue
            if data := cell["connections"].get("DI"):
                unit, slot = slots[drivers[data[0]][0]]
            else:
                unit, slot = Unit(1, []), 0
                units.append(unit)
            unit.members.append(Member(name, slot, self.flip_flop))
            unit.controls.append((slot, _control(cell)))
        return units

    def name(self, x: int, y: int, slot: int, part: str) -> str:
        lane = "" if part == "RAMW" else slot % 2
        return f"X{x}/Y{y}/SLICE{'ABCD'[slot // 2]}.{part}{lane}"

    def is_wire(self, port: str) -> bool:
        return port not in {"FCI", "FCO", "WCK"} and not port.startswith("CLK")

    def paths(self, cell: Cell) -> Sequence[Path]:
        pins = cell["connections"]
        inputs = [
            port for port, way in cell["port_directions"].items()
            if way == "input" and pins.get(port) and (port == "FCI" or self.is_wire(port))
        ]  # fmt: skip
        if cell["type"] != COMB:
            return [Path(port, None, CONTROL if port in {"CE", "LSR"} else 0) for port in inputs]
        outputs = [port for port in ("F", "FCO") if pins.get(port)]
        return [
            Path(port, target, _through(port, target))
            for port in inputs if port in {"A", "B", "C", "D", "FCI"} for target in outputs
        ]  # fmt: skip

    def clock_to_output(self, cell: Cell, port: str) -> float | None:
        if cell["type"] == COMB:
            return None
        # Of a block RAM whose port B reads, port A may have no register.
        return BLOCK_RAM.get(cell["parameters"].get(f"REGMODE_{port[2:3]}", ""), CLOCK_TO_Q)

    def is_direct(self, source: str, target: str) -> bool:
        return source == "FCO" or target == "DI"

    def wire_delay(self, dx: NDArray[np.float64], dy: NDArray[np.float64]) -> NDArray[np.float64]:
        # Arch::predictDelay in ecp5/arch.cc
        far = np.maximum(dx - NEAR, 0) + np.maximum(dy - NEAR, 0)
        delays: NDArray[np.float64] = TILE * (
            6 + far + 2 * (np.minimum(dx, NEAR) + np.minimum(dy, NEAR))
        )
        return delays


def _chains(cells: Mapping[str, Cell], drivers: Mapping[Bit, tuple[str, str]]) -> list[Unit]:
    """Return the carry chains."""
    following: dict[str, str] = {}
    first = []
    for name, cell in cells.items():
        if cell["type"] != COMB or cell["parameters"].get("MODE") != "CCU2":
            continue
        carry = cell["connections"].get("FCI")
        if carry and carry[0] in drivers:
            following[drivers[carry[0]][0]] = name
        else:
            first.append(name)
    units = []
    for name in first:
        chain = [name]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        members = [Member(member, slot, _Ecp5Tiles.lut) for slot, member in enumerate(chain)]
        units.append(Unit(len(chain), members))
    return units


def _rams(cells: Mapping[str, Cell]) -> list[Unit]:
    """Return the RAMs in LUTs."""
    rams: dict[str, list[Member]] = defaultdict(list)
    controls: dict[str, Control] = {}
    for name, cell in cells.items():
        for tag, slot in RAM_PARTS.items():
            ram, _, number = name.rpartition(tag)
            if ram and (not number or number.isdigit()):
                part = "RAMW" if cell["type"] == RAM_WRITE else _Ecp5Tiles.lut
                rams[ram].append(Member(name, slot + int(number or 0), part))
                if cell["parameters"].get("MODE") == "DPRAM":
                    controls[ram] = _ram_control(cell)
    return [
        Unit(RAM_SLOTS, members, is_aligned=True, controls=[(0, controls[ram])])
        for ram, members in rams.items()
    ]


def _ram_control(cell: Cell) -> Control:
    """Return whether a RAM's clock and the signal that lets it write are inverted."""
    muxes = [cell["parameters"].get(name) in INVERTED for name in ("WCKMUX", "WREMUX")]
    return Control(None, None, tuple(muxes))


def _control(cell: Cell) -> Control:
    """Return signals that flip-flops share: clock and reset in a tile, the rest in a slice."""
    pins, parameters = cell["connections"], cell["parameters"]

    def net(port: str) -> int | None:
        return next(iter(pins.get(port, ())), None)

    reset = net("LSR")
    inverted = parameters.get("LSRMUX") if reset is not None else None
    is_asynchronous = parameters.get("SRMODE") == "ASYNC"
    shared = (net("CLK"), parameters.get("CLKMUX"), reset, inverted, is_asynchronous)
    muxes = parameters.get("CLKMUX") in INVERTED, parameters.get("LSRMUX") == "INV"
    return Control(shared, (net("CE"), parameters.get("CEMUX"), parameters.get("GSR")), muxes)


def _through(source: str, target: str) -> float:
    if source == "FCI":
        return FROM_CARRY if target == "F" else CARRY
    return LUT if target == "F" else TO_CARRY


ECP5_TILES = _Ecp5Tiles()
