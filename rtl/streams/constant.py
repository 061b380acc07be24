"""Constant operand of an element-wise operator."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import beat_layout, beat_words, code_range

__all__ = ["Constant"]


class Constant(wiring.Component):
    """Give the same codes for ever; golden model: ``tile``.

    A beat per cycle. It is one of the streams of an element-wise operator, which takes its beats
    together with those of the other one.

    Parameters
    ----------
    codes : list[int]
        A code per channel, or of a whole frame.

    Members
    -------
    o : Out(stream.Signature(beat_layout))
        Valid from the second cycle after reset on.

    Raises
    ------
    ValueError
        If there are not as many codes as its part says, or one does not fit their format.
    """

    def __init__(self, part: parts.Constant, *, codes):
        allowed = code_range(part.bits, part.signed)
        outside = [code for code in codes if code not in allowed]
        if outside:
            raise ValueError(f"Constant of {part.bits} bits cannot hold {outside[0]!r}")
        if len(codes) != part.count * part.lanes:
            raise ValueError(f"Constant needs {part.count * part.lanes} codes, not {len(codes)}")
        self.part = part
        self.words = beat_words(codes, bits=part.bits, lanes=part.lanes)
        beat = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        super().__init__({"o": Out(stream.Signature(beat))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = TiledMemory(self.part.tiling, words=self.words,
                                               style=self.part.style)
        position = Signal(range(self.part.count))
        repeat = Signal(range(self.part.repeats))
        round_end = position == self.part.count - 1
        frame_end = round_end & (repeat == self.part.repeats - 1)
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
