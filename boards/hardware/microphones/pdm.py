"""Receiver of a microphone that gives a bit at a time (PDM), whose clock it makes."""

from fractions import Fraction
from itertools import pairwise

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.arithmetic.audio.pdm import FACTOR_BITS, ORDER, TAPS, PdmFilter
from nnef_hw.boards.hardware.microphones.bit_clock import BitClock, check_clock
from nnef_hw.boards.hardware.microphones.sample_queue import (
    SAMPLE_BITS,
    SampleQueue,
    check_beats,
)
from nnef_hw.boards.interfaces.pdm import FILTER_CYCLES, LEAST_CYCLES
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.host.protocol import LOST_BITS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import delayed

__all__ = ["PdmReceiver"]

KEPT = 2 * TAPS
"""Numbers of the first filter that are kept: some come while a sample is computed."""


class PdmReceiver(wiring.Component):
    """Samples of a microphone's bits, 16 bits each, in frames of a network.

    Golden model: :meth:`nnef_hw.arithmetic.audio.pdm.PdmFilter.apply`. A bit is taken as the clock
    rises, from before that; running sums add it. Differences follow every ``bits / 2`` of them, one
    per cycle. A sample is a sum of 64 products, which are added bit by bit of their factors, the
    highest first, in 1,024 cycles: there is no multiplier. Samples wait in a :class:`.SampleQueue`.

    Parameters
    ----------
    layout : StructLayout
        Beats of the input: one code of 16 bits, and ``last``.
    edges, cycles : int
        Edges of the microphone's clock in so many cycles.
    bits : int
        Bits of a sample.
    frame : int
        Samples of a frame.

    Members
    -------
    pdm_clk : Out(1)
        Clock of the microphone.
    pdm_data : In(1)
        Bits, asynchronous: those that are there while the clock is low.
    o : Out(stream.Signature(layout))
    lost : Out(16)
        Samples that were lost since the reset; it stays at its greatest value.

    Attributes
    ----------
    sample_cycles : Fraction
        Cycles from a sample to the next, on average.
    """

    def __init__(self, layout, *, edges, cycles, bits, frame):
        check_beats(layout, frame)
        check_clock(edges, cycles, LEAST_CYCLES)
        self.layout, self.frame = layout, frame
        self.edges, self.cycles = edges, cycles
        self.filter = PdmFilter(bits)
        self.sample_cycles = Fraction(2 * bits * cycles, edges)
        if self.sample_cycles < FILTER_CYCLES:
            raise ValueError(f"PdmReceiver takes {FILTER_CYCLES} cycles for a sample, and one comes"
                             f" every {float(self.sample_cycles):g}")
        super().__init__({
            "pdm_clk": Out(1), "pdm_data": In(1),
            "o": Out(stream.Signature(layout)), "lost": Out(LOST_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.clock = clock = BitClock(edges=self.edges, cycles=self.cycles)
        m.submodules.queue = queue = SampleQueue(self.layout, frame=self.frame)
        data = Signal()
        m.submodules.synchronizer = cdc.FFSynchronizer(self.pdm_data, data)
        number, comes = self._differences(m, *self._sums(m, clock.rises, data))
        sample, taken = self._products(m, number, comes)
        m.d.comb += [
            self.pdm_clk.eq(clock.level),
            queue.sample.eq(sample),
            queue.taken.eq(taken),
            self.lost.eq(queue.lost),
        ]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m

    def _sums(self, m, rises, bit):
        """Return the last running sum, and when it is that of a further ``ratio`` bits."""
        sums = [Signal(signed(self.filter.sum_bits), name=f"sum{n}") for n in range(ORDER)]
        count = Signal(range(self.filter.ratio))
        is_whole = Signal()
        with m.If(rises):
            m.d.sync += [count.eq(count + 1), sums[0].eq(sums[0] + Cat(1, (~bit).replicate(
                self.filter.sum_bits - 1)).as_signed())]
            m.d.sync += [after.eq(after + before)
                         for before, after in pairwise(sums)]
        m.d.sync += is_whole.eq(rises & count.all())
        return sums[-1], is_whole

    def _differences(self, m, total, is_whole):
        """Return a number of the first filter, and when there is one."""
        part = self.filter
        value = Signal(signed(part.sum_bits))
        past = [Signal(signed(part.sum_bits), name=f"past{n}") for n in range(ORDER)]
        step, comes = Signal(range(ORDER + 1), init=ORDER), Signal()
        with m.If(is_whole):
            m.d.sync += [value.eq(total), step.eq(0)]
        with m.Elif(step != ORDER):
            # the oldest of these is that of the difference that follows
            m.d.sync += [step.eq(step + 1), value.eq(value - past[0]), past[-1].eq(value)]
            m.d.sync += [before.eq(after) for before, after in pairwise(past)]
        m.d.sync += comes.eq(step == ORDER - 1)
        number = Signal(signed(part.sum_bits - part.cut_bits + 1))
        m.d.comb += number.eq(((value >> part.cut_bits - 1) + 1) >> 1)
        return _limited(number), comes

    def _products(self, m, number, comes):
        """Return a sample, and when there is one."""
        part = self.filter
        m.submodules.numbers = numbers = TiledMemory(
            Tiling(KEPT, SAMPLE_BITS, KEPT, SAMPLE_BITS), writable=True)
        # the highest bits of all factors of one half, then the bits below
        half = part.factors[: TAPS // 2]
        bits = [int(factor) >> n & 1 for n in reversed(range(FACTOR_BITS)) for factor in half]
        m.submodules.factors = factors = TiledMemory(
            Tiling(len(bits), 1, len(bits), 1), words=bits)
        end, is_odd = Signal(range(KEPT)), Signal()
        first = Signal(range(KEPT))
        # numbers that have not come yet since the reset are 0
        missing, then_missing = Signal(range(TAPS + 1), init=TAPS), Signal(range(TAPS + 1))
        tap, bit = Signal(range(TAPS)), Signal(range(FACTOR_BITS))
        runs = Signal()
        is_last = Signal()
        m.d.comb += [
            numbers.write_data.eq(number),
            numbers.write_address.eq(end),
            numbers.write_enable.eq(comes),
            numbers.read_enable.eq(1),
            numbers.read_address.eq(first + tap),
            factors.read_enable.eq(1),
            # the second half is the mirror of the first
            factors.read_address.eq(Cat(tap[:-1] ^ tap[-1].replicate(len(tap) - 1), bit)),
            is_last.eq(runs & tap.all() & bit.all()),
        ]
        with m.If(comes):
            m.d.sync += [end.eq(end + 1), is_odd.eq(~is_odd)]
            with m.If(missing != 0):
                m.d.sync += missing.eq(missing - 1)
            with m.If(is_odd):
                m.d.sync += [
                    runs.eq(1), first.eq(end - (TAPS - 1)),
                    then_missing.eq(Mux(missing == 0, 0, missing - 1)),
                ]
        with m.If(runs):
            m.d.sync += Cat(tap, bit).eq(Cat(tap, bit) + 1)
            with m.If(is_last):
                m.d.sync += runs.eq(0)
        adds = delayed(m, runs, 1, name="adds", is_flag=True)
        is_there = delayed(m, tap >= then_missing, 1, name="is_there")
        begins = delayed(m, tap == 0, 1, name="begins")
        is_sign = delayed(m, bit == 0, 1, name="is_sign")
        taken = delayed(m, is_last, 2, name="taken", is_flag=True)
        total = Signal(signed(part.total_bits))
        start, added = Signal(signed(part.total_bits)), Signal(signed(part.total_bits))
        factor = Signal()
        m.d.comb += [
            factor.eq(factors.read_data & is_there),
            start.eq(Mux(begins, Mux(is_sign, 0, total << 1), total)),
            added.eq(Mux(factor, numbers.read_data.as_signed(), 0) ^ (factor & is_sign).replicate(
                part.total_bits)),
        ]
        with m.If(adds):
            m.d.sync += total.eq(start + added + (factor & is_sign))
        sample = Signal(signed(part.total_bits - FACTOR_BITS + 1))
        m.d.comb += sample.eq(((total >> FACTOR_BITS - 1) + 1) >> 1)
        return _limited(sample), taken


def _limited(value):
    """Return a value within 16 bits."""
    highest = (1 << (SAMPLE_BITS - 1)) - 1
    return Mux(value > highest, highest, Mux(value < -highest - 1, -highest - 1, value))


