"""Receiver of a microphone with I2S, whose clocks it makes."""

from fractions import Fraction

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.microphones.bit_clock import BitClock, check_clock
from nnef_hw.boards.hardware.microphones.sample_queue import (
    SAMPLE_BITS,
    SampleQueue,
    check_beats,
)
from nnef_hw.boards.interfaces.i2s import FRAME_BITS, LEAST_CYCLES
from nnef_hw.host.protocol import LOST_BITS

__all__ = ["I2sReceiver"]


class I2sReceiver(wiring.Component):
    """Samples of the left channel of a microphone, 16 bits each, in frames of a network.

    The bit clock has ``edges`` edges in ``cycles`` cycles (:class:`.BitClock`). Word select changes
    every 32 bits, as the bit clock falls, and a bit is taken from before that. A slot's first bit
    comes a bit behind word select, the highest first. Samples wait in a :class:`.SampleQueue`.

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
        check_beats(layout, frame)
        check_clock(edges, cycles, LEAST_CYCLES)
        self.layout, self.frame = layout, frame
        self.edges, self.cycles = edges, cycles
        self.sample_cycles = Fraction(2 * FRAME_BITS * cycles, edges)
        super().__init__({
            "i2s_bclk": Out(1), "i2s_ws": Out(1), "i2s_data": In(1),
            "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        data = Signal()
        m.submodules.synchronizer = cdc.FFSynchronizer(self.i2s_data, data)
        m.submodules.clock = clock = BitClock(edges=self.edges, cycles=self.cycles)
        m.submodules.queue = queue = SampleQueue(self.layout, frame=self.frame)
        place = Signal(range(FRAME_BITS))
        shift = Signal(SAMPLE_BITS)
        taken = Signal()
        # What the synchronizer has as the clock falls was on the line while it was high.
        with m.If(clock.falls):
            m.d.sync += [place.eq(place + 1), shift.eq(Cat(data, shift[:-1]))]
        m.d.sync += taken.eq(clock.falls & (place == SAMPLE_BITS))
        m.d.comb += [
            self.i2s_bclk.eq(clock.level),
            self.i2s_ws.eq(place[-1]),
            queue.sample.eq(shift),
            queue.taken.eq(taken),
            self.lost.eq(queue.lost),
        ]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m
