"""The shared engine's weights as they pass: a circular memory between a stream and the array."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine import RING_BITS, Engine
from nnef_hw.rtl.memory import TiledMemory

__all__ = ["EngineRing"]


class EngineRing(wiring.Component):
    """Hold the next words of weights of a stream, which an instruction frees when it has ended.

    A beat is taken per cycle as long as there is room for its word; words come in the order in
    which the program needs them, row 0 and lane 0 first, frame after frame.

    Members
    -------
    i : In(stream.Signature(16))
        Two weights per beat.
    address : In(range(ring_words))
    word : Out(rows * lanes * 8)
        The weights at that place, a cycle later.
    filled : Out(range(ring_words + 1))
        Words that are there, those that came in the cycle before included.
    freed : In(range(ring_words + 1))
        So many of the oldest are no longer needed.
    rewind : Out(1)
        The last word of a frame has come: the next one is the first of the next frame.
    """

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "i": In(stream.Signature(RING_BITS)), "address": In(range(part.ring_words)),
            "word": Out(part.multipliers * 8), "filled": Out(range(part.ring_words + 1)),
            "freed": In(range(part.ring_words + 1)), "rewind": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        columns = len(part.weight_memories)
        column = Signal(range(columns))
        place = Signal(range(part.ring_words))
        missing = Signal(range(part.weight_words), init=part.weight_words - 1)
        accept, complete = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(self.filled != part.ring_words),
            accept.eq(self.i.valid & self.i.ready),
            complete.eq(accept & (column == columns - 1)),
        ]
        m.d.sync += [
            self.filled.eq(self.filled + complete - self.freed),
            self.rewind.eq(complete & (missing == 0)),
        ]
        with m.If(accept):
            m.d.sync += column.eq(Mux(complete, 0, column + 1))
        with m.If(complete):
            m.d.sync += [
                place.eq(place + 1),
                missing.eq(Mux(missing == 0, part.weight_words - 1, missing - 1)),
            ]

        # A beat is written a cycle late: the word whose place it takes may have been read last.
        beat = Signal(RING_BITS, reset_less=True)
        written = Signal(range(part.ring_words), reset_less=True)
        writes = Signal(columns)
        m.d.sync += [beat.eq(self.i.payload), written.eq(place), writes.eq(0)]
        with m.If(accept):
            m.d.sync += writes.bit_select(column, 1).eq(1)
        for n, tiling in enumerate(part.weight_memories):
            m.submodules[f"weights{n}"] = memory = TiledMemory(tiling, writable=True)
            m.d.comb += [
                memory.read_address.eq(self.address),
                memory.read_enable.eq(1),
                self.word[n * RING_BITS:(n + 1) * RING_BITS].eq(memory.read_data),
                memory.write_address.eq(written),
                memory.write_data.eq(beat),
                memory.write_enable.eq(writes[n]),
            ]
        return m
