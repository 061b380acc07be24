"""Targets of plain IP's core file for vendors' tools: synthesis of the accelerator for a part.

FuseSoC and edalize write the projects. The tools themselves are none of ours: what they make of the
Verilog was not seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["VENDORS", "Vendor", "clock_constraint", "vendor_targets"]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor's tool as a target of a core file.

    Parameters
    ----------
    name
        Name of the target, and of edalize's flow or tool.
    title
        What the tool is called.
    part
        Options of edalize that name the part; others are given to ``fusesoc run``, or written here.
    further
        Options besides the part.
    is_flow
        Whether edalize has a flow for it, or one of its older tools.
    """

    name: str
    title: str
    part: Mapping[str, str]
    further: Mapping[str, str]
    is_flow: bool

    def target(self) -> str:
        """Return the text of the target in a core file."""
        options = json.dumps({**self.part, **self.further})
        way = (
            f"    flow: {self.name}\n    flow_options: {options}\n"
            if self.is_flow
            else f"    default_tool: {self.name}\n    tools: {{{self.name}: {options}}}\n"
        )
        part = " ".join(self.part.values())
        return (
            f"  {self.name}:\n    <<: *default\n"
            f"    description: {self.title}, for {part} if no other is named\n"
            f"    filesets: [rtl, timing]\n{way}"
        )


VENDORS = (
    Vendor("vivado", "AMD Vivado", {"part": "xc7a35ticsg324-1L"}, {"pnr": "none"}, True),
    Vendor(
        "quartus", "Intel Quartus",
        {"family": "Cyclone V", "device": "5CSEBA6U23I7"}, {"pnr": "none"}, False,
    ),
    Vendor("radiant", "Lattice Radiant", {"part": "LIFCL-40-9BG400C"}, {}, False),
    Vendor("gowin", "Gowin EDA", {"part": "GW2AR-LV18QN88C8/I7"}, {"pnr": "none"}, True),
    Vendor("efinity", "Efinix Efinity", {"family": "Trion", "part": "T20F256", "timing": "C4"}, {},
           True),
)  # fmt: skip
"""Vivado and Quartus synthesize only: a design around it has the pins."""


def clock_constraint(clock: str, clock_mhz: float) -> str:
    """Return constraints (SDC) that give the clock's port the period of a plan."""
    period = 1e3 / clock_mhz
    return (
        f"# {clock_mhz:g} MHz, the clock of the plan. Within a design of your own its constraints "
        f"count.\ncreate_clock -name {clock} -period {period:.3f} [get_ports {{{clock}}}]\n"
    )


def vendor_targets() -> str:
    """Return the text of all vendors' targets in a core file."""
    return "".join(vendor.target() for vendor in VENDORS)
