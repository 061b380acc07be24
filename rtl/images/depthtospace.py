"""Depth to space: groups of channels become neighbouring pixels."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.parts.images.reorder import MEMORY_STAGES
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import code_streams, elastic_stages

__all__ = ["DepthToSpace"]


class DepthToSpace(wiring.Component):
    """Spread the channels of a pixel over a rectangle of pixels.

    Golden model: an image [row, column, (y, x, channel)] becomes [(row, y), (column, x), channel],
    where y and x count the ``factors``. So a transposed convolution of stride ``factors`` is a
    convolution with as many output channels more, and this behind it: no multiplier meets zeros.

    Gives a beat per cycle; one is read in a cycle after it was taken. The beats of a pixel make
    room in the cycle after the last of them was read. A frame takes as many cycles as it has beats,
    if ``depth`` is at least two rows of the input, and more where it is less.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.DepthToSpace):
        self.part = part
        super().__init__(code_streams(part))

    def elaborate(self, platform):
        m = Module()
        depth = self.part.memory.depth
        m.submodules.storage = storage = TiledMemory(self.part.memory, writable=True)
        accept, read = Signal(), Signal()
        newest = Signal(range(depth))
        room = Signal(range(depth + 1), init=depth)
        # Codes behind the one that is read next; negative if that has not come.
        lead = Signal(range(-depth - 1, depth), init=-1)
        freed = Signal(range(self.part.pixel + 1))
        step = Signal(lead.shape())
        m.d.comb += [
            self.i.ready.eq(room != 0),
            accept.eq(self.i.valid & self.i.ready),
            storage.write_address.eq(newest),
            storage.write_enable.eq(accept),
            storage.write_data.eq(self.i.payload.data),
        ]
        m.d.sync += [
            newest.eq(newest + accept),
            room.eq(room - accept + freed),
            lead.eq(lead + accept - step),
        ]
        self._read(m, storage, lead >= 0, read, step, freed)
        return m

    def _read(self, m, storage, present, read, step, freed):
        """Read the runs of a row's pixels, a row of their rectangles after the other."""
        rows, _ = self.part.factors
        offset = Signal(range(self.part.run))
        column = Signal(range(self.part.width))
        part = Signal(range(rows))
        row = Signal(range(self.part.height))
        run_end, row_end, pixels_end, frame_end, frame_last = (
            Signal(name=name) for name in ("run_end", "row_end", "pixels_end", "frame_end",
                                           "frame_last"))
        final_part = part == rows - 1
        enables, _ = elastic_stages(m, present, self.o, stages=MEMORY_STAGES)
        address = Signal(range(self.part.memory.depth))
        m.d.comb += [
            read.eq(present & enables[0]),
            run_end.eq(offset == self.part.run - 1),
            row_end.eq(run_end & (column == self.part.width - 1)),
            pixels_end.eq(row_end & final_part),
            frame_end.eq(pixels_end & (row == self.part.height - 1)),
            storage.read_address.eq(address),
            storage.read_enable.eq(read),
        ]
        to_next_pixel = self.part.pixel - self.part.run + 1
        to_next_part = 1 - (self.part.width - 1) * self.part.pixel
        with m.If(read):
            m.d.comb += [
                step.eq(Mux(row_end & ~final_part, to_next_part,
                            Mux(run_end & ~pixels_end, to_next_pixel, 1))),
                freed.eq(Mux(run_end & final_part, self.part.pixel, 0)),
            ]
            m.d.sync += [
                frame_last.eq(frame_end),
                address.eq(address + step),
                offset.eq(Mux(run_end, 0, offset + 1)),
            ]
            with m.If(run_end):
                m.d.sync += column.eq(Mux(row_end, 0, column + 1))
            with m.If(row_end):
                m.d.sync += part.eq(Mux(final_part, 0, part + 1))
            with m.If(pixels_end):
                m.d.sync += row.eq(Mux(frame_end, 0, row + 1))
        with m.If(enables[1]):
            m.d.sync += [
                self.o.payload.data.eq(storage.read_data),
                self.o.payload.last.eq(frame_last),
            ]
