"""Reader of SDRAM that leaves the order of the image for rows of tables, which integers choose."""

from amaranth import *
from amaranth.lib.wiring import In

from nnef_hw.parts.readers.sdram_reader import GRANULE
from nnef_hw.rtl.readers.sdram_reader import SdramReader

__all__ = ["RowReader"]


class RowReader(SdramReader):
    """Give the segments of an image in turn, each as a read of :class:`.SdramReader`.

    The segment of a table is the row at the integer of an input, that of the last row for integers
    beyond. It waits until ``comes`` of that input was high since the frame's first segment began.
    ``load`` writes the whole image.

    Members
    -------
    place0, ... : In
        The integer of an input, by its number; only of those that choose rows.
    comes0, ... : In(1)
        It is there, in this cycle.
    """

    unproved = "words follow what a chip answers at its pins; tests simulate the chip"

    @staticmethod
    def _members(part):
        places = {}
        for port, bits in part.place_bits:
            places |= {f"place{port}": In(bits), f"comes{port}": In(1)}
        return {**SdramReader._members(part), **places}

    def elaborate(self, platform):
        part = self.part
        # of the next segment: whether it may begin, its first word, its multiples of 16, the words
        # of the last one
        self.is_known = Signal()
        self.next_first = Signal(range(max(2, part.words)), init=part.segments[0].first)
        self.next_granules = Signal(range(part.granules + 1))
        self.next_tail = Signal(range(GRANULE))
        self.tail = Signal(range(GRANULE))
        m = super().elaborate(platform)
        self._choose(m, part)
        return m

    def _starts(self):
        return self.start & self.is_known

    def _is_behind(self, column):
        return (self.tail != 0) & (column >= self.tail)

    def _begin(self, m, left):
        starts = self._starts()
        with m.If(self.idle & starts):
            m.d.sync += self.tail.eq(self.next_tail)
        return (
            Mux(starts, self.next_first, 0),
            Mux(starts, self.next_granules, self.part.granules),
            Const(0),
        )

    def _choose(self, m, part):
        """Choose the next segment; a read takes longer than that."""
        segment = Signal(range(max(2, len(part.segments))), name="segment")
        known = {port: Signal(name=f"known{port}") for port, _ in part.place_bits}
        places = {port: Signal(bits, name=f"kept_place{port}") for port, bits in part.place_bits}
        begins = self.idle & self._starts()
        with m.If(begins & (segment == part.first)):
            m.d.sync += [flag.eq(0) for flag in known.values()]
        for port, place in places.items():
            with m.If(getattr(self, f"comes{port}")):
                m.d.sync += [known[port].eq(1), place.eq(getattr(self, f"place{port}"))]
        with m.Switch(segment):
            for n, own in enumerate(part.segments):
                with m.Case(n):
                    first, is_known = Const(own.first), Const(1)
                    if own.port is not None:
                        place, is_known = places[own.port], known[own.port]
                        row = Mux(place >= own.rows, own.rows - 1, place)
                        first = own.first + (row << own.pitch.bit_length() - 1)
                    m.d.sync += [
                        self.next_first.eq(first),
                        self.is_known.eq(is_known),
                        self.next_granules.eq(-(-own.words // GRANULE)),
                        self.next_tail.eq(own.words % GRANULE),
                    ]
                    with m.If(begins):
                        m.d.sync += segment.eq(part.following(n))
        with m.If(self.restart):
            m.d.sync += [segment.eq(0), *(flag.eq(0) for flag in known.values())]
