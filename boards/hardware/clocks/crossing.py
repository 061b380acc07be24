"""A byte from one clock domain to another."""

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ByteCrossing"]


class ByteCrossing(wiring.Component):
    """Carry a stream of bytes from one clock domain to another, one byte at a time.

    A byte waits in a register of the first domain, which does not change before the second one has
    it; a wire that changes with it says that it is there, another one that it was taken. These
    two are all that is synchronized. A FIFO with Gray pointers would be faster, and takes four
    times the cells on devices without RAMs of LUTs; bytes of a link are far apart.

    Both domains are to be reset together, while no byte is under way. The byte itself has the
    two cycles of the second domain to get there in which its wire is synchronized.

    Parameters
    ----------
    source, target : str
        Clock domains of ``i`` and ``o``, whose clocks may have any rates and phases.

    Members
    -------
    source_reset, target_reset : In(1)
        Start over; one for each domain.
    i, o : stream.Signature(8)
        A byte is taken every two or three cycles of each domain together, while ``o`` is ready.
    """

    def __init__(self, source, target):
        self.source, self.target = source, target
        super().__init__({
            "source_reset": In(1), "target_reset": In(1),
            "i": In(stream.Signature(8)), "o": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        byte = Signal(8, reset_less=True)
        # each changes with every byte
        offered, taken = Signal(reset_less=True), Signal(reset_less=True)
        known, freed = Signal(), Signal()
        m.submodules.offer = cdc.FFSynchronizer(offered, known, o_domain=self.target)
        m.submodules.free = cdc.FFSynchronizer(taken, freed, o_domain=self.source)

        m.d.comb += self.i.ready.eq(offered == freed)
        with m.If(self.i.valid & self.i.ready):
            m.d[self.source] += [byte.eq(self.i.payload), offered.eq(~offered)]

        m.d.comb += [self.o.valid.eq(known != taken), self.o.payload.eq(byte)]
        with m.If(self.o.valid & self.o.ready):
            m.d[self.target] += taken.eq(known)
        with m.If(self.source_reset):
            m.d[self.source] += offered.eq(0)
        with m.If(self.target_reset):
            m.d[self.target] += taken.eq(0)
        return m
