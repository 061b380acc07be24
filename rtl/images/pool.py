"""Pooling: reduces every pass of a window stream to one beat."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.rtl.windows.linebuffer import window_layout

__all__ = ["MaxPool", "SumPool"]


class MaxPool(wiring.Component):
    """Lane-wise maximum over the words of each pass; golden model: ``max``.

    One word per cycle; the result waits in the output register, and only the last word of the next
    pass waits for it.

    Members
    -------
    i : In(stream.Signature(window_layout))
    o : Out(stream.Signature(beat_layout))
    """

    def __init__(self, part: parts.MaxPool):
        self.part = part
        layout = {"bits": part.bits, "signed": part.signed, "lanes": part.lanes}
        super().__init__({
            "i": In(stream.Signature(window_layout(**layout))),
            "o": Out(stream.Signature(beat_layout(**layout))),
        })

    def elaborate(self, platform):
        m = Module()
        first = Signal(init=1)
        accept = _accept_word(m, self.i, self.o, first)
        for lane in range(self.part.lanes):
            code = self.i.payload.data[lane]
            best = Signal.like(code, name=f"best{lane}", reset_less=True)
            greater = Signal.like(code, name=f"greater{lane}")
            m.d.comb += greater.eq(Mux(first | (code > best), code, best))
            with m.If(accept):
                m.d.sync += best.eq(greater)
                with m.If(self.i.payload.last):
                    m.d.sync += self.o.payload.data[lane].eq(greater)
        return m


class SumPool(wiring.Component):
    """Sum over the words of each pass, for average pooling; golden model: ``sum``.

    Throughput and stalls as :class:`MaxPool`. One lane.

    Members
    -------
    i : In(stream.Signature(window_layout))
    o : Out(stream.Signature(sum_layout))
    """

    def __init__(self, part: parts.SumPool):
        self.part = part
        words = window_layout(bits=part.bits, signed=part.signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(words)),
            "o": Out(stream.Signature(sum_layout(part.acc_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        first = Signal(init=1)
        total = Signal(signed(self.part.acc_bits), reset_less=True)
        following = Signal(signed(self.part.acc_bits))
        accept = _accept_word(m, self.i, self.o, first)
        m.d.comb += following.eq(Mux(first, 0, total) + self.i.payload.data[0])
        with m.If(accept):
            m.d.sync += total.eq(following)
            with m.If(self.i.payload.last):
                m.d.sync += self.o.payload.acc[0].eq(following)
        return m


def _accept_word(m, i, o, first):
    """Accept words unless a result would be overwritten; return the accept signal."""
    accept = Signal()
    m.d.comb += [
        i.ready.eq(~i.payload.last | ~o.valid | o.ready),
        accept.eq(i.valid & i.ready),
    ]
    with m.If(o.ready):
        m.d.sync += o.valid.eq(0)
    with m.If(accept):
        m.d.sync += first.eq(i.payload.last)
        with m.If(i.payload.last):
            m.d.sync += [o.valid.eq(1), o.payload.last.eq(i.payload.end)]
    return accept
