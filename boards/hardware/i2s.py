"""Receiver of a microphone with I2S, whose clocks it makes."""

from fractions import Fraction

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.interfaces.i2s import FRAME_BITS, LEAST_CYCLES
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.host.protocol import LOST_BITS
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["I2sReceiver"]

SAMPLE_BITS = 16
QUEUE = 256
"""Samples that wait while a frame is computed: 16 ms at 16 kHz."""


class I2sReceiver(wiring.Component):
    """Samples of the left channel of a microphone, 16 bits each, in frames of a network.

    The bit clock has ``edges`` edges in ``cycles`` cycles, so that its rate is exact; half a bit is
    a cycle longer now and then. Word select changes every 32 bits, as the bit clock falls, and a
    bit is taken from before that. A slot's first bit comes a bit behind word select, the highest
    first. Samples wait in a queue of 256; one that finds it full is lost, and counted.

    Parameters
    ----------
    layout : StructLayout
        Beats of the input: one code of 16 bits, and ``last``.
    edges, cycles : int
        Edges of the bit clock in so many cycles.
    frame : int
        Samples of a frame.

    Members
    -------
    i2s_bclk, i2s_ws : Out(1)
        Bit clock and word select: low for the left channel.
    i2s_data : In(1)
        Data, asynchronous.
    o : Out(stream.Signature(layout))
    lost : Out(16)
        Samples that were lost since the reset; it stays at its greatest value.

    Attributes
    ----------
    sample_cycles : Fraction
        Cycles from a sample to the next, on average.
    """

    def __init__(self, layout, *, edges, cycles, frame):
        code = layout["data"].shape.elem_shape
        if layout["data"].shape.length != 1 or Shape.cast(code).width != SAMPLE_BITS:
            raise ValueError(f"I2sReceiver gives a code of 16 bits per beat, not {layout!r}")
        if not 0 < LEAST_CYCLES * edges <= cycles or frame < 1:
            raise ValueError(f"I2sReceiver has at least {LEAST_CYCLES} cycles for each edge and a "
                             f"sample per frame, not {cycles} for {edges} and {frame}")
        self.edges, self.cycles, self.frame = edges, cycles, frame
        self.sample_cycles = Fraction(2 * FRAME_BITS * cycles, edges)
        super().__init__({
            "i2s_bclk": Out(1), "i2s_ws": Out(1), "i2s_data": In(1),
            "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        data = Signal()
        m.submodules.synchronizer = cdc.FFSynchronizer(self.i2s_data, data)
        timer = Signal(range(self.cycles))
        following = Signal(signed(len(timer) + 2))
        place = Signal(range(FRAME_BITS))
        shift = Signal(SAMPLE_BITS)
        ticks, falls = Signal(), Signal()
        m.d.comb += [
            following.eq(timer + self.edges - self.cycles),
            ticks.eq(following >= 0),
            falls.eq(ticks & self.i2s_bclk),
            self.i2s_ws.eq(place[-1]),
        ]
        m.d.sync += timer.eq(Mux(ticks, following, timer + self.edges))
        with m.If(ticks):
            m.d.sync += self.i2s_bclk.eq(~self.i2s_bclk)
        with m.If(falls):
            m.d.sync += place.eq(place + 1)
        # What the synchronizer has as the clock falls was on the line while it was high.
        taken = Signal()
        with m.If(falls):
            m.d.sync += shift.eq(Cat(data, shift[:-1]))
        m.d.sync += taken.eq(falls & (place == SAMPLE_BITS))

        tiling = Tiling(QUEUE, SAMPLE_BITS, QUEUE, SAMPLE_BITS)
        m.submodules.queue = queue = TiledMemory(tiling, writable=True)
        first, end = Signal(range(2 * QUEUE)), Signal(range(2 * QUEUE))
        full, is_read = Signal(), Signal()
        position = Signal(range(self.frame))
        is_last = Signal()
        m.d.comb += [
            full.eq((first ^ end) == QUEUE),
            queue.write_data.eq(shift),
            queue.write_address.eq(end),
            queue.write_enable.eq(taken & ~full),
            queue.read_enable.eq(1),
            queue.read_address.eq(first),
            is_last.eq(position == self.frame - 1),
            self.o.valid.eq(is_read),
            self.o.p.data[0].eq(queue.read_data),
            self.o.p.last.eq(is_last),
        ]
        with m.If(queue.write_enable):
            m.d.sync += end.eq(end + 1)
        with m.If(taken & full & ~self.lost.all()):
            m.d.sync += self.lost.eq(self.lost + 1)
        # A word is there a cycle behind its address: it waits until it is taken.
        moves = Signal()
        m.d.comb += moves.eq(self.o.valid & self.o.ready)
        m.d.sync += is_read.eq(Mux(is_read, ~self.o.ready, first != end))
        with m.If(moves):
            m.d.sync += [first.eq(first + 1), position.eq(Mux(is_last, 0, position + 1))]
        return m
