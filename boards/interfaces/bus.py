"""Buses by which a system reaches the registers of plain IP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nnef_hw.errors import UsageError

__all__ = ["AXI4_LITE", "BUSES", "BUS_DATA", "WISHBONE", "Bus", "BusPin", "find_bus"]


@dataclass(frozen=True)
class BusPin:
    """A port of the wrapper of a bus.

    Parameters
    ----------
    name
        Name in Verilog.
    member
        Member of the front end; empty if it is not read.
    bits
        Its width; 0 stands for that of addresses.
    is_input
        Whether it leads to the registers.
    """

    name: str
    member: str
    bits: int = 1
    is_input: bool = True


@dataclass(frozen=True)
class Bus:
    """A bus, as users choose it.

    Parameters
    ----------
    name
        Its name on the command line and in the manifest; the module is ``NAME_`` and it.
    title
        Its name for people.
    clock, reset, reset_low
        Ports of clock and reset, and whether that is active low.
    pins
        Further ports.
    hardware
        Its front end, ``module:class``.
    """

    name: str
    title: str
    clock: str
    reset: str
    reset_low: bool
    pins: Sequence[BusPin]
    hardware: str

    @property
    def suffix(self) -> str:
        """End of the name of the module with the bus."""
        return self.name.replace("-", "_")

    def hardware_class(self) -> Any:
        """Return the class of its front end."""
        module, _, name = self.hardware.partition(":")
        return getattr(import_module(module), name)


def _axi_pins(inputs: Mapping[str, int], outputs: Mapping[str, int]) -> tuple[BusPin, ...]:
    unread = {"awprot", "arprot"}
    return tuple(
        BusPin(f"s_axi_{name}", "" if name in unread else name, bits, is_input)
        for is_input, names in ((True, inputs), (False, outputs)) for name, bits in names.items()
    )


AXI4_LITE = Bus(
    name="axi4-lite", title="AXI4-Lite", clock="aclk", reset="aresetn", reset_low=True,
    pins=_axi_pins(
        {"awaddr": 0, "awprot": 3, "awvalid": 1, "wdata": 32, "wstrb": 4, "wvalid": 1, "bready": 1,
         "araddr": 0, "arprot": 3, "arvalid": 1, "rready": 1},
        {"awready": 1, "wready": 1, "bresp": 2, "bvalid": 1, "arready": 1, "rdata": 32,
         "rresp": 2, "rvalid": 1},
    ),
    hardware="nnef_hw.boards.buses.axi_lite:AxiLite",
)
WISHBONE = Bus(
    name="wishbone", title="Wishbone B4", clock="wb_clk_i", reset="wb_rst_i", reset_low=False,
    pins=(
        BusPin("wb_cyc_i", "cyc"), BusPin("wb_stb_i", "stb"), BusPin("wb_we_i", "we"),
        BusPin("wb_adr_i", "adr", 0), BusPin("wb_sel_i", "sel", 4),
        BusPin("wb_dat_i", "dat_i", 32), BusPin("wb_dat_o", "dat_o", 32, False),
        BusPin("wb_ack_o", "ack", 1, False), BusPin("wb_err_o", "err", 1, False),
    ),
    hardware="nnef_hw.boards.buses.wishbone:Wishbone",
)
BUSES = (AXI4_LITE, WISHBONE)
"""Every bus that plain IP may have."""
BUS_DATA = ("streams", "registers")
"""How frames come to an accelerator behind a bus: by streams beside it, or by its registers."""


def find_bus(name: str) -> Bus:
    """Return the bus of a name.

    Raises
    ------
    UsageError
        If there is none.
    """
    for bus in BUSES:
        if bus.name == name:
            return bus
    raise UsageError(
        f"there is no bus {name!r}", remedy=f"use --bus {' or '.join(x.name for x in BUSES)}")
