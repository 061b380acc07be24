"""The accelerator's clock, measured against the oscillator's."""

from amaranth import *
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.host.protocol import RATIO_BITS, RATIO_CYCLES

__all__ = ["ClockRatio"]


class ClockRatio(wiring.Component):
    """Count the cycles of one clock in :data:`.RATIO_CYCLES` cycles of another.

    Parameters
    ----------
    reference : str
        Clock domain of the oscillator; what counts is in ``sync``. Its clock is less than 32 times
        as fast.

    Members
    -------
    board_reset : In(1)
        Start over, in the oscillator's domain.
    cycles : Out(RATIO_BITS)
        The last count, give or take one; 0 before there is one.
    tick : Out(1)
        One cycle in each such time.
    """

    def __init__(self, reference):
        self.reference = reference
        super().__init__({"board_reset": In(1), "cycles": Out(RATIO_BITS), "tick": Out(1)})

    def elaborate(self, platform):
        m = Module()
        divider = Signal(range(RATIO_CYCLES))
        m.d[self.reference] += divider.eq(Mux(self.board_reset, 0, divider + 1))
        wave, before = Signal(), Signal()
        m.submodules.wave = cdc.FFSynchronizer(divider[-1], wave)
        count = Signal(RATIO_BITS)
        begun = Signal()
        m.d.sync += [before.eq(wave), count.eq(count + 1)]
        m.d.comb += self.tick.eq(wave & ~before)
        with m.If(self.tick):
            m.d.sync += [count.eq(1), begun.eq(1)]
            with m.If(begun):
                m.d.sync += self.cycles.eq(count)
        return m
