"""Frames made on the board, to prove the core's rate, which no host link feeds."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Replayer"]


class Replayer(wiring.Component):
    """Pass the host's beats on, or feed a ramp frame a number of times without a pause.

    Every lane of beat ``n`` of the ramp frame has the code ``n``, truncated to its width: cycles do
    not depend on codes, so this takes no memory. A replay lasts until its last result is out.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's input stream.
    frame_beats : int
        Beats of one input frame.

    Members
    -------
    start : In(1)
        Begin a replay of ``count`` frames; only while no frame is inside and not ``busy``.
    count : In(16)
        Frames.
    inside : In(1)
        A frame is inside the accelerator, or beats are on their way to it or from it.
    busy : Out(1)
        A replay is running: results are to be dropped.
    i : In(stream.Signature(layout))
        Beats of the host; none come while ``busy``.
    o : Out(stream.Signature(layout))
        Beats for the accelerator.

    Attributes
    ----------
    latency : int
        Cycles from ``start`` to the first beat.
    """

    latency = 1

    def __init__(self, layout, *, frame_beats):
        if frame_beats < 1:
            raise ValueError(f"frame_beats must be positive, not {frame_beats!r}")
        self.layout = layout
        self.frame_beats = frame_beats
        super().__init__({
            "start": In(1),
            "count": In(16),
            "inside": In(1),
            "busy": Out(1),
            "i": In(stream.Signature(layout)),
            "o": Out(stream.Signature(layout)),
        })

    def elaborate(self, platform):
        m = Module()
        frames_left = Signal(16)
        sending = Signal()
        beat = Signal(range(self.frame_beats))
        final = beat == self.frame_beats - 1
        m.d.comb += [
            sending.eq(frames_left != 0),
            self.o.valid.eq(sending | self.i.valid),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & ~sending),
        ]
        with m.If(sending):
            m.d.comb += [code.eq(beat) for code in self.o.p.data] + [self.o.p.last.eq(final)]
            with m.If(self.o.ready):
                m.d.sync += beat.eq(Mux(final, 0, beat + 1))
                m.d.sync += frames_left.eq(frames_left - final)

        with m.If(self.busy & ~sending & ~self.inside):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), frames_left.eq(self.count)]
        return m
