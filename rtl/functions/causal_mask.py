"""Channels that are hidden from a softmax, behind a place."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout, code_range

__all__ = ["CausalMask"]


class CausalMask(wiring.Component):
    """Hand on the codes of channels up to a place, and the lowest code for those behind it.

    Golden model: :func:`nnef_hw.arithmetic.places.hide_behind`: what is handed on is greater than
    the lowest code. One beat per cycle, a cycle later; holds while ``o`` is stalled.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Codes of channels that follow each other.
    place : In(stream.Signature(beat_layout))
        The place, which is taken with the last code of a frame.
    o : Out(stream.Signature(beat_layout))
    """

    unproved = "tests simulate every place under stalls"

    def __init__(self, part: parts.CausalMask):
        self.part = part
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        place = beat_layout(bits=part.place_bits, signed=False, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "place": In(stream.Signature(place)),
            "o": Out(stream.Signature(codes)),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        lowest = code_range(part.bits, part.signed).start
        block = Signal(range(part.beats), name="channel" if part.lanes == 1 else "block")
        take = Signal()
        accept = Signal()
        m.d.comb += [
            take.eq(self.place.valid & (~self.o.valid | self.o.ready)),
            accept.eq(self.i.valid & take),
            self.i.ready.eq(take),
            self.place.ready.eq(accept & self.i.payload.last),
        ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(accept)
        with m.If(accept):
            m.d.sync += [
                block.eq(Mux(block == part.beats - 1, 0, block + 1)),
                self.o.payload.last.eq(self.i.payload.last),
            ]
            for lane in range(part.lanes):
                code = self.i.payload.data[lane]
                channel = block * part.lanes + lane if part.lanes > 1 else block
                m.d.sync += self.o.payload.data[lane].eq(
                    Mux(channel > self.place.payload.data[0], lowest,
                        Mux(code == lowest, lowest + 1, code)))
        return m
