"""Names of the wires of a module: those of its author, or ones that say what is computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from nnef_hw.verilog.rtlil import Cell, Module, Slice

__all__ = ["Directions", "Names", "identifier", "is_private"]

# Longer ones say less than the operator alone.
MOST_CHARACTERS = 40
_KEYWORDS = (
    "accept_on alias always always_comb always_ff always_latch and assert assign assume "
    "automatic before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez "
    "cell chandle checker class clocking cmos config const constraint context continue cover "
    "covergroup coverpoint cross deassign default defparam design disable dist do edge else end "
    "endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup "
    "endinterface endmodule endpackage endprimitive endprogram endproperty endspecify "
    "endsequence endtable endtask enum event eventually expect export extends extern final "
    "first_match for force foreach forever fork forkjoin function generate genvar global highz0 "
    "highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include "
    "initial inout input inside instance int integer interconnect interface intersect join "
    "join_any join_none large let liblist library local localparam logic longint macromodule "
    "matches medium modport module nand negedge nettype new nexttime nmos nor noshowcancelled "
    "not notif0 notif1 null or output package packed parameter pmos posedge primitive priority "
    "program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect "
    "pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg "
    "reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always "
    "s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal "
    "showcancelled signed small soft solve specify specparam static string strong strong0 "
    "strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this "
    "throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior "
    "trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var "
    "vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard wire with "
    "within wor xnor xor"
)
KEYWORDS = frozenset(_KEYWORDS.split())
"""Reserved words of SystemVerilog (IEEE 1800-2017, annex B), as tools take a file for that, too."""
_SUFFIX = re.compile(r"\$\d+$")

_WORDS = {
    "$add": ("plus", "sum"), "$sub": ("minus", "difference"), "$mul": ("times", "product"),
    "$eq": ("is", "is_equal"), "$ne": ("is_not", "differs"), "$lt": ("below", "is_below"),
    "$le": ("at_most", "is_at_most"), "$gt": ("above", "is_above"),
    "$ge": ("at_least", "is_at_least"), "$and": ("and", "both"), "$or": ("or", "either"),
    "$xor": ("xor", "odd"), "$shl": ("up_by", "shifted"), "$shr": ("down_by", "shifted"),
    "$sshr": ("down_by", "shifted"), "$shift": ("from", "picked"),
}  # fmt: skip
_PREFIXES = {
    "$not": "not", "$neg": "minus", "$reduce_and": "all", "$reduce_or": "any",
    "$reduce_bool": "any", "$reduce_xor": "parity",
}  # fmt: skip


def is_private(wire: str) -> bool:
    """Whether nobody has named a wire."""
    return wire.startswith("$")


def identifier(name: str) -> str:
    """Return a name that Verilog takes as it is."""
    name = re.sub(r"\W+", "_", name).strip("_") or "value"
    if name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if name in KEYWORDS else name


Directions = Mapping[str, Mapping[str, str]]
"""Directions of the ports of modules, by the modules' names."""


class Names:
    """The names that a module uses, and what its wires and instances are called."""

    def __init__(self, module: Module, directions: Directions) -> None:
        self._module = module
        self._used: set[str] = set()
        self._wires: dict[str, str] = {}
        self.instances: dict[str, str] = {}
        wires = module.wires.values()
        for wire in wires:
            if wire.flow:
                self._wires[wire.name] = self.unused(wire.name[1:])
        for cell in module.cells:
            if cell.kind.startswith("\\"):
                self.instances[cell.name] = self.unused(_instance(cell.name))
        instances = [cell for cell in module.cells if cell.kind.startswith("\\")]
        # A wire between two is called by the one that drives it.
        for flow in ("output", "input"):
            self._name_connections(instances, flow, directions)
        self._name_memory_ports()
        for name in (*module.memories, *(wire.name for wire in wires if not is_private(wire.name))):
            self._wires.setdefault(name, self.unused(_plain(name)))

    def unused(self, wish: str) -> str:
        """Take a name: the one wished for, or with a number behind it."""
        base = name = identifier(wish)
        number = 1
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name

    def of(self, wire: str) -> str:
        """Return the name of a wire or memory that has one."""
        return self._wires[wire]

    def give(self, wire: str, wish: str) -> str:
        """Name a wire, unless it has a name."""
        if wire not in self._wires:
            self._wires[wire] = self.unused(wish)
        return self._wires[wire]

    def register(self, wire: str) -> str:
        """Name a register that is part of a signal only: by the fields that it holds."""
        fields = []
        for name, value in self._module.connects.items():
            parts = [part for part in value if isinstance(part, Slice) and part.wire == wire]
            if parts:
                fields.append((name, len(value) == len(parts) == 1, parts[0].low))
        exact = [(low, name) for name, is_whole, low in fields if is_whole and "[" not in name]
        if not exact:
            return self.give(wire, _plain(fields[0][0]) if fields else "state")
        base, _, _ = exact[0][1].partition(".")
        ends = dict.fromkeys(name.rpartition(".")[2] for _, name in sorted(exact))
        return self.give(wire, "_".join([base[1:], *ends] if "." in exact[0][1] else [base[1:]]))

    def expression(self, cell: Cell, operands: dict[str, str]) -> str:
        """Return a name for the result of an operator on operands with these names."""
        kind = cell.kind
        if kind in _PREFIXES:
            wish, short = f"{_PREFIXES[kind]}_{operands['A']}", _PREFIXES[kind]
        elif kind == "$mux":
            chosen, other, condition = (operands[port] for port in "BAS")
            is_number = chosen.isdigit()
            wish = f"{other}_unless_{condition}" if is_number else f"{chosen}_if_{condition}"
            short = "choice"
        else:
            word, short = _WORDS[kind]
            wish = f"{operands['A']}_{word}_{operands['B']}"
        return wish if all(operands.values()) and len(wish) <= MOST_CHARACTERS else short

    def _name_memory_ports(self) -> None:
        """Call what is connected to a memory by its name, unless somebody named it otherwise."""
        for cell in self._module.cells:
            if cell.kind not in {"$memrd_v2", "$memwr_v2"}:
                continue
            memory = cell.memory
            self.give(memory, _plain(memory))
            written = "_write" if cell.kind == "$memwr_v2" else ""
            for port, word in (("DATA", "data"), ("ADDR", "address"), ("EN", "enable")):
                for part in cell.ports[port][:1]:
                    if isinstance(part, Slice) and "__" in part.wire:
                        self.give(part.wire, f"{self.of(memory)}{written}_{word}")

    def _name_connections(
        self, instances: Iterable[Cell], flow: str, directions: Directions
    ) -> None:
        """Call a wire by instance and port if it is called like the port anyway."""
        for cell in instances:
            if cell.kind[1:] not in directions:
                continue
            for port, value in cell.ports.items():
                if directions[cell.kind[1:]].get(port) != flow:
                    continue
                part = value[0] if len(value) == 1 else None
                if isinstance(part, Slice) and part.wire not in self._wires:
                    wire = self._module.wires[part.wire]
                    is_between = flow == "output" and "__" in wire.name
                    named = _SUFFIX.sub("", wire.name)[1:]
                    if part.width == wire.width and (is_between or named == port):
                        self.give(wire.name, f"{_plain(cell.name)}_{port}")


def _instance(name: str) -> str:
    """Return a name for an instance; its author's name may be that of its result."""
    plain = _plain(name)
    return plain if plain == name[1:] else f"{plain}_unit"


def _plain(name: str) -> str:
    return _SUFFIX.sub("", name)[1:]
