"""Concatenation of streams along an axis, and its inverse, which also slices."""

from itertools import accumulate

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["Concat", "Split"]


class Concat(wiring.Component):
    """Take beats of several streams in turn; golden model: ``concatenate``.

    A turn takes ``runs[n]`` beats of every stream n: its channels, to concatenate channels; the
    beats of its rows or of its whole frames, to concatenate columns or rows. One beat per cycle,
    through an output register: a stream's ``ready`` is that of its turn and of the register.

    Members
    -------
    i0, i1, ... : In(stream.Signature(beat_layout))
        One per run.
    o : Out(stream.Signature(beat_layout))
        ``last`` comes from the last stream.
    offered, free : Out(1)
        Only if ``counted``: a beat of the stream whose turn it is stands here; the register takes
        what comes.
    """

    def __init__(self, part: parts.Concat, *, counted=False):
        self.part, self.counted = part, counted
        beat = stream.Signature(beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes))
        super().__init__({
            **{f"i{n}": In(beat) for n in range(len(part.runs))}, "o": Out(beat),
            **({"offered": Out(1), "free": Out(1)} if counted else {}),
        })

    def elaborate(self, platform):
        m = Module()
        free, valid, last = Signal(), Signal(), Signal()
        if self.counted:
            m.d.comb += [self.offered.eq(valid), self.free.eq(free)]
        turn, _ = _turn(m, self.part.runs, valid & free)
        m.d.comb += free.eq(~self.o.valid | self.o.ready)
        with m.If(free):
            m.d.sync += [self.o.valid.eq(valid), self.o.payload.last.eq(last)]
        ports = [getattr(self, f"i{n}") for n in range(len(self.part.runs))]
        for port, now in zip(ports, turn, strict=True):
            m.d.comb += port.ready.eq(free & now)
            with m.If(now):
                m.d.comb += valid.eq(port.valid)
                with m.If(free):
                    m.d.sync += self.o.payload.data.eq(port.payload.data)
        m.d.comb += last.eq(ports[-1].payload.last & turn[-1])
        return m


class Split(wiring.Component):
    """Give the beats of a stream to several in turn; golden model: ``split``, or a slice.

    A turn gives ``runs[n]`` beats to stream n, as :class:`Concat` takes them; the beats of runs
    that are not kept are dropped. One beat per cycle. ``o0``, ``o1`` ... are connected with ``i``
    directly: ``i.ready`` is that of the stream whose turn it is.

    Members
    -------
    i : In(stream.Signature(beat_layout))
    o0, o1, ... : Out(stream.Signature(beat_layout))
        One per kept run, numbered by run; ``last`` is the stream's own.
    """

    def __init__(self, part: parts.Split):
        self.part = part
        beat = stream.Signature(beat_layout(bits=part.bits, signed=part.signed, lanes=part.lanes))
        outputs = {f"o{n}": Out(beat) for n, is_kept in enumerate(part.kept) if is_kept}
        super().__init__({"i": In(beat), **outputs})

    def elaborate(self, platform):
        m = Module()
        accept = Signal()
        turn, run_end = _turn(m, self.part.runs, accept)
        count = Signal(range(self.part.turns))
        final = count == self.part.turns - 1
        m.d.comb += [self.i.ready.eq(1), accept.eq(self.i.valid & self.i.ready)]
        with m.If(accept & run_end & turn[-1]):
            m.d.sync += count.eq(Mux(final, 0, count + 1))
        for n, now in enumerate(turn):
            if self.part.kept[n]:
                port = getattr(self, f"o{n}")
                m.d.comb += [
                    port.payload.data.eq(self.i.payload.data),
                    port.payload.last.eq(final & run_end),
                    port.valid.eq(self.i.valid & now),
                ]
                with m.If(now):
                    m.d.comb += self.i.ready.eq(port.ready)
        return m


def _turn(m, runs, advance):
    """Count the beats of a turn; return whose run it is, and if its last beat is due."""
    ends = list(accumulate(runs))
    beat = Signal(range(ends[-1]), name="turn_beat")
    owner = Signal(range(len(runs)), name="turn_owner")
    run_end = Signal(name="run_end")
    with m.Switch(beat):
        with m.Case(*(end - 1 for end in ends)):
            m.d.comb += run_end.eq(1)
    turn_end = run_end & (owner == len(runs) - 1)
    with m.If(advance):
        m.d.sync += beat.eq(Mux(turn_end, 0, beat + 1))
        with m.If(run_end):
            m.d.sync += owner.eq(Mux(turn_end, 0, owner + 1))
    return [owner == n for n in range(len(runs))], run_end
