"""The class with the greatest mean score of the last steps."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["BestMean"]


class BestMean(wiring.Component):
    """Find the class whose codes of the last steps have the greatest sum.

    Golden model: ``argmax`` of :func:`nnef_hw.boards.interfaces.events.sums_of`, the first of
    several that are equal. It takes a code per cycle, or every second one where sums are kept in a
    memory: each is that of the step before, plus the new code, less the one that is too old now.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.
    classes : int
        Codes of a frame.
    channels : int
        Codes of a pixel, of which a frame has one, or 1.
    mean : int
        Steps whose codes are added.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator.
    o : Out(stream.Signature)
        ``number`` of the class and its ``total``, of every step from the first with a whole mean;
        ``complete`` is low of those before.
    """

    def __init__(self, layout, *, classes, channels, mean):
        if channels not in {1, classes}:
            raise ValueError(f"{classes} classes of pixels of {channels} channels are no vector")
        self.layout, self.classes, self.channels, self.mean = layout, classes, channels, mean
        self.code = Shape.cast(layout["data"].shape.elem_shape)
        self.total = signed(self.code.width + 1 + (mean - 1).bit_length())
        super().__init__({
            "i": In(stream.Signature(layout)),
            "o": Out(stream.Signature(_found_layout(classes, self.total))),
        })

    def elaborate(self, platform):
        m = Module()
        lanes = self.layout["data"].shape.length
        lane, channel = Signal(range(lanes)), Signal(range(self.channels + 1))
        number, best = Signal(range(self.classes)), Signal(self.total, reset_less=True)
        steps = Signal(range(self.mean + 1))
        code, total = Signal(self.code), Signal(self.total)
        last_lane = lane == lanes - 1
        is_real = channel != self.channels
        is_there = Signal()  # what the memories have of this class
        moves = Signal()
        better = is_real & ((number == 0) | (total > best))
        m.d.comb += [
            code.eq(self.i.p.data[lane]),
            moves.eq(self.i.valid & is_there & ~self.o.valid),
            self.i.ready.eq(is_there & ~self.o.valid & last_lane),
        ]
        if self.mean == 1:
            m.d.comb += [is_there.eq(1), total.eq(code)]
        else:
            self._add(m, number, steps, code, total, moves & is_real)
            m.d.sync += is_there.eq(self.i.valid & ~moves)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(moves):
            m.d.sync += lane.eq(Mux(last_lane, 0, lane + 1))
            with m.If(is_real):
                m.d.sync += [channel.eq(channel + 1), number.eq(number + 1)]
            with m.If(last_lane & (channel >= self.channels - 1)):
                m.d.sync += channel.eq(0)
            with m.If(better):
                m.d.sync += [best.eq(total), self.o.p.number.eq(number), self.o.p.total.eq(total)]
            with m.If(last_lane & self.i.p.last):
                m.d.sync += [
                    number.eq(0), self.o.valid.eq(1),
                    self.o.p.complete.eq(steps >= self.mean - 1),
                    steps.eq(Mux(steps == self.mean, steps, steps + 1)),
                ]
        return m

    def _add(self, m, number, steps, code, total, taken):
        """Add the new code to a class's sum, and take away that of ``mean`` steps before."""
        depth = self.mean * self.classes
        place = Signal(range(depth))
        m.submodules.past = past = TiledMemory(
            Tiling(depth, self.code.width, depth, self.code.width), writable=True)
        m.submodules.sums = sums = TiledMemory(
            Tiling(self.classes, self.total.width, self.classes, self.total.width), writable=True)
        old, before = Signal(self.code), Signal(self.total)
        # What is there from before a reset, or from power-on, does not count.
        m.d.comb += [
            old.eq(Mux(steps == self.mean, past.read_data, 0)),
            before.eq(Mux(steps == 0, 0, sums.read_data)),
            total.eq(before + code - old),
        ]
        for memory, address, value in ((past, place, code), (sums, number, total)):
            m.d.comb += [
                memory.read_enable.eq(1),
                memory.read_address.eq(address),
                memory.write_address.eq(address),
                memory.write_data.eq(value),
                memory.write_enable.eq(taken),
            ]
        with m.If(taken):
            m.d.sync += place.eq(Mux(place == depth - 1, 0, place + 1))


def _found_layout(classes, total):
    return data.StructLayout({"number": range(classes), "total": total, "complete": 1})
