"""The shared engine's packets that stay: parts of its program in the memory of codes."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS, RESIDENT_FLAG

__all__ = ["EngineResident"]


class EngineResident(wiring.Component):
    """Give the beats of a stream, or those of packets that are in the memory of codes.

    A link tells where the next packet is. If that is here, its words are read one after the other,
    the lowest beat first: a word takes two cycles from the one on in which its bank is not
    ``occupied``, since in one of them it may be written, and is there in the next one. The word
    behind it begins in the cycle in which its first beat is taken.

    Golden model: :class:`nnef_hw.engine.timing.feed.Feed`.

    Members
    -------
    i, o : stream.Signature(16)
    link_enable, fill_enable : In(1)
        The beat of ``o`` that is taken tells where a packet is; or is one of a word that is written
        there, behind such a beat.
    occupied : In(2)
        By bank: no word of a packet begins in this cycle.
    writes_soon : In(1)
        A word may be written to either bank in the next cycle, and none in those around it.
    address : Out
    read_enable, write_enable : Out(1)
        Whether the word there is read, unless its bank is written, and whether it is.
    write_data : Out(lanes * 8)
    word : In(lanes * 8)
        What is at the address that was read, a cycle later.
    """

    unproved = "it follows what packets say of the next one; tests/engine simulates it"

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "i": In(stream.Signature(BEAT_BITS)),
            "o": Out(stream.Signature(BEAT_BITS)),
            "link_enable": In(1), "fill_enable": In(1),
            "occupied": In(2), "writes_soon": In(1),
            "address": Out(range(part.codes.words)),
            "read_enable": Out(1), "write_enable": Out(1),
            "write_data": Out(part.array.word_bits), "word": In(part.array.word_bits),
        })

    def elaborate(self, platform):
        m = Module()
        assert Residents.fits(self.part), "a word is two beats"
        is_here, bank = Signal(), Signal()
        place = Signal(len(self.address) - 1)
        # A word is read in the second cycle of its two, or in the first one.
        reads, is_early = Signal(), Signal()
        # It is there: at the memory, or held since it was.
        waits, is_held = Signal(), Signal()
        held = Signal(self.part.array.word_bits, reset_less=True)
        second = Signal(BEAT_BITS, reset_less=True)
        has_second = Signal()
        word, taken, first_taken, begins = Signal.like(held), Signal(), Signal(), Signal()
        is_free = Signal()
        m.d.comb += [
            is_free.eq(is_here & ~self.occupied.bit_select(bank, 1)),
            self.address.eq(Cat(place, bank)),
            word.eq(Mux(is_held, held, self.word)),
            self.o.valid.eq(Mux(is_here, waits | has_second, self.i.valid)),
            self.o.payload.eq(
                Mux(is_here, Mux(has_second, second, word[:BEAT_BITS]), self.i.payload)
            ),
            self.i.ready.eq(~is_here & self.o.ready),
            taken.eq(is_here & self.o.valid & self.o.ready),
            first_taken.eq(taken & ~has_second),
            begins.eq(is_free & ~reads & (~waits | first_taken)),
            # Whether a word begins, and in which of its cycles it is read, is known late: it is
            # read in all cycles in which it may be, and looked at in those.
            self.read_enable.eq(is_here & reads | is_free),
        ]
        m.d.sync += [reads.eq(begins), is_early.eq(self.writes_soon)]
        with m.If(reads | waits):
            m.d.sync += [held.eq(word), is_held.eq(Mux(reads, is_early, ~first_taken))]
        with m.If(reads):
            m.d.sync += waits.eq(1)
        with m.Elif(first_taken):
            m.d.sync += waits.eq(0)
        with m.If(first_taken):
            m.d.sync += has_second.eq(1)
        with m.Elif(taken):
            m.d.sync += has_second.eq(0)

        # A word is written in the cycle after its upper beat, or, if a result is then, in the next.
        is_upper, is_complete = Signal(), Signal()
        m.d.comb += [
            self.write_enable.eq(is_complete & ~is_early), self.write_data.eq(held),
        ]  # fmt: skip
        with m.If(self.write_enable):
            m.d.sync += is_complete.eq(0)
        with m.If(self.fill_enable):
            m.d.sync += is_upper.eq(~is_upper)
            with m.If(is_upper):
                m.d.sync += is_complete.eq(1)
        # Whether a beat is taken is known late: it is kept in any case, until one has been.
        with m.If(is_here):
            with m.If(~has_second):
                m.d.sync += second.eq(word[BEAT_BITS:])
        with m.Elif(is_upper):
            m.d.sync += held.eq(Cat(second, self.i.payload))
        with m.Else():
            m.d.sync += second.eq(self.i.payload)
        with m.If(reads | self.write_enable):
            m.d.sync += place.eq(place + 1)
        with m.If(self.link_enable):
            m.d.sync += [
                Cat(place, bank).eq(self.o.payload),
                is_here.eq(self.o.payload[RESIDENT_FLAG]),
                reads.eq(0), waits.eq(0), has_second.eq(0), is_held.eq(0),
            ]  # fmt: skip
        return m
