"""Rows of a table, chosen by integers."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import beat_layout, code_range

__all__ = ["Lookup"]


class Lookup(wiring.Component):
    """Give the row of a table that stands at an integer.

    Golden model: :func:`nnef_hw.arithmetic.places.look_up_rows`: an integer beyond the last row is
    taken for that. A beat per cycle, the first one a cycle after the integer, which is taken with
    the last; holds while ``o`` is stalled.

    Parameters
    ----------
    codes : list[list[int]]
        Codes of every row.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Unsigned integers, one per beat.
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If there are not as many codes as the part says, or one does not fit their format.
    """

    unproved = "tests simulate every integer under stalls"

    def __init__(self, part: parts.Lookup, *, codes):
        if {len(codes), *map(len, codes)} != {part.rows, part.channels}:
            raise ValueError(f"Lookup needs {part.rows} rows of {part.channels} codes")
        allowed = code_range(part.bits, part.signed)
        outside = [code for row in codes for code in row if code not in allowed]
        if outside:
            raise ValueError(f"Lookup of {part.bits} bits cannot hold {outside[0]!r}")
        self.part = part
        self.words = [
            sum((code & (1 << part.bits) - 1) << n * part.bits
                for n, code in enumerate(row[first:first + part.lanes]))
            for row in codes
            for first in range(0, part.channels, part.lanes)
        ]
        integers = beat_layout(bits=part.in_bits, signed=False, lanes=1)
        beats = beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes)
        super().__init__({"i": In(stream.Signature(integers)), "o": Out(stream.Signature(beats))})

    def elaborate(self, platform):
        m = Module()
        part = self.part
        m.submodules.words = words = TiledMemory(part.tiling, words=self.words, style=part.style)
        given = self.i.payload.data[0]
        row = Signal(range(part.rows))
        beat = Signal(range(part.beats))
        read = Signal()
        is_last = Signal()
        m.d.comb += [
            row.eq(given if part.rows == 1 << part.in_bits
                   else Mux(given >= part.rows, part.rows - 1, given)),
            is_last.eq(beat == part.beats - 1),
            read.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(read & is_last),
            words.read_address.eq(row * part.beats + beat),
            words.read_enable.eq(read),
            self.o.payload.data.eq(words.read_data),
        ]
        with m.If(read):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                self.o.payload.last.eq(self.i.payload.last & is_last),
            ]
            with m.If(self.i.valid):
                m.d.sync += beat.eq(Mux(is_last, 0, beat + 1))
        return m
