"""The accelerator that link tests talk to."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out


class Increment(wiring.Component):
    """Adds 1 to every code, behind a FIFO; takes and gives only while ``enable``."""

    def __init__(self, *, lanes=1, shape=8, depth=8):
        layout = data.StructLayout({"data": data.ArrayLayout(shape, lanes), "last": 1})
        self.layout, self.lanes, self.depth = layout, lanes, depth
        self.parity = Signal(reset_less=True)
        self.beat = Signal(layout, reset_less=True)
        super().__init__({
            "i": In(stream.Signature(layout)),
            "o": Out(stream.Signature(layout)),
            "enable": In(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=self.layout.size, depth=self.depth)
        sums = Signal(self.layout)
        m.d.comb += [sums.data[lane].eq(self.i.p.data[lane] + 1) for lane in range(self.lanes)]
        m.d.comb += [
            sums.last.eq(self.i.p.last),
            fifo.w_data.eq(sums),
            fifo.w_en.eq(self.i.valid & self.enable),
            self.i.ready.eq(fifo.w_rdy & self.enable),
            self.o.payload.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy & self.enable),
            fifo.r_en.eq(self.o.ready & self.enable),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [self.beat.eq(self.i.payload), self.parity.eq(~self.parity)]
        return m
