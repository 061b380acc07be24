"""A link that the project does not have: eight wires each way, with a strobe that changes."""

from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Module, Signal
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.interfaces import Direction, FarEnd, HostLink, Option, PinUse
from nnef_hw.errors import TargetError

__all__ = ["Parallel", "ParallelPhy"]

LEAST_CYCLES = 16


@dataclass(frozen=True)
class Parallel(HostLink):
    """A byte, and a change of its strobe, every so many cycles."""

    spacing: int = 20

    name = "parallel"
    options = (Option("spacing", int, "cycles from byte to byte"),)
    hardware = "parallel_link:ParallelPhy"

    @property
    def pins(self):
        one, eight = {}, {}
        for prefix, direction in (("host", Direction.INPUT), ("board", Direction.OUTPUT)):
            eight[f"{prefix}_data"] = PinUse(direction, 8)
            one[f"{prefix}_strobe"] = PinUse(direction)
        return {**eight, **one}

    def check_clock(self, clk_hz):
        if self.spacing < LEAST_CYCLES:
            raise TargetError(f"--spacing {self.spacing} is under {LEAST_CYCLES} cycles")

    def parameters(self, clk_hz):
        return {"spacing": self.spacing}

    def bytes_per_second(self, clock_mhz):
        return 1e6 * clock_mhz / self.spacing

    def far_end(self, clk_hz):
        return FarEnd(Path(__file__).with_suffix(".h"), "ParallelFarEnd", (self.spacing,))


class ParallelPhy(wiring.Component):
    """The board's side of it."""

    def __init__(self, spacing):
        self.byte_cycles = self.spacing = spacing
        self.latency = 4
        super().__init__({
            "o": Out(stream.Signature(8)),
            "i": In(stream.Signature(8)),
            "host_data": In(8),
            "host_strobe": In(1),
            "board_data": Out(8),
            "board_strobe": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        strobe, before, left = Signal(), Signal(), Signal(range(self.spacing))
        m.submodules.strobe = cdc.FFSynchronizer(self.host_strobe, strobe)
        m.d.sync += before.eq(strobe)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(strobe != before):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(self.host_data)]
        m.d.comb += self.i.ready.eq(left == 0)
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
            # who has seen the last byte of a reply may send at once
            with m.If(left == 1):
                m.d.sync += self.board_strobe.eq(~self.board_strobe)
        with m.Elif(self.i.valid):
            m.d.sync += [left.eq(self.spacing - 1), self.board_data.eq(self.i.payload)]
        return m
