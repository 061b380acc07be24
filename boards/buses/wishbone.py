"""Front end of registers on Wishbone."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.buses.register_file import RegisterBus
from nnef_hw.registers.table import WORD_BITS, WORD_BYTES

__all__ = ["Wishbone"]

_BYTE_BITS = (WORD_BYTES - 1).bit_length()


class Wishbone(wiring.Component):
    """Wishbone B4, classic cycles, to registers; golden model: each is done once, and answered.

    An access takes two cycles; what answers it comes from registers.

    Parameters
    ----------
    address_bits : int
        Bits of an address in bytes; the lowest two are ignored.

    Members
    -------
    cyc, stb, we, adr, sel, dat_i : In
        An access.
    dat_o, ack, err : Out
        Its answer: ``err`` instead of ``ack`` if the registers refuse it.
    registers : Out(RegisterBus)
        The registers.
    """

    def __init__(self, address_bits):
        super().__init__({
            "cyc": In(1), "stb": In(1), "we": In(1), "adr": In(address_bits),
            "sel": In(WORD_BYTES), "dat_i": In(WORD_BITS),
            "dat_o": Out(WORD_BITS), "ack": Out(1), "err": Out(1),
            "registers": Out(RegisterBus(address_bits - _BYTE_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        registers = self.registers
        begins = Signal()
        m.d.comb += [
            begins.eq(self.cyc & self.stb & ~self.ack & ~self.err),
            registers.address.eq(self.adr[_BYTE_BITS:]),
            registers.write.eq(begins & self.we),
            registers.read.eq(begins & ~self.we),
            registers.data.eq(self.dat_i),
            registers.mask.eq(self.sel),
        ]
        m.d.sync += [
            self.ack.eq(begins & ~registers.refused),
            self.err.eq(begins & registers.refused),
            self.dat_o.eq(registers.result),
        ]
        return m
