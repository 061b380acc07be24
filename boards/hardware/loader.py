"""Data that the host writes to a memory beside the FPGA, ahead of all frames."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ImageLoader"]


class ImageLoader(wiring.Component):
    """Make words of the host's bytes, and know when the last one has come.

    Parameters
    ----------
    count : int
        Bytes of the image, an even number.

    Members
    -------
    i : In(stream.Signature(8))
        The image, the lower byte of each word first.
    o : Out(stream.Signature(16))
        Its words.
    restart : In(1)
        Begin again with the first byte, unless all of them have come.
    loaded : Out(1)
        The last word has been taken: the image stays until the FPGA is configured anew.
    """

    def __init__(self, count):
        if count < 2 or count % 2:
            raise ValueError(f"an image must have an even number of bytes, not {count!r}")
        self.count = count
        super().__init__({
            "i": In(stream.Signature(8)), "o": Out(stream.Signature(16)),
            "restart": In(1), "loaded": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.count // 2), init=self.count // 2 - 1)
        low = Signal(8, reset_less=True)
        is_high = Signal()
        m.d.comb += [
            self.o.payload.eq(Cat(low, self.i.payload)),
            self.o.valid.eq(self.i.valid & is_high & ~self.loaded),
            self.i.ready.eq(~is_high | self.o.ready),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [low.eq(self.i.payload), is_high.eq(~is_high)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [left.eq(left - 1), self.loaded.eq(left == 0)]
        with m.If(self.restart):
            m.d.sync += [left.eq(left.init), is_high.eq(0)]
        return m
