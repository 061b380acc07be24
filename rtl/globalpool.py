"""Global pooling: reduces all pixels of a frame, channel by channel, as they come."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import Tiling, tile_memory
from nnef_hw.rtl.array import sum_layout
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.primitives import masked_sum
from nnef_hw.rtl.stream import beat_layout

__all__ = ["GlobalMax", "GlobalSum"]

AHEAD = 2
"""Beats by which a channel's result so far is read before it is needed."""


class GlobalMax(wiring.Component):
    """Maximum over all pixels of every channel; golden model: ``max`` over rows and columns.

    Takes a one-code beat per cycle for ever, frame after frame. The beats of a frame's last pixel
    bring the results: each is given in the cycle after its beat, and waits in the output register,
    which only beats of a last pixel wait for.

    What was found so far stands in a memory, or in registers if there are few channels.

    Parameters
    ----------
    channels, pixels : int
        Codes per pixel, pixels per frame.
    bits, signed : int, bool
        Format of the codes.
    ram : BlockRam
        The device's block RAM.
    style : str
        ``"block"`` or ``"distributed"``, for LUT RAM.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    latency : int
        Cycles from an accepted beat of the last pixel to its result's ``o.valid``.
    """

    latency = 1

    def __init__(self, *, channels, pixels, bits, signed, ram, style="block"):
        self.reduction = _Reduction(channels, pixels, Shape(bits, signed), ram, style)
        beat = stream.Signature(beat_layout(bits=bits, signed=signed, lanes=1))
        super().__init__({"i": In(beat), "o": Out(beat)})

    def elaborate(self, platform):
        m = Module()
        code = self.i.payload.data[0]
        best, first, following = self.reduction.add(m, self.i, self.o)
        m.d.comb += following.eq(Mux(first | (code > best), code, best))
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.payload.data[0].eq(following)
        return m


class GlobalSum(wiring.Component):
    """Sum over all pixels of every channel, for averages; golden model: ``sum`` over pixels.

    Throughput, stalls and memory as :class:`GlobalMax`.

    Parameters
    ----------
    channels, pixels : int
        Codes per pixel, pixels per frame.
    bits, signed : int, bool
        Format of the codes.
    acc_bits : int
        Width of a sum, signed.
    ram : BlockRam
        The device's block RAM.
    style : str
        ``"block"`` or ``"distributed"``, for LUT RAM.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o : Out(stream.Signature(sum_layout))

    Attributes
    ----------
    latency : int
        Cycles from an accepted beat of the last pixel to its result's ``o.valid``.
    """

    latency = 1

    def __init__(self, *, channels, pixels, bits, signed, acc_bits, ram, style="block"):
        self.reduction = _Reduction(channels, pixels, Shape(acc_bits, signed=True), ram, style)
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=1))),
            "o": Out(stream.Signature(sum_layout(acc_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        total, first, following = self.reduction.add(m, self.i, self.o)
        m.d.comb += following.eq(masked_sum(m, platform, ~first, total, self.i.payload.data[0],
                                            name="added"))
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.payload.acc.eq(following)
        return m


class _Reduction:
    """What both reductions share: counters, handshake and the results so far."""

    def __init__(self, channels, pixels, shape, ram, style):
        if min(channels, pixels) < 1:
            raise ValueError(f"global pooling needs channels and pixels, not {channels!r} and "
                             f"{pixels!r}")
        self.channels = channels
        self.pixels = pixels
        self.shape = shape
        self.style = style
        self.tiling = None
        if channels > AHEAD + 1:
            self.tiling = (tile_memory(ram, channels, shape.width) if style == "block"
                           else Tiling(channels, shape.width, channels, shape.width))

    def add(self, m, i, o):
        """Return the channel's result so far, if there is none yet, and the next one, to be set."""
        channel = Signal(range(self.channels))
        pixel = Signal(range(self.pixels))
        accept, final, pixel_end = Signal(), Signal(), Signal()
        following = Signal(self.shape)
        m.d.comb += [
            final.eq(pixel == self.pixels - 1),
            pixel_end.eq(channel == self.channels - 1),
            i.ready.eq(~final | ~o.valid | o.ready),
            accept.eq(i.valid & i.ready),
        ]
        with m.If(o.ready):
            m.d.sync += o.valid.eq(0)
        with m.If(accept):
            m.d.sync += channel.eq(Mux(pixel_end, 0, channel + 1))
            with m.If(pixel_end):
                m.d.sync += pixel.eq(Mux(final, 0, pixel + 1))
            with m.If(final):
                m.d.sync += [o.valid.eq(1), o.payload.last.eq(pixel_end)]
        return self._keep(m, accept, channel, following), pixel == 0, following

    def _keep(self, m, accept, channel, following):
        """Store results by channel; return the one of the current channel."""
        kept = Signal(self.shape, reset_less=True)
        if self.tiling is None:
            results = [following, *(Signal(self.shape, name=f"result{n}", reset_less=True)
                                    for n in range(self.channels - 1)), kept]
            with m.If(accept):
                m.d.sync += [later.eq(earlier)
                             for earlier, later in pairwise(results)]
            return kept
        m.submodules.results = results = TiledMemory(self.tiling, writable=True, style=self.style)
        ahead = Signal(range(self.channels), init=AHEAD)
        m.d.comb += [
            results.write_address.eq(channel),
            results.write_enable.eq(accept),
            results.write_data.eq(following),
            results.read_address.eq(ahead),
            results.read_enable.eq(accept),
        ]
        with m.If(accept):
            m.d.sync += [
                ahead.eq(Mux(ahead == self.channels - 1, 0, ahead + 1)),
                kept.eq(results.read_data),
            ]
        return kept
