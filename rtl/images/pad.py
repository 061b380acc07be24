"""Constant padding of rows and columns."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import code_streams
from nnef_hw.rtl.windows.raster import padded_raster

__all__ = ["Pad"]


class Pad(wiring.Component):
    """Put a border of one code around every image; golden model: ``pad``.

    Gives a beat per cycle. ``o`` is connected with ``i`` directly where the image is, while ``i``
    waits in the border. A border ahead of the image waits for the first beat.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.Pad):
        self.part = part
        super().__init__(code_streams(part, lanes=part.lanes))

    def elaborate(self, platform):
        m = Module()
        advance = Signal()
        raster = padded_raster(m, self.part.window, advance)
        m.d.comb += [
            self.o.valid.eq(self.i.valid | (raster.padding & ~raster.first)),
            self.i.ready.eq(self.o.ready & ~raster.padding),
            advance.eq(self.o.valid & self.o.ready),
            self.o.payload.last.eq(raster.final),
        ]
        for code, result in zip(self.i.payload.data, self.o.payload.data, strict=True):
            m.d.comb += result.eq(Mux(raster.padding, self.part.pad_code, code))
        return m
