"""A clock for a chip beside the FPGA, whose rate is a fraction of the board's."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = ["BitClock", "check_clock"]


def check_clock(edges, cycles, least):
    """Refuse a clock of which half a period has fewer than so many cycles.

    Raises
    ------
    ValueError
    """
    if not 0 < least * edges <= cycles:
        raise ValueError(f"a microphone's clock has at least {least} cycles for each edge, not "
                         f"{cycles} for {edges}")


class BitClock(wiring.Component):
    """Change a level ``edges`` times in ``cycles`` cycles, so that its rate is exact.

    Half a period is a cycle longer now and then.

    Parameters
    ----------
    edges, cycles : int
        Edges of the clock in so many cycles.

    Members
    -------
    level : Out(1)
        The clock.
    rises, falls : Out(1)
        The level changes with the next cycle.
    """

    def __init__(self, *, edges, cycles):
        self.edges, self.cycles = edges, cycles
        super().__init__({"level": Out(1), "rises": Out(1), "falls": Out(1)})

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self.cycles))
        following = Signal(signed(len(timer) + 2))
        ticks = Signal()
        m.d.comb += [
            following.eq(timer + self.edges - self.cycles),
            ticks.eq(following >= 0),
            self.falls.eq(ticks & self.level),
            self.rises.eq(ticks & ~self.level),
        ]
        m.d.sync += timer.eq(Mux(ticks, following, timer + self.edges))
        with m.If(ticks):
            m.d.sync += self.level.eq(~self.level)
        return m
