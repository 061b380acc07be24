"""Constant padding of rows and columns."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.rtl.raster import padded_raster
from nnef_hw.rtl.stream import beat_layout
from nnef_hw.window import Window

__all__ = ["Pad"]


class Pad(wiring.Component):
    """Put a border of one code around every image; golden model: ``pad``.

    Gives a beat per cycle. ``o`` is connected with ``i`` directly where the image is, while ``i``
    waits in the border. A border ahead of the image waits for the first beat.

    Parameters
    ----------
    height, width, channels : int
        Extents of the input image, in beats.
    padding : tuple[tuple[int, int], tuple[int, int]]
        ``((top, bottom), (left, right))`` in pixels.
    pad_code : int
        What the border consists of.
    bits, signed, lanes : int, bool, int
        Format of a beat.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    latency : int
        Cycles from an offered ``i`` to its ``o.valid``.
    """

    latency = 0

    def __init__(self, *, height, width, channels, padding, pad_code, bits, signed, lanes=1):
        self.window = Window(height, width, channels, padding=padding)
        self.pad_code = pad_code
        self.lanes = lanes
        beat = stream.Signature(beat_layout(bits=bits, signed=signed, lanes=lanes))
        super().__init__({"i": In(beat), "o": Out(beat)})

    def elaborate(self, platform):
        m = Module()
        window = self.window
        advance = Signal()
        _, _, first, final, padding = padded_raster(m, window, advance)
        m.d.comb += [
            self.o.valid.eq(self.i.valid | (padding & ~first)),
            self.i.ready.eq(self.o.ready & ~padding),
            advance.eq(self.o.valid & self.o.ready),
            self.o.payload.last.eq(final),
        ]
        for code, given in zip(self.i.payload.data, self.o.payload.data, strict=True):
            m.d.comb += given.eq(Mux(padding, self.pad_code, code))
        return m
