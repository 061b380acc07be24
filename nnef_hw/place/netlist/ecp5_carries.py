"""Carry chains of an ECP5 without what nextpnr adds at their ends.

Nextpnr begins a chain whose first carry is a constant with a CCU2C that makes it, and ends one
whose last carry has a net with a CCU2C that gives it to the fabric, though nobody reads it: four
LUTs per chain. So an unused carry is left open; and the first half of a chain gives the carry of
its own operands whatever comes in: a half's carry is ``LUT4 ? CIN : LUT2`` (yosys,
techlibs/ecp5/cells_sim.v), and its LUT4 is 0, as in what nextpnr would add. The sum of that half,
if it is used, is a LUT of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from nnef_hw.arithmetic.records import JsonObject, JsonView
from nnef_hw.place.netlist.mapped import Bit, users_of

__all__ = ["shorten_chains"]

CARRY = "CCU2C"
PINS = ("A0", "B0", "C0", "D0")
OPEN = "x"
LUT_DIRECTIONS = dict.fromkeys("ABCD", "input") | {"Z": "output"}

_Cell = JsonObject


def shorten_chains(netlist: JsonView) -> int:
    """Take the constants and the unused carries from the ends of carry chains; return how many.

    Parameters
    ----------
    netlist
        A mapped design as yosys writes it in JSON, flat; it is changed.
    """
    return sum(_shorten_in_module(module) for module in netlist["modules"].values())


def _shorten_in_module(module: JsonObject) -> int:
    cells: dict[str, _Cell] = module["cells"]
    carries = {name: cell for name, cell in cells.items() if cell["type"] == CARRY}
    if not carries:
        return 0
    used = users_of(module).keys()
    ends = 0
    for name, cell in carries.items():
        pins = cell["connections"]
        if pins["COUT"][0] not in used and pins["COUT"] != [OPEN]:
            pins["COUT"] = [OPEN]
            ends += 1
        if pins["CIN"][0] in {"0", "1"} and (carry := _carry_of_two(cell)) is not None:
            if pins["S0"][0] in used:
                cells[f"{name}.S0"] = _sum(cell)
            operands, table = carry
            pins |= dict(zip(PINS, ([bit] for bit in (*operands, "1", "1")), strict=True))
            pins |= {"CIN": [OPEN], "S0": [OPEN]}
            # with C and D set its LUT4 is 0
            cell["parameters"]["INIT0"] = f"{table:016b}"
            ends += 1
    return ends


def _carry_of_two(cell: _Cell) -> tuple[tuple[Bit, Bit], int] | None:
    """Return two bits and the table of a LUT2 of them that gives the carry of a first half.

    None if the carry depends on more.
    """
    pins, parameters = cell["connections"], cell["parameters"]
    operands: list[Bit] = [pins[name][0] for name in PINS]
    if parameters["INJECT1_0"] != "NO" or OPEN in operands:
        return None
    init, carry_in = int(parameters["INIT0"], 2), int(pins["CIN"][0])
    bits = [bit for bit in dict.fromkeys(operands) if bit not in {"0", "1"}]

    def carry(values: Mapping[Bit, int]) -> int:
        index = sum(values[bit] << n for n, bit in enumerate(operands))
        return carry_in if init >> index & 1 else init >> (index & 3) & 1

    choices = [
        {"0": 0, "1": 1, **dict(zip(bits, choice, strict=True))}
        for choice in product((0, 1), repeat=len(bits))
    ]
    needed = [
        bit for bit in bits
        if any(carry(values) != carry({**values, bit: 1 - values[bit]}) for values in choices)
    ]  # fmt: skip
    if len(needed) > 2:
        return None
    first, second = (*needed, "1", "1")[:2]
    table = {values[first] + 2 * values[second]: carry(values) for values in choices}
    return (first, second), sum(value << index for index, value in table.items())


def _sum(cell: _Cell) -> _Cell:
    """Return the LUT that gives the sum of a chain's first half."""
    pins, parameters = cell["connections"], cell["parameters"]
    init = int(parameters["INIT0"], 2) ^ (0xFFFF if pins["CIN"] == ["1"] else 0)
    return {
        "hide_name": 1,
        "type": "LUT4",
        "parameters": {"INIT": f"{init:016b}"},
        "attributes": {},
        "port_directions": LUT_DIRECTIONS,
        "connections": dict(zip("ABCDZ", (pins[name] for name in (*PINS, "S0")), strict=True)),
    }
