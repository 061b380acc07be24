"""Registers in the block RAMs of an ECP5 in place of flip-flops behind them.

A word takes 5.6 ns out of a DP16KD, and 1 ns out of the register that it has behind its memory.
Yosys does not use that one, so flip-flops that take what is read are exchanged for it in the mapped
netlist. The cycles and the words of all of them stay as they are: the register has a clock enable
of its own, ``OCE`` (Lattice FPGA-TN-02204, ECP5 memory usage guide).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.arithmetic.records import JsonObject, JsonView
from nnef_hw.place.netlist.mapped import Bit, users_of

__all__ = ["use_output_registers"]

MEMORY, FLIP_FLOP = "DP16KD", "TRELLIS_FF"
DATA_BITS = 18
PLAIN = {"CLKMUX": "CLK", "LSRMUX": "LSR", "REGSET": "RESET"}
"""Parameters of a flip-flop that begins with 0."""
ALWAYS = "1 "
"""``CEMUX`` of a flip-flop without a clock enable: in JSON a space follows a string of digits."""

_Cell = JsonObject


@dataclass(frozen=True, slots=True)
class _Port:
    """One that reads: the letter of its controls, and those of the ports that hold its word."""

    name: str
    holders: str

    @staticmethod
    def all_of(memory: _Cell) -> tuple[_Port, ...]:
        """Return the read ports of a block RAM."""
        if int(memory["parameters"]["DATA_WIDTH_A"], 2) == 2 * DATA_BITS:
            # port A writes words of 36 bits, and port B reads with the outputs of both
            return (_Port("B", "AB"),)
        return (_Port("A", "A"), _Port("B", "B"))

    def is_plain(self, memory: _Cell) -> bool:
        """Whether nothing resets or inverts what the register would take."""
        return (
            memory["parameters"][f"CLK{self.name}MUX"] == f"CLK{self.name}"
            and memory["parameters"].get(f"OCE{self.name}MUX", f"OCE{self.name}")
            == f"OCE{self.name}"
            and _pin(memory, f"RST{self.name}") == "0"
        )

    def outputs(self, memory: _Cell) -> dict[str, Bit]:
        """Return the bits of the word by the names of their pins."""
        pins = (f"DO{holder}{n}" for holder in self.holders for n in range(DATA_BITS))
        return {pin: _pin(memory, pin) for pin in pins if _pin(memory, pin) != "x"}

    def register(self, memory: _Cell, enable: Bit) -> None:
        """Use the register behind the memory."""
        for holder in self.holders:
            memory["parameters"][f"REGMODE_{holder}"] = "OUTREG"
            memory["connections"][f"OCE{holder}"] = [enable]


def use_output_registers(netlist: JsonView) -> int:
    """Let block RAMs register their words in place of flip-flops; return of how many.

    All used bits of a port's word have to go to nothing but flip-flops of the port's clock that
    take them in the same cycles.

    Parameters
    ----------
    netlist
        A mapped design as yosys writes it in JSON, flat; it is changed.
    """
    return sum(_use_in_module(module) for module in netlist["modules"].values())


def _use_in_module(module: JsonObject) -> int:
    cells: dict[str, _Cell] = module["cells"]
    memories = [cell for cell in cells.values() if cell["type"] == MEMORY]
    if not memories:
        return 0
    users = users_of(module)
    gone: set[Bit] = set()
    renamed: dict[Bit, Bit] = {}
    removed = 0
    for memory in memories:
        for port in _Port.all_of(memory):
            outputs = port.outputs(memory)
            clock = _pin(memory, f"CLK{port.name}")
            behind = {pin: users[bit] for pin, bit in outputs.items() if users[bit]}
            if not (behind and port.is_plain(memory)):
                continue
            users_of_word = [user for found in behind.values() for user in found]
            enable, *others = {_enable(cells.get(name), pin, clock) for name, pin in users_of_word}
            if enable is None or others:
                continue
            for pin, found in behind.items():
                gone.add(outputs[pin])
                kept, *copies = (_pin(cells.pop(name), "Q") for name, _ in found)
                memory["connections"][pin] = [kept]
                renamed |= dict.fromkeys(copies, kept)
                removed += len(found)
            port.register(memory, enable)
    _rename(module, renamed, gone)
    return removed


def _enable(cell: _Cell | None, pin: str, clock: Bit) -> Bit | None:
    """Return when a cell takes a bit, as a register of the block RAM could: it is a flip-flop."""
    if (
        cell is None
        or cell["type"] != FLIP_FLOP
        or pin != "DI"
        or any(cell["parameters"].get(name) != value for name, value in PLAIN.items())
        or _pin(cell, "LSR") not in {"0", "x"}
        or _pin(cell, "CLK") != clock
    ):
        return None
    return {ALWAYS: "1", "CE": _pin(cell, "CE")}.get(cell["parameters"].get("CEMUX"))


def _rename(module: JsonObject, renamed: Mapping[Bit, Bit], gone: set[Bit]) -> None:
    """Let users of bits read others, and forget the names of bits that are gone."""
    for cell in module["cells"].values():
        for pin, bits in cell["connections"].items():
            if not renamed.keys().isdisjoint(bits):
                cell["connections"][pin] = [renamed.get(bit, bit) for bit in bits]
    for named in (*module["netnames"].values(), *module["ports"].values()):
        named["bits"] = [renamed.get(bit, bit) for bit in named["bits"]]
    for name, net in list(module["netnames"].items()):
        if gone.issuperset(net["bits"]):
            del module["netnames"][name]


def _pin(cell: _Cell, name: str) -> Bit:
    """Return the bit at a pin; "x" if there is none."""
    bit: Bit
    [bit] = cell["connections"].get(name) or ["x"]
    return bit
