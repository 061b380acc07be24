"""A build with registers on Wishbone as a LiteX module."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Protocol

from litex.gen import LiteXContext, LiteXModule
from litex.soc.interconnect import stream, wishbone
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import C, Cat, ClockSignal, Instance, ResetSignal, Signal

from nnef_hw.boards.interfaces import find_bus, link_of
from nnef_hw.codegen.ip import bus_module
from nnef_hw.errors import UsageError
from nnef_hw.host.manifest import TensorStream, read_manifest
from nnef_hw.registers.accelerator import accelerator_registers
from nnef_hw.run.artifacts import BuildFolder

__all__ = ["Accelerator"]

BUS = find_bus("wishbone")


class Platform(Protocol):
    """Takes files of Verilog, as LiteX's platforms do."""

    def add_source(self, path: str, /) -> object:
        """Add a file to the design."""


class Accelerator(LiteXModule):  # type: ignore[misc]
    """An accelerator with its registers, streams and interrupt.

    Parameters
    ----------
    build
        Folder of a build with ``--board none --bus wishbone``.
    platform
        Platform that gets the Verilog; by default that of the system being made.

    Attributes
    ----------
    bus : wishbone.Interface
        The registers, for ``soc.bus.add_slave``; ``ip/registers.h`` has their addresses.
    size : int
        Bytes of the registers' region, which must not be cached.
    ev : EventManager
        The interrupt, for ``soc.irq.add``: ``done`` while an event of the registers stands.
    sink, source : stream.Endpoint
        Frames and results, a beat's codes in whole bytes as ``data``; of several inputs or outputs
        ``sink_NAME`` each. With ``--bus-data registers`` there are none.

    Raises
    ------
    UsageError
        If there is no such build, or it has no registers on Wishbone.

    Examples
    --------
    >>> soc.accelerator = Accelerator("build/digits_cnn")
    >>> region = SoCRegion(size=soc.accelerator.size, cached=False)
    >>> soc.bus.add_slave("accelerator", soc.accelerator.bus, region)
    >>> soc.irq.add("accelerator")
    """

    def __init__(self, build: str | PathLike[str], platform: Platform | None = None) -> None:
        folder = Path(build)
        manifest = read_manifest(folder)
        streams = link_of(manifest.link)
        if getattr(streams, "bus", None) != BUS:
            raise UsageError(
                f"{str(folder)!r} has no registers on {BUS.title}",
                remedy=f"build it with --board none --bus {BUS.name}",
            )
        described = BuildFolder.open(folder).manifest
        name = described["module"]
        self.with_data = streams.with_data
        registers = accelerator_registers(
            name, "", manifest.hash, with_data=self.with_data, with_program=streams.with_program
        )
        self.size = 1 << registers.address_bits
        self.bus = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
        self.irq = Signal()
        self.ev = EventManager()
        self.ev.done = EventSourceLevel()
        self.ev.finalize()
        self.comb += self.ev.done.trigger.eq(self.irq)
        bus = self.bus
        ports: dict[str, object] = {
            "i_wb_clk_i": ClockSignal("sys"),
            "i_wb_rst_i": ResetSignal("sys", allow_reset_less=True),
            "i_wb_cyc_i": bus.cyc, "i_wb_stb_i": bus.stb, "i_wb_we_i": bus.we,
            "i_wb_adr_i": Cat(C(0, 2), bus.adr)[: registers.address_bits],
            "i_wb_sel_i": bus.sel, "i_wb_dat_i": bus.dat_w, "o_wb_dat_o": bus.dat_r,
            "o_wb_ack_o": bus.ack, "o_wb_err_o": bus.err, "o_irq": self.irq,
        }  # fmt: skip
        if not self.with_data:
            for entry, tensor in zip(described["inputs"], manifest.inputs, strict=True):
                ports |= self._input(entry["port"], tensor)
            for entry, tensor in zip(described["outputs"], manifest.outputs, strict=True):
                ports |= self._output(entry["port"], tensor)
        module = bus_module(name, BUS)
        self.specials += Instance(module, **ports)
        target = LiteXContext.platform if platform is None else platform
        for path in (folder / "rtl" / "top.v", folder / "ip" / f"{module}.v"):
            target.add_source(str(path.resolve()))

    def _input(self, port: str, tensor: TensorStream) -> dict[str, object]:
        """Make an endpoint for frames; return the ports that it leads to."""
        sink, axis = _endpoint(tensor), f"s_axis{port[1:]}"
        setattr(self, f"sink{port[1:]}", sink)
        return {
            f"i_{axis}_tdata": sink.data, f"i_{axis}_tvalid": sink.valid,
            f"i_{axis}_tlast": sink.last, f"o_{axis}_tready": sink.ready,
        }  # fmt: skip

    def _output(self, port: str, tensor: TensorStream) -> dict[str, object]:
        """Make an endpoint of results; return the ports that it comes from."""
        source, axis = _endpoint(tensor), f"m_axis{port[1:]}"
        setattr(self, f"source{port[1:]}", source)
        return {
            f"o_{axis}_tdata": source.data, f"o_{axis}_tvalid": source.valid,
            f"o_{axis}_tlast": source.last, f"i_{axis}_tready": source.ready,
        }  # fmt: skip


def _endpoint(tensor: TensorStream) -> stream.Endpoint:
    return stream.Endpoint([("data", 8 * -(-tensor.qtype.bits // 8) * tensor.lanes)])
