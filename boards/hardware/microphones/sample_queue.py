"""Samples that wait while an accelerator computes, in frames of a network."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.host.protocol import LOST_BITS
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["QUEUE", "SAMPLE_BITS", "SampleQueue", "check_beats"]

SAMPLE_BITS = 16
QUEUE = 256
"""Samples that wait while a frame is computed: 16 ms at 16 kHz."""


def check_beats(layout, frame):
    """Refuse beats of something else than a sample, and frames of none.

    Raises
    ------
    ValueError
    """
    code = layout["data"].shape.elem_shape
    if layout["data"].shape.length != 1 or Shape.cast(code).width != SAMPLE_BITS:
        raise ValueError(f"a microphone gives a code of 16 bits per beat, not {layout!r}")
    if frame < 1:
        raise ValueError(f"a frame has at least a sample, not {frame}")


class SampleQueue(wiring.Component):
    """Keep up to 256 samples, one of which leaves every second cycle at most.

    A sample that finds the queue full is lost, and counted. Of channels that belong together all
    are lost, and are counted as one.

    Parameters
    ----------
    layout : StructLayout
        Beats of the input: one code of 16 bits, and ``last``.
    frame : int
        Samples of a frame.
    channels : int
        Samples of an instant, which come one after the other.

    Members
    -------
    sample : In(signed(16))
    taken : In(1)
        There is a sample in this cycle.
    o : Out(stream.Signature(layout))
    lost : Out(16)
        Samples that were lost since the reset; it stays at its greatest value.
    """

    def __init__(self, layout, *, frame, channels=1):
        self.frame, self.channels = frame, channels
        super().__init__({
            "sample": In(signed(SAMPLE_BITS)), "taken": In(1),
            "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        tiling = Tiling(QUEUE, SAMPLE_BITS, QUEUE, SAMPLE_BITS)
        m.submodules.words = words = TiledMemory(tiling, writable=True)
        first, end = Signal(range(2 * QUEUE)), Signal(range(2 * QUEUE))
        full, is_read = Signal(), Signal()
        position = Signal(range(self.frame))
        is_last = Signal()
        m.d.comb += [
            full.eq(self._has_no_room(m, first, end)),
            words.write_data.eq(self.sample),
            words.write_address.eq(end),
            words.write_enable.eq(self.taken & ~full),
            words.read_enable.eq(1),
            words.read_address.eq(first),
            is_last.eq(position == self.frame - 1),
            self.o.valid.eq(is_read),
            self.o.p.data[0].eq(words.read_data),
            self.o.p.last.eq(is_last),
        ]
        with m.If(words.write_enable):
            m.d.sync += end.eq(end + 1)
        with m.If(self.taken & full & self.first & ~self.lost.all()):
            m.d.sync += self.lost.eq(self.lost + 1)
        # A word is there a cycle behind its address: it waits until it is taken.
        moves = Signal()
        m.d.comb += moves.eq(self.o.valid & self.o.ready)
        m.d.sync += is_read.eq(Mux(is_read, ~self.o.ready, first != end))
        with m.If(moves):
            m.d.sync += [first.eq(first + 1), position.eq(Mux(is_last, 0, position + 1))]
        return m

    def _has_no_room(self, m, first, end):
        """Return whether the sample of this cycle is lost: with the first one all of an instant."""
        if self.channels == 1:
            self.first = Const(1)
            return (first ^ end) == QUEUE
        channel, is_lost = Signal(range(self.channels)), Signal(name="is_lost")
        self.first = channel == 0
        held = Signal(range(2 * QUEUE))
        m.d.comb += held.eq(end - first)
        no_room = Mux(self.first, held > QUEUE - self.channels, is_lost)
        with m.If(self.taken):
            m.d.sync += [
                channel.eq(Mux(channel == self.channels - 1, 0, channel + 1)), is_lost.eq(no_room),
            ]
        return no_room
