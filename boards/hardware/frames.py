"""Between a frame's bytes on the host link and the tensors of an accelerator with several.

On the link the tensors of a frame follow each other; in the accelerator they are streams of their
own, each at its own pace. Where whole frames of all inputs but the last, and of all outputs but the
first, can wait in queues, nothing ever waits for ever (docs/protocol.md, section 7).
"""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.beats import BeatSerializer, beat_bytes, code_bytes
from nnef_hw.rtl.streams.stream import Fifo

__all__ = ["BYTE_LAYOUT", "FrameGate", "FrameMerger", "FrameSplitter", "joined", "part"]

BYTE_LAYOUT = data.StructLayout({"data": data.ArrayLayout(8, 1), "last": 1})
"""A beat of the packets' feeder where beats of several formats follow each other."""


class FrameSplitter(wiring.Component):
    """Make beats of bytes, tensor after tensor; about two cycles per byte.

    Parameters
    ----------
    layouts : Sequence[data.StructLayout]
        Payload of every stream.
    beats : Sequence[int]
        Beats of a frame in every stream.

    Members
    -------
    i : In(stream.Signature(BYTE_LAYOUT))
        Bytes of whole frames; its ``last`` says nothing.
    o0, o1, ... : Out(stream.Signature(layout))
        Beats of each tensor.

    Attributes
    ----------
    latency : int
        Cycles from a beat's last byte to the beat.
    """

    latency = 1

    def __init__(self, layouts, beats):
        self.layouts, self.beats = list(layouts), list(beats)
        outputs = {f"o{n}": Out(stream.Signature(layout)) for n, layout in enumerate(layouts)}
        super().__init__({"i": In(stream.Signature(BYTE_LAYOUT)), **outputs})

    def elaborate(self, platform):
        m = Module()
        sizes = [beat_bytes(layout) for layout in self.layouts]
        beat = Signal(8 * max(sizes), reset_less=True)
        index = Signal(range(max(sizes)))
        count = Signal(range(max(self.beats)))
        turn = Signal(range(len(sizes)))
        full = Signal()
        m.d.comb += self.i.ready.eq(~full)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += beat.eq(Cat(beat, self.i.p.data[0])[8:])
        with m.Switch(turn):
            for n, (size, layout) in enumerate(zip(sizes, self.layouts, strict=True)):
                port = getattr(self, f"o{n}")
                final = count == self.beats[n] - 1
                width = 8 * code_bytes(layout)
                codes = beat[8 * (max(sizes) - size) :]
                m.d.comb += [code.eq(codes.word_select(lane, width))
                             for lane, code in enumerate(port.p.data)]
                m.d.comb += port.p.last.eq(final)
                with m.Case(n):
                    m.d.comb += port.valid.eq(full)
                    with m.If(self.i.valid & self.i.ready):
                        m.d.sync += index.eq(index + 1)
                        with m.If(index == size - 1):
                            m.d.sync += [index.eq(0), full.eq(1)]
                    with m.If(full & port.ready):
                        m.d.sync += [full.eq(0), count.eq(count + 1)]
                        with m.If(final):
                            m.d.sync += [count.eq(0), turn.eq((n + 1) % len(sizes))]
        return m


class FrameMerger(wiring.Component):
    """Give the bytes of several streams of beats, tensor after tensor.

    Parameters
    ----------
    layouts : Sequence[data.StructLayout]
        Payload of every stream.

    Members
    -------
    i0, i1, ... : In(stream.Signature(layout))
        Beats of each tensor.
    o : Out(stream.Signature(8))
        Bytes of whole frames.

    Attributes
    ----------
    latency : int
        Cycles from a beat to its first byte.
    """

    latency = BeatSerializer.latency

    def __init__(self, layouts):
        self.layouts = list(layouts)
        inputs = {f"i{n}": In(stream.Signature(layout)) for n, layout in enumerate(layouts)}
        super().__init__({**inputs, "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        turn = Signal(range(len(self.layouts)))
        for n, layout in enumerate(self.layouts):
            port = getattr(self, f"i{n}")
            m.submodules[f"serializer{n}"] = serializer = BeatSerializer(layout)
            wiring.connect(m, wiring.flipped(port), serializer.i)
            with m.If(turn == n):
                m.d.comb += [
                    self.o.payload.eq(serializer.o.payload),
                    self.o.valid.eq(serializer.o.valid),
                    serializer.o.ready.eq(self.o.ready),
                ]
                with m.If(port.valid & port.ready & port.p.last):
                    m.d.sync += turn.eq((n + 1) % len(self.layouts))
        return m


class FrameGate(wiring.Component):
    """Pass whole frames on while somebody takes them, and drop whole ones otherwise.

    It never lets a beat wait. A frame that begins while beats of an earlier one are still there is
    dropped.

    Parameters
    ----------
    layout : data.StructLayout
        Payload.
    beats : int
        Beats of a frame.

    Members
    -------
    i, o : stream.Signature(layout)

    Attributes
    ----------
    latency : int
        Cycles from a beat to the same one at ``o``.
    """

    latency = Fifo.latency

    def __init__(self, layout, beats):
        self.beats = beats
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = Fifo(self.i.payload.shape(), depth=max(2, self.beats))
        begins, passes, passed = Signal(init=1), Signal(), Signal()
        m.d.comb += [
            # an empty queue has room for all of a frame
            passes.eq(Mux(begins, ~queue.o.valid, passed)),
            queue.i.payload.eq(self.i.payload),
            queue.i.valid.eq(self.i.valid & passes),
            self.i.ready.eq(1),
        ]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        with m.If(self.i.valid):
            m.d.sync += [begins.eq(self.i.p.last), passed.eq(passes)]
        return m


def part(m, choice, origin, first, second):
    """Connect a stream to the first of two, or where ``choice`` is high to the second one."""
    m.d.comb += [
        first.payload.eq(origin.payload),
        second.payload.eq(origin.payload),
        first.valid.eq(origin.valid & ~choice),
        second.valid.eq(origin.valid & choice),
        origin.ready.eq(Mux(choice, second.ready, first.ready)),
    ]


def joined(m, choice, first, second, name):
    """Return the first of two streams, or where ``choice`` is high the second one."""
    whole = stream.Signature(first.payload.shape()).create(path=(name, "joined"))
    m.d.comb += [
        whole.payload.eq(Mux(choice, second.payload, first.payload)),
        whole.valid.eq(Mux(choice, second.valid, first.valid)),
        first.ready.eq(whole.ready & ~choice),
        second.ready.eq(whole.ready & choice),
    ]
    return whole
