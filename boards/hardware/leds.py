"""The class of a network's latest result on LEDs, and events on a pin."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.events.best_mean import BestMean

__all__ = ["ClassLeds", "EventOnPin"]


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


class EventOnPin(wiring.Component):
    """Add up a class's codes of the last steps, and raise a pin when the sum reaches a cutoff.

    Golden model: :meth:`nnef_hw.boards.interfaces.event_pin.EventPin.events`. It takes a beat per
    cycle and never lets one wait, if one class alone counts.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.
    codes : int
        Codes of a frame.
    channels : int
        Codes of a pixel; its beats have room for them and perhaps some more.
    place : int
        Place of the class's code in a frame.
    mean : int
        Steps whose codes are added.
    quiet : int
        Steps that the pin is high; it is low for a step, at least, before the next event.
    cutoff : int
        The least sum that is an event.
    pin : str
        Name of the pin.
    best : bool
        Whether the class has to have the greatest sum, too; its beats wait for :class:`.BestMean`
        then.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator.
    alert, or the name of the pin : Out(1)
    """

    def __init__(self, layout, *, codes, channels, place, mean, quiet, cutoff, pin="alert",
                 best=False):
        if not 0 <= place < codes or codes % channels:
            raise ValueError(f"code {place} is not among {codes} of pixels of {channels}")
        self.layout, self.mean, self.quiet, self.cutoff = layout, mean, quiet, cutoff
        lanes = layout["data"].shape.length
        pixel, channel = divmod(place, channels)
        self.beat = pixel * -(-channels // lanes) + channel // lanes
        self.lane = channel % lanes
        self.beats = codes // channels * -(-channels // lanes)
        self.pin = pin
        self.codes, self.channels, self.place, self.best = codes, channels, place, best
        super().__init__({"i": In(stream.Signature(layout)), pin: Out(1)})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.quiet + 1))
        is_new, found = self._compare(m) if self.best else self._add(m)
        m.d.comb += getattr(self, self.pin).eq(left != 0)
        with m.If(is_new):
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
            with m.Elif(found):
                m.d.sync += left.eq(self.quiet)
        return m

    def _compare(self, m):
        """Return when a step's sums are known, and whether the class has the greatest one."""
        m.submodules.mean = mean = BestMean(
            self.layout, classes=self.codes, channels=self.channels, mean=self.mean)
        wiring.connect(m, wiring.flipped(self.i), mean.i)
        given = mean.o.payload
        m.d.comb += mean.o.ready.eq(1)
        is_enough = given.total >= self.cutoff
        return mean.o.valid, given.complete & (given.number == self.place) & is_enough

    def _add(self, m):
        """Return when a step's score has come, and whether the sum is great enough."""
        code = self.layout["data"].shape.elem_shape
        beat = Signal(range(self.beats))
        score = Signal(code)
        # those of earlier steps, the earliest one first
        past = [Signal(code, name=f"past{n}") for n in range(self.mean - 1)]
        missing = Signal(range(self.mean), init=self.mean - 1)
        total = Signal(signed(Shape.cast(code).width + 1 + self.mean.bit_length()))
        found = Signal()
        latest = Signal(code)
        given = self.i.p.data[self.lane]
        m.d.comb += [
            self.i.ready.eq(1),
            latest.eq(Mux(beat == self.beat, given, score)),
            total.eq(sum([latest, *past])),
            found.eq((total >= self.cutoff) & (missing == 0)),
        ]
        with m.If(self.i.valid):
            m.d.sync += [score.eq(latest), beat.eq(beat + 1)]
            with m.If(self.i.p.last):
                m.d.sync += beat.eq(0)
                if past:
                    m.d.sync += [past[n].eq(x) for n, x in enumerate([*past[1:], latest])]
                with m.If(missing != 0):
                    m.d.sync += missing.eq(missing - 1)
        return self.i.valid & self.i.p.last, found
