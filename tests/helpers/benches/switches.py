"""A source that the project does not have: frames made of the positions of eight switches."""

from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.interfaces import Direction, FarEnd, PinUse, Source
from nnef_hw.errors import TargetError

__all__ = ["Switches", "SwitchesReader"]


@dataclass(frozen=True)
class Switches(Source):
    """Every beat has the positions of the switches, plus its number in the frame.

    Before each frame it waits for so many cycles.
    """

    beats: int
    pause: int = 0

    name = "switches"
    hardware = "switches:SwitchesReader"

    @property
    def pins(self):
        return {"switches": PinUse(Direction.INPUT, 8)}

    def check_clock(self, clk_hz):
        if clk_hz > 50_000_000:
            raise TargetError(f"switches cannot be read at {clk_hz} Hz")

    def parameters(self, clk_hz):
        return {"beats": self.beats, "pause": self.pause}

    def to_json(self):
        return {"kind": self.name, "beats": self.beats, "pause": self.pause}

    @classmethod
    def from_json(cls, entry):
        return cls(entry["beats"], entry["pause"])

    def far_end(self, clk_hz):
        return FarEnd(Path(__file__).with_suffix(".h"), "SwitchesFarEnd", (0x30,))


class SwitchesReader(wiring.Component):
    """The hardware of it."""

    def __init__(self, layout, *, beats, pause):
        self.beats, self.pause = beats, pause
        super().__init__({"o": Out(stream.Signature(layout)), "switches": In(8)})

    def elaborate(self, platform):
        m = Module()
        levels, number = Signal(8), Signal(range(self.beats))
        m.submodules.levels = cdc.FFSynchronizer(self.switches, levels)
        last = number == self.beats - 1
        left = Signal(range(self.pause + 1), init=self.pause)
        m.d.comb += [
            self.o.valid.eq(left == 0),
            self.o.p.data[0].eq(levels + number),
            self.o.p.last.eq(last),
        ]
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.Elif(self.o.ready):
            m.d.sync += number.eq(Mux(last, 0, number + 1))
            with m.If(last):
                m.d.sync += left.eq(self.pause)
        return m
