"""Constant operand of an element-wise operator."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from nnef_hw.blockram import tile_memory
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.stream import beat_layout

__all__ = ["Constant"]


class Constant(wiring.Component):
    """Give the same codes for ever; golden model: ``tile``.

    A beat per cycle. It is one of the streams of an element-wise operator, which takes its beats
    together with those of the other one.

    Parameters
    ----------
    codes : list[int]
        A code per channel, or of a whole frame.
    repeats : int
        How often they come in a frame.
    bits, signed : int, bool
        Format of the codes.
    ram : BlockRam
        The device's block RAM.
    style : str
        ``"block"``, or ``"logic"`` for LUTs.

    Members
    -------
    o : Out(stream.Signature(beat_layout))
        Valid from the second cycle after reset on.
    """

    def __init__(self, *, codes, repeats, bits, signed, ram, style="block"):
        lowest = -(1 << bits - 1) if signed else 0
        outside = [code for code in codes if not lowest <= code < lowest + (1 << bits)]
        if outside:
            raise ValueError(f"Constant of {bits} bits cannot hold {outside[0]!r}")
        self.codes = [code % (1 << bits) for code in codes]
        self.repeats = repeats
        self.tiling = tile_memory(ram, len(codes), bits)
        self.style = style
        beat = beat_layout(bits=bits, signed=signed, lanes=1)
        super().__init__({"o": Out(stream.Signature(beat))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = TiledMemory(self.tiling, words=self.codes, style=self.style)
        position = Signal(range(len(self.codes)))
        repeat = Signal(range(self.repeats))
        round_end = position == len(self.codes) - 1
        frame_end = round_end & (repeat == self.repeats - 1)
        read = Signal()
        m.d.comb += [
            read.eq(~self.o.valid | self.o.ready),
            words.read_address.eq(position),
            words.read_enable.eq(read),
            self.o.payload.data.eq(words.read_data),
        ]
        m.d.sync += self.o.valid.eq(1)
        with m.If(read):
            m.d.sync += [
                position.eq(Mux(round_end, 0, position + 1)),
                self.o.payload.last.eq(frame_end),
            ]
            with m.If(round_end):
                m.d.sync += repeat.eq(Mux(frame_end, 0, repeat + 1))
        return m
