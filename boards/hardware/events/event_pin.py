"""A pin that is high for a while after an event."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.events.best_mean import BestMean

__all__ = ["EventOnPin"]


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
