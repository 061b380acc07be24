"""Pipeline in which nothing waits, before a queue with room for all that is inside."""

from abc import abstractmethod

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["Pipeline"]


class Pipeline(wiring.Component):
    """Take a beat whenever fewer than ``depth`` are inside; compute without ever waiting.

    One beat per cycle. No clock enable fans out over the registers: what comes while nothing is
    accepted is computed as well, and not stored. ``i.ready`` comes from a register, ``o`` from
    registers and LUT RAM.

    A subclass computes the results of a beat.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    unproved = "what it computes is a subclass's: MatrixProduct is proved"

    def __init__(self, part: parts.Pipeline):
        self.part = part
        codes = beat_layout(bits=part.in_bits, signed=part.in_signed, lanes=part.in_lanes)
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=part.out_lanes)
        super().__init__({"i": In(stream.Signature(codes)), "o": Out(stream.Signature(results))})

    @abstractmethod
    def _results(self, m, codes):
        """Return the results of the codes that were there ``stages`` cycles before."""

    def elaborate(self, platform):
        m = Module()
        part = self.part
        accept = Signal()
        leave = Signal()
        inside = Signal(range(part.depth + 1))
        m.d.comb += [
            self.i.ready.eq(~inside[-1]),
            accept.eq(self.i.valid & self.i.ready),
            leave.eq(self.o.valid & self.o.ready),
        ]
        with m.If(accept != leave):
            m.d.sync += inside.eq(Mux(accept, inside + 1, inside - 1))

        valid, last = accept, self.i.payload.last
        for n in range(part.stages):
            following = Signal(name=f"valid{n}"), Signal(name=f"last{n}", reset_less=True)
            m.d.sync += [following[0].eq(valid), following[1].eq(last)]
            valid, last = following
        results = self._results(m, [self.i.payload.data[n] for n in range(part.in_lanes)])
        width = self.o.payload.shape().size

        # Never in block RAM, which is counted.
        style = "distributed" if part.lut_ram else "logic"
        m.submodules.queue = queue = memory.Memory(
            shape=width, depth=part.depth, init=[], attrs={"ram_style": style})
        write, read = queue.write_port(), queue.read_port(domain="comb")
        newest = Signal(range(part.depth))
        oldest = Signal(range(part.depth))
        stored = Signal(range(part.depth + 1))
        m.d.comb += [
            write.addr.eq(newest),
            write.en.eq(valid),
            write.data.eq(Cat(*results, last)),
            read.addr.eq(oldest),
            self.o.valid.eq(stored != 0),
            self.o.payload.eq(read.data),
        ]
        m.d.sync += newest.eq(newest + valid)
        m.d.sync += oldest.eq(oldest + leave)
        with m.If(valid != leave):
            m.d.sync += stored.eq(Mux(valid, stored + 1, stored - 1))
        return m
