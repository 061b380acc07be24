"""Front end of registers on AXI4-Lite."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.buses.register_file import RegisterBus
from nnef_hw.registers.table import WORD_BITS, WORD_BYTES

__all__ = ["AxiLite"]

OKAY, SLVERR = 0, 2
_BYTE_BITS = (WORD_BYTES - 1).bit_length()


class AxiLite(wiring.Component):
    """AXI4-Lite to registers; golden model: every access is done once and answered in its order.

    All outputs are registers. A channel keeps what has come until it is answered: a write takes
    three cycles or more, a read as well, and both share the registers, writes first.

    Parameters
    ----------
    address_bits : int
        Bits of an address in bytes; the lowest two are ignored.

    Members
    -------
    awaddr, awvalid, awready, wdata, wstrb, wvalid, wready, bresp, bvalid, bready
        Writes. ``bresp`` is SLVERR if the registers refuse it.
    araddr, arvalid, arready, rdata, rresp, rvalid, rready
        Reads.
    registers : Out(RegisterBus)
        The registers.
    """

    def __init__(self, address_bits):
        super().__init__({
            "awaddr": In(address_bits), "awvalid": In(1), "awready": Out(1, init=1),
            "wdata": In(WORD_BITS), "wstrb": In(WORD_BYTES), "wvalid": In(1),
            "wready": Out(1, init=1),
            "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
            "araddr": In(address_bits), "arvalid": In(1), "arready": Out(1, init=1),
            "rdata": Out(WORD_BITS), "rresp": Out(2), "rvalid": Out(1), "rready": In(1),
            "registers": Out(RegisterBus(address_bits - _BYTE_BITS)),
        })

    def elaborate(self, platform):
        m = Module()
        registers = self.registers
        write_address = Signal.like(registers.address)
        read_address = Signal.like(registers.address)
        m.d.comb += [
            registers.write.eq(~self.awready & ~self.wready & ~self.bvalid),
            registers.read.eq(~self.arready & ~self.rvalid & ~registers.write),
            registers.address.eq(Mux(registers.write, write_address, read_address)),
        ]

        with m.If(self.awvalid & self.awready):
            m.d.sync += [self.awready.eq(0), write_address.eq(self.awaddr[_BYTE_BITS:])]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [
                self.wready.eq(0), registers.data.eq(self.wdata), registers.mask.eq(self.wstrb),
            ]
        response = Mux(registers.refused, SLVERR, OKAY)
        with m.If(registers.write):
            m.d.sync += [self.bvalid.eq(1), self.bresp.eq(response)]
        with m.If(self.bvalid & self.bready):
            m.d.sync += [self.bvalid.eq(0), self.awready.eq(1), self.wready.eq(1)]

        with m.If(self.arvalid & self.arready):
            m.d.sync += [self.arready.eq(0), read_address.eq(self.araddr[_BYTE_BITS:])]
        with m.If(registers.read):
            m.d.sync += [
                self.rvalid.eq(1), self.rdata.eq(registers.result), self.rresp.eq(response),
            ]
        with m.If(self.rvalid & self.rready):
            m.d.sync += [self.rvalid.eq(0), self.arready.eq(1)]
        return m
