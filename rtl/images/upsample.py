"""Upsampling by whole factors: every pixel several times, every row several times."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.parts.images.reorder import MEMORY_STAGES
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import code_streams, elastic_stages

__all__ = ["Upsample"]


class Upsample(wiring.Component):
    """Repeat columns and rows; golden model: ``repeat`` along both axes (nearest neighbour).

    Gives a beat per cycle. A beat is read for the first time in a cycle after it was taken, and
    again and again from memory; it makes room in the cycle after it was read for the last time. One
    row of memory lets beats in only while a row is repeated for the last time; with two, they may
    come at any pace.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.Upsample):
        self.part = part
        super().__init__(code_streams(part))

    def elaborate(self, platform):
        m = Module()
        depth = self.part.memory.depth
        m.submodules.storage = storage = TiledMemory(self.part.memory, writable=True)
        accept, first_read, last_read = Signal(), Signal(), Signal()
        stored, unread = Signal(range(depth + 1)), Signal(range(depth + 1))
        newest = Signal(range(depth))
        m.d.comb += [
            self.i.ready.eq(stored != depth),
            accept.eq(self.i.valid & self.i.ready),
            storage.write_address.eq(newest),
            storage.write_enable.eq(accept),
            storage.write_data.eq(self.i.payload.data),
        ]
        for count, removed in ((stored, last_read), (unread, first_read)):
            with m.If(accept != removed):
                m.d.sync += count.eq(Mux(accept, count + 1, count - 1))
        with m.If(accept):
            m.d.sync += newest.eq(_next(newest, depth))
        self._read(m, storage, unread != 0, first_read, last_read)
        return m

    def _read(self, m, storage, fresh, first_read, last_read):
        """Read every pixel and every row as often as it is given."""
        rows, columns = self.part.factors
        channel = Signal(range(self.part.channels))
        copy = Signal(range(columns))
        column = Signal(range(self.part.width))
        replay = Signal(range(rows))
        row = Signal(range(self.part.height))
        present, read = Signal(), Signal()
        pixel_end, copies_end, row_end, replays_end, frame_end = (
            Signal(name=name) for name in ("pixel_end", "copies_end", "row_end", "replays_end",
                                           "frame_end"))
        enables, _ = elastic_stages(m, present, self.o, stages=MEMORY_STAGES)
        newly = (copy == 0) & (replay == 0)
        m.d.comb += [
            present.eq(fresh | ~newly),
            read.eq(present & enables[0]),
            first_read.eq(read & newly),
            last_read.eq(read & (copy == columns - 1) & (replay == rows - 1)),
            pixel_end.eq(channel == self.part.channels - 1),
            copies_end.eq(pixel_end & (copy == columns - 1)),
            row_end.eq(copies_end & (column == self.part.width - 1)),
            replays_end.eq(row_end & (replay == rows - 1)),
            frame_end.eq(replays_end & (row == self.part.height - 1)),
        ]

        depth = self.part.memory.depth
        address, pixel_start, row_start = (
            Signal(range(depth), name=name) for name in ("address", "pixel_start", "row_start"))
        following = Signal.like(address)
        m.d.comb += [
            following.eq(_next(address, depth)),
            storage.read_address.eq(address),
            storage.read_enable.eq(read),
        ]
        frame_last = Signal()
        with m.If(read):
            m.d.sync += [
                frame_last.eq(frame_end),
                channel.eq(Mux(pixel_end, 0, channel + 1)),
                address.eq(following),
            ]
            with m.If(pixel_end):
                m.d.sync += [copy.eq(Mux(copies_end, 0, copy + 1)), address.eq(pixel_start)]
            with m.If(copies_end):
                m.d.sync += [column.eq(Mux(row_end, 0, column + 1)),
                             address.eq(following), pixel_start.eq(following)]
            with m.If(row_end):
                m.d.sync += [replay.eq(Mux(replays_end, 0, replay + 1)),
                             address.eq(row_start), pixel_start.eq(row_start)]
            with m.If(replays_end):
                m.d.sync += [row.eq(Mux(frame_end, 0, row + 1)), address.eq(following),
                             pixel_start.eq(following), row_start.eq(following)]
        with m.If(enables[1]):
            m.d.sync += [
                self.o.payload.data.eq(storage.read_data),
                self.o.payload.last.eq(frame_last),
            ]


def _next(position, count):
    """Return the position that follows, modulo ``count``."""
    return Mux(position == count - 1, 0, position + 1)
