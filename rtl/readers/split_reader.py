"""Reader of SDRAM whose words are given, and taken to be written, in two beats."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.readers.sdram_reader import SdramReader

__all__ = ["SplitReader"]


class SplitReader(wiring.Component):
    """Give the halves of a memory's words, the lower one first; golden model: what was written.

    The members are those of :class:`.SdramReader`, but for the streams, which are half as wide.
    """

    unproved = "words follow what a chip answers at its pins; tests simulate the chip"

    def __init__(self, part: parts.SplitReader):
        self.part = part
        self.whole = SdramReader(part.whole)
        half = stream.Signature(part.width)
        super().__init__({**self.whole.signature.members, "i": In(half), "o": Out(half)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.whole = whole = self.whole
        for name, member in whole.signature.members.items():
            if name not in {"i", "o"}:
                inner, outer = getattr(whole, name), getattr(self, name)
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)

        width = self.part.width
        lower, is_upper = Signal(width, reset_less=True), Signal(name="writes_upper")
        m.d.comb += [
            whole.i.payload.eq(Cat(lower, self.i.payload)),
            whole.i.valid.eq(self.i.valid & is_upper),
            self.i.ready.eq(~is_upper | whole.i.ready),
        ]
        with m.If(~is_upper):
            m.d.sync += lower.eq(self.i.payload)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += is_upper.eq(~is_upper)

        gives_upper = Signal()
        is_last = self._is_last(m)
        is_alone = is_last if self.part.words % 2 else Const(0)
        next_upper = ~gives_upper & ~is_alone
        if self.part.once % 2:
            # The half behind it is an upper one, of a word whose lower half comes only once.
            next_upper = ~gives_upper | is_last
        m.d.comb += [
            self.o.payload.eq(whole.o.payload.word_select(gives_upper, width)),
            self.o.valid.eq(whole.o.valid),
            whole.o.ready.eq(self.o.ready & (gives_upper | is_alone)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += gives_upper.eq(next_upper)
        with m.If(self.restart):
            m.d.sync += [is_upper.eq(0), gives_upper.eq(0)]
        return m

    def _is_last(self, m):
        """Return whether the half that is given is the last one, if what is behind depends on it.

        It does where that has no other one, or the next one is an upper half.
        """
        words = self.part.words
        if words % 2 == 0 and self.part.once % 2 == 0:
            return Const(0)
        place = Signal(range(words))
        is_last = place == words - 1
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += place.eq(Mux(is_last, self.part.once, place + 1))
        with m.If(self.restart):
            m.d.sync += place.eq(0)
        return is_last
