"""Transposition: the codes of an image with its axes in another order."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.parts.images.reorder import MEMORY_STAGES
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import code_streams, elastic_stages

__all__ = ["Transpose"]


class Transpose(wiring.Component):
    """Give the codes of every frame with the axes of their image in another order.

    Golden model: ``numpy.transpose(image, order)`` of images of any number of axes, some of which
    may run ``backwards``; the last code of so many ``turns`` of them is the last one of a frame.

    Gives a beat per cycle; one is read in a cycle after it was taken. There is room for two images;
    the codes of one make room in the cycle after the last of them was read.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.Transpose):
        self.part = part
        super().__init__(code_streams(part))

    def elaborate(self, platform):
        m = Module()
        image, depth, first = self.part.image, self.part.memory_depth, self.part.first
        m.submodules.storage = storage = TiledMemory(self.part.memory, writable=True)
        newest = Signal(range(depth))
        room = Signal(range(depth + 1), init=depth)
        # Codes behind the one that is read next; negative if that has not come.
        lead = Signal(range(-image, depth), init=-1 - first)
        offset = Signal(range(image), init=first)
        is_second = Signal()
        accept, read = Signal(), Signal()
        step, image_end = self._following_step(m, read)
        frame_end = self._frame_end(m, read, image_end)
        frame_last = Signal()
        present = lead >= 0
        enables, _ = elastic_stages(m, present, self.o, stages=MEMORY_STAGES)
        m.d.comb += [
            self.i.ready.eq(room != 0),
            accept.eq(self.i.valid & self.i.ready),
            read.eq(present & enables[0]),
            storage.write_address.eq(newest),
            storage.write_enable.eq(accept),
            storage.write_data.eq(self.i.payload.data),
            storage.read_address.eq(Mux(is_second, image, 0) + offset),
            storage.read_enable.eq(read),
        ]
        m.d.sync += [
            room.eq(room - accept + Mux(read & image_end, image, 0)),
            lead.eq(lead + accept - Mux(read, step, 0)),
        ]
        with m.If(accept):
            m.d.sync += newest.eq(Mux(newest == depth - 1, 0, newest + 1))
        with m.If(read):
            m.d.sync += [
                offset.eq(Mux(image_end, first, offset + step)),
                is_second.eq(is_second ^ image_end),
                frame_last.eq(frame_end),
            ]
        with m.If(enables[1]):
            m.d.sync += [
                self.o.payload.data.eq(storage.read_data),
                self.o.payload.last.eq(frame_last),
            ]
        return m

    def _frame_end(self, m, read, image_end):
        """Count the images of a frame; return whether its last code is read next."""
        turns = self.part.turns
        if turns == 1:
            return image_end
        turn = Signal(range(turns))
        final = turn == turns - 1
        with m.If(read & image_end):
            m.d.sync += turn.eq(Mux(final, 0, turn + 1))
        return image_end & final

    def _following_step(self, m, read):
        """Count the axes of the result.

        Returns how many codes behind the one that is read the next one comes, and whether it is the
        last of its image: then the first of the next image follows.
        """
        image, axes = self.part.image, self.part.walk
        onward = image - sum((extent - 1) * stride for extent, stride in axes)
        step = Signal(range(-image, max(image, onward) + 1))
        carry, back = Const(1), 0
        m.d.comb += step.eq(onward)
        for axis, (extent, stride) in reversed([*enumerate(axes)]):
            counter = Signal(range(extent), name=f"axis{axis}")
            final = counter == extent - 1
            with m.If(carry & ~final):
                m.d.comb += step.eq(stride - back)
            with m.If(read & carry):
                m.d.sync += counter.eq(Mux(final, 0, counter + 1))
            carry, back = carry & final, back + (extent - 1) * stride
        return step, carry
