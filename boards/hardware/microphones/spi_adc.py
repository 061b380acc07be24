"""Receiver of a converter with SPI, whose clock and chip select it makes."""

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
from nnef_hw.boards.interfaces.microphone import Microphone
from nnef_hw.boards.interfaces.spi_adc import CODE_BITS, WORD_BITS
from nnef_hw.host.protocol import LOST_BITS

__all__ = ["SpiAdcReceiver"]


class SpiAdcReceiver(wiring.Component):
    """Samples of a converter of 12 bits, 16 bits each, in frames of a network.

    A transfer has 16 periods of the clock, of which its chip select is low, and as many follow
    without either. A bit is taken as the clock falls, from before that. A code less the middle of
    the range, times 16, is a sample. Samples wait in a :class:`.SampleQueue`.

    Parameters
    ----------
    layout : StructLayout
        Beats of the input: one code of 16 bits, and ``last``.
    edges, cycles : int
        Edges of the clock in so many cycles (:class:`.BitClock`).
    leading : int
        Bits of a transfer before those of a code.
    frame : int
        Samples of a frame.

    Members
    -------
    adc_cs_n, adc_sck : Out(1)
        Chip select, active low, and clock, low between transfers.
    adc_data : In(1)
        Data, asynchronous.
    o : Out(stream.Signature(layout))
    lost : Out(16)
        Samples that were lost since the reset; it stays at its greatest value.

    Attributes
    ----------
    sample_cycles : Fraction
        Cycles from a sample to the next, on average.
    """

    def __init__(self, layout, *, edges, cycles, leading, frame):
        check_beats(layout, frame)
        check_clock(edges, cycles, Microphone.least_cycles)
        if not 0 <= leading <= WORD_BITS - CODE_BITS:
            raise ValueError(f"a transfer of {WORD_BITS} bits has a code of {CODE_BITS} behind 0 to"
                             f" {WORD_BITS - CODE_BITS}, not {leading}")
        self.layout, self.frame = layout, frame
        self.edges, self.cycles, self.leading = edges, cycles, leading
        self.sample_cycles = Fraction(4 * WORD_BITS * cycles, edges)
        super().__init__({
            "adc_cs_n": Out(1, init=1), "adc_sck": Out(1), "adc_data": In(1),
            "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        data = Signal()
        m.submodules.synchronizer = cdc.FFSynchronizer(self.adc_data, data)
        m.submodules.clock = clock = BitClock(edges=self.edges, cycles=self.cycles)
        m.submodules.queue = queue = SampleQueue(self.layout, frame=self.frame)
        place = Signal(range(2 * WORD_BITS), init=WORD_BITS)
        shift = Signal(WORD_BITS)
        taken = Signal()
        is_idle = place[-1]
        with m.If(clock.falls):
            m.d.sync += [place.eq(place + 1), shift.eq(Cat(data, shift[:-1]))]
        m.d.sync += [
            taken.eq(clock.falls & (place == WORD_BITS - 1)),
            # registers: a level that changes twice would be another edge
            self.adc_cs_n.eq(is_idle),
            self.adc_sck.eq(clock.level & ~is_idle),
        ]
        code = shift.bit_select(WORD_BITS - CODE_BITS - self.leading, CODE_BITS)
        m.d.comb += [
            queue.sample.eq(Cat(C(0, SAMPLE_BITS - CODE_BITS), code[:-1], ~code[-1])),
            queue.taken.eq(taken),
            self.lost.eq(queue.lost),
        ]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m
