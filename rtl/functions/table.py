"""Table: any function of one activation code, from block RAM."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["Table", "words_by_address"]


class Table(wiring.Component):
    """Replace every code by its entry; golden model: ``entries[code - lowest code]``.

    One beat per cycle; holds while ``o`` is stalled. Every lane has a memory of its own.

    Parameters
    ----------
    entries : list[int]
        Result of every code, lowest code first.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Raises
    ------
    ValueError
        If a code has no entry, or an entry no code.
    """

    def __init__(self, part: parts.Table, *, entries):
        if len(entries) != part.memory.depth:
            raise ValueError(f"Table needs {part.memory.depth} entries, not {len(entries)}")
        self.part = part
        self.words = words_by_address(entries, signed=part.in_signed, width=part.out_bits)
        codes, results = (
            beat_layout(bits=bits, signed=signed, lanes=part.lanes)
            for bits, signed in ((part.in_bits, part.in_signed), (part.out_bits, part.out_signed))
        )
        super().__init__({"i": In(stream.Signature(codes)), "o": Out(stream.Signature(results))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        for lane in range(self.part.lanes):
            storage = TiledMemory(self.part.memory, words=self.words)
            m.submodules[f"lane{lane}"] = storage
            m.d.comb += [
                storage.read_address.eq(self.i.payload.data[lane].as_unsigned()),
                storage.read_enable.eq(self.i.ready),
                self.o.payload.data[lane].eq(storage.read_data),
            ]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.last.eq(self.i.payload.last)]
        return m


def words_by_address(entries, *, signed, width):
    """Return the entries by the bits of their codes: of signed codes the negative ones are last."""
    half = len(entries) // 2 if signed else 0
    return [int(entry) & (1 << width) - 1 for entry in [*entries[half:], *entries[:half]]]
