"""The class of a network's latest result on LEDs."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ClassLeds"]


class ClassLeds(wiring.Component):
    """Find the greatest code of a frame, one code per cycle, and show which one it was.

    Golden model: ``argmax``, the first of several that are equal. Lanes that fill up the last beat
    of a pixel are passed over.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.
    classes : int
        Codes of a frame, or classes that its one code may name.
    leds : int
        As many as classes: each lights for one; else as many as the number of a class has bits.
    is_index : bool
        A frame is one code, the number of the class.
    channels : int
        Codes of a pixel; its beats have room for them and perhaps some more. Where there are
        several pixels, class n is channel ``n // pixels`` of pixel ``n % pixels``.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator.
    leds : Out(leds)
        All off before the first frame.

    Attributes
    ----------
    latency : int
        Cycles from a frame's last beat, of one lane, to the LEDs.
    """

    latency = 1

    def __init__(self, layout, *, classes, leds, is_index, channels):
        if leds != classes and leds < (classes - 1).bit_length():
            raise ValueError(f"{leds} LEDs cannot show {classes} classes")
        self.layout, self.classes, self.count = layout, classes, leds
        self.is_index, self.channels = is_index, channels
        self.pixels = 1 if is_index else classes // channels
        if self.pixels * channels != (1 if is_index else classes):
            raise ValueError(f"{classes} classes are not pixels of {channels} channels")
        super().__init__({"i": In(stream.Signature(layout)), "leds": Out(leds)})

    def elaborate(self, platform):
        m = Module()
        lanes = self.layout["data"].shape.length
        lane = Signal(range(lanes))
        channel = Signal(range(self.channels + 1))
        code = Signal(self.layout["data"].shape.elem_shape)
        last_lane = lane == lanes - 1
        is_real = channel != self.channels
        m.d.comb += [code.eq(self.i.p.data[lane]), self.i.ready.eq(last_lane)]

        winner = Signal(range(self.classes))
        found = Signal.like(winner)
        if self.is_index:
            m.d.comb += found.eq(Mux(is_real, code, winner))
        else:
            number = Signal.like(winner)
            is_first = Signal(init=1)
            best = Signal.like(code, reset_less=True)
            is_better = is_first | (code > best)
            following = number + 1
            if self.pixels > 1 and self.channels > 1:
                # The codes do not come in the order of their classes.
                is_better |= (code == best) & (number < winner)
                following = number + self.pixels
            better = is_real & is_better
            m.d.comb += found.eq(Mux(better, number, winner))
            with m.If(self.i.valid & is_real):
                m.d.sync += [is_first.eq(0), number.eq(following)]
                with m.If(better):
                    m.d.sync += best.eq(code)

        with m.If(self.i.valid):
            m.d.sync += [winner.eq(found), lane.eq(Mux(last_lane, 0, lane + 1))]
            with m.If(is_real):
                m.d.sync += channel.eq(channel + 1)
            with m.If(last_lane & (channel >= self.channels - 1)):
                # the pixel's last beat
                m.d.sync += channel.eq(0)
                if self.pixels > 1 and self.channels > 1:
                    pixel = Signal(range(self.pixels))
                    m.d.sync += [pixel.eq(pixel + 1), number.eq(pixel + 1)]
                    with m.If(self.i.p.last):
                        m.d.sync += pixel.eq(0)
            with m.If(last_lane & self.i.p.last):
                m.d.sync += self.leds.eq(1 << found if self.count == self.classes else found)
                if not self.is_index:
                    m.d.sync += [is_first.eq(1), number.eq(0)]
        return m
