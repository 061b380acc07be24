"""Argmax: index of the largest or the smallest code of a pixel."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["Argmax"]


class Argmax(wiring.Component):
    """Replace the codes of a pixel by the index of their maximum or minimum.

    Golden models: :func:`nnef_hw.arithmetic.numerics.argmax_codes`,
    :func:`~nnef_hw.arithmetic.numerics.argmin_codes`; the lowest index of several. Takes a code per
    cycle; only the last code of a pixel waits for the output register.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(beat_layout))
        One unsigned index per pixel.
    """

    def __init__(self, part: parts.Argmax):
        self.part = part
        codes = beat_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(codes)),
            "o": Out(stream.Signature(beat_layout(bits=part.index_bits, signed=False, lanes=1))),
        })

    def elaborate(self, platform):
        m = Module()
        part, code = self.part, self.i.payload.data[0]
        best = Signal.like(code, reset_less=True)
        best_index = Signal(part.index_bits, reset_less=True)
        index = Signal(part.index_bits)
        final = Signal()
        accept = Signal()
        better = Signal(name="greater" if part.greatest else "less")

        m.d.comb += [
            final.eq(index == part.channels - 1),
            self.i.ready.eq(~final | ~self.o.valid | self.o.ready),
            accept.eq(self.i.valid & self.i.ready),
            better.eq((index == 0) | (code > best if part.greatest else code < best)),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(accept):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
            with m.If(better):
                m.d.sync += [best.eq(code), best_index.eq(index)]
            with m.If(final):
                m.d.sync += [
                    self.o.valid.eq(1),
                    self.o.payload.data[0].eq(Mux(better, index, best_index)),
                    self.o.payload.last.eq(self.i.payload.last),
                ]
        return m
