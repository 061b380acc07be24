"""Cycle counters at the accelerator's boundary."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["COUNTER_LAYOUT", "InferenceCounters"]

CYCLE_BITS = 24
COUNTER_LAYOUT = data.StructLayout({
    "latency": CYCLE_BITS + 1,
    "interval": CYCLE_BITS + 1,
    "frames": 8,
})


class InferenceCounters(wiring.Component):
    """Measure latency and initiation interval of the accelerator while it works.

    Cycle counts stop at ``2**24``, which means so many or more; the number of frames wraps. All are
    cleared by the reset of the accelerator.

    Members
    -------
    input_taken, input_last : In(1)
        A beat is accepted by the accelerator; it is the last one of its frame.
    output_taken, output_last : In(1)
        The same for a beat the accelerator gives.
    busy : Out(1)
        A frame is inside the accelerator.
    counts : Out(COUNTER_LAYOUT)
        ``latency``: cycles from the first input beat to the last output beat of the latest frame
        that entered an empty accelerator. ``interval``: cycles between the last beats of the latest
        two frames that left. ``frames``: frames that left.

    Attributes
    ----------
    latency : int
        Cycles from an event to the counters that include it.
    """

    latency = 1

    def __init__(self):
        super().__init__({
            "input_taken": In(1),
            "input_last": In(1),
            "output_taken": In(1),
            "output_last": In(1),
            "busy": Out(1),
            "counts": Out(COUNTER_LAYOUT),
        })

    def elaborate(self, platform):
        m = Module()
        first = Signal(init=1)
        timing = Signal()
        inside = Signal(8)
        since_last = Signal(CYCLE_BITS + 1)
        enters = self.input_taken & first
        leaves = self.output_taken & self.output_last
        m.d.comb += self.busy.eq(inside != 0)

        with m.If(self.input_taken):
            m.d.sync += first.eq(self.input_last)

        with m.If(enters & ~leaves):
            m.d.sync += inside.eq(inside + 1)
        with m.Elif(leaves & ~enters):
            m.d.sync += inside.eq(inside - 1)

        with m.If(timing & ~self.counts.latency[-1]):
            m.d.sync += self.counts.latency.eq(self.counts.latency + 1)
        with m.If(leaves):
            m.d.sync += timing.eq(0)
        with m.If(enters & ~self.busy):
            m.d.sync += [timing.eq(1), self.counts.latency.eq(0)]

        with m.If(~since_last[-1]):
            m.d.sync += since_last.eq(since_last + 1)
        with m.If(leaves):
            m.d.sync += [
                since_last.eq(1),
                self.counts.interval.eq(since_last),
                self.counts.frames.eq(self.counts.frames + 1),
            ]
        return m
