"""Cycle counters at the accelerator's boundary."""

from functools import reduce
from operator import and_, or_

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.host.protocol import COUNTED_FRAMES, WARM_UP_FRAMES

__all__ = ["COUNTER_LAYOUT", "LAYER_COUNTS", "InferenceCounters", "LayerCounters"]

CYCLE_BITS = 24
LAYER_BITS = 24
COUNTER_LAYOUT = data.StructLayout({
    "latency": CYCLE_BITS + 1,
    "interval": CYCLE_BITS + 1,
    "frames": 8,
})
LAYER_COUNTS = data.StructLayout({"busy": 32, "waiting": 32})


class InferenceCounters(wiring.Component):
    """Measure latency and initiation interval of the accelerator while it works.

    A frame enters with its first beat at any input, and leaves with the last one of all outputs.
    Cycle counts stop at ``2**24``, which means so many or more; the number of frames wraps. All are
    cleared by the reset of the accelerator.

    Parameters
    ----------
    inputs, outputs : int
        Streams of the accelerator.
    batch : int
        Frames that enter before the first one leaves.

    Members
    -------
    input_taken, input_last : In(inputs)
        A beat is accepted by the accelerator; it is the last one of its frame.
    output_taken, output_last : In(outputs)
        The same for a beat the accelerator gives.
    busy : Out(1)
        A frame is inside the accelerator: from the cycle after its first beat was accepted to that
        after its last one was given.
    left : Out(1)
        A frame has left it in the cycle before.
    counts : Out(COUNTER_LAYOUT)
        ``latency``: cycles from the first input beat to the last output beat of the latest frame
        that entered an empty accelerator. ``interval``: cycles between the last beats of the latest
        two frames that left, or of the last frames of the latest two batches. ``frames``: frames
        that left.

    Attributes
    ----------
    latency : int
        Cycles from an event to the counters that include it.
    """

    latency = 2

    def __init__(self, inputs=1, outputs=1, batch=1):
        self.inputs, self.outputs, self.batch = inputs, outputs, batch
        # parts of a network that have nothing in common may be a whole replay ahead
        self.frame_bits = 8 if inputs == outputs == 1 else 17
        super().__init__({
            "input_taken": In(inputs),
            "input_last": In(inputs),
            "output_taken": In(outputs),
            "output_last": In(outputs),
            "busy": Out(1),
            "left": Out(1),
            "counts": Out(COUNTER_LAYOUT),
        })

    def elaborate(self, platform):
        m = Module()
        timing = Signal()
        inside = Signal(self.frame_bits)
        since_last = Signal(CYCLE_BITS + 1)
        # All events a cycle late, which changes no difference: whether a stream is ready may be
        # known late in a cycle, and what is enabled by it here is far from there.
        starts = Signal(self.inputs)
        ends = Signal(self.outputs)
        m.d.sync += [
            starts.eq(self._first_beats(m)),
            ends.eq(self.output_taken & self.output_last),
        ]
        enters = self._enters(m, starts)
        leaves = self._leaves(m, ends)
        is_inside = inside != 0
        m.d.comb += [self.busy.eq(is_inside | starts.any()), self.left.eq(leaves)]

        with m.If(enters & ~leaves):
            m.d.sync += inside.eq(inside + 1)
        with m.Elif(leaves & ~enters):
            m.d.sync += inside.eq(inside - 1)

        with m.If(timing & ~self.counts.latency[-1]):
            m.d.sync += self.counts.latency.eq(self.counts.latency + 1)
        with m.If(leaves):
            m.d.sync += timing.eq(0)
        with m.If(enters & ~is_inside):
            m.d.sync += [timing.eq(1), self.counts.latency.eq(0)]

        with m.If(~since_last[-1]):
            m.d.sync += since_last.eq(since_last + 1)
        batch_ends = leaves
        if self.batch > 1:
            place = Signal(range(self.batch))
            batch_ends = leaves & (place == self.batch - 1)
            with m.If(leaves):
                m.d.sync += place.eq(Mux(batch_ends, 0, place + 1))
        with m.If(batch_ends):
            m.d.sync += [since_last.eq(1), self.counts.interval.eq(since_last)]
        with m.If(leaves):
            m.d.sync += self.counts.frames.eq(self.counts.frames + 1)
        return m

    def _first_beats(self, m):
        """Which inputs take the first beat of a frame."""
        first = Signal(self.inputs, init=-1)
        for n in range(self.inputs):
            with m.If(self.input_taken[n]):
                m.d.sync += first[n].eq(self.input_last[n])
        return self.input_taken & first

    def _enters(self, m, starts):
        """Whether a frame's first beat comes to the first input that gets any of it."""
        if self.inputs == 1:
            return starts
        behind = [Signal(self.frame_bits, name=f"behind{n}") for n in range(self.inputs)]
        enters = reduce(or_, (start & (n == 0) for start, n in zip(starts, behind, strict=True)))
        for start, frames in zip(starts, behind, strict=True):
            m.d.sync += frames.eq(frames + enters - start)
        return enters

    def _leaves(self, m, ends):
        """Whether a frame's last beat leaves by the last output that gives any of it."""
        if self.outputs == 1:
            return ends
        ahead = [Signal(self.frame_bits, name=f"ahead{n}") for n in range(self.outputs)]
        leaves = reduce(and_, (end | (n != 0) for end, n in zip(ends, ahead, strict=True)))
        for end, frames in zip(ends, ahead, strict=True):
            m.d.sync += frames.eq(frames + end - leaves)
        return leaves


class LayerCounters(wiring.Component):
    """Count what every layer does over two frames, from the end of the 8th to that of the 10th.

    Counts wrap at ``2**24``; all are cleared by the reset of the accelerator.

    Parameters
    ----------
    layers : int
        How many.

    Members
    -------
    left : In(1)
        A frame left the accelerator in the cycle before.
    busy, waiting : In(layers)
        Each layer takes a word; one is there for it and is not taken.
    layer : In(range(layers + 1))
        Number of the layer whose counts to show; the first is 1.
    counts : Out(LAYER_COUNTS)
        The counts, from the cycle after ``layer`` on.

    Attributes
    ----------
    latency : int
        Cycles from an event to the counts that include it.
    """

    latency = 2

    def __init__(self, layers):
        self.layers = layers
        super().__init__({
            "left": In(1),
            "busy": In(layers),
            "waiting": In(layers),
            "layer": In(range(layers + 1)),
            "counts": Out(LAYER_COUNTS),
        })

    def elaborate(self, platform):
        m = Module()
        frames = Signal(range(WARM_UP_FRAMES + COUNTED_FRAMES + 1))
        counting = Signal()
        m.d.comb += counting.eq(
            (frames >= WARM_UP_FRAMES) & (frames != WARM_UP_FRAMES + COUNTED_FRAMES))
        with m.If(self.left & (frames != WARM_UP_FRAMES + COUNTED_FRAMES)):
            m.d.sync += frames.eq(frames + 1)
        # the events come late in their cycle, and so a cycle later, as ``left`` does
        events = Signal(2 * self.layers)
        m.d.sync += events.eq(Cat(self.busy, self.waiting))
        counts = [Signal(LAYER_BITS, name=f"count{n}") for n in range(2 * self.layers)]
        for count, event in zip(counts, events, strict=True):
            with m.If(event & counting):
                m.d.sync += count.eq(count + 1)
        with m.Switch(self.layer):
            for n in range(self.layers):
                with m.Case(n + 1):
                    m.d.sync += [
                        self.counts.busy.eq(counts[n]),
                        self.counts.waiting.eq(counts[self.layers + n]),
                    ]
        return m
