"""Memories of one input and of its result."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FrameStore", "ResultStore"]


class FrameStore(wiring.Component):
    """Keep a frame that comes code by code, and give it as beats as often as it is wanted.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's input stream.
    beats : int
        Beats of a frame.
    channels : int
        Codes of a pixel; those of its last beat that fill it up are 0.

    Members
    -------
    clear : In(1)
        Forget the frame.
    store : In(1)
        Take ``code``; only while not ``busy``, and not behind a whole frame.
    code : In(code)
    busy : Out(1)
        A code is on its way.
    complete : Out(1)
        The frame is whole.
    start : In(1)
        Give it; only a whole one, and only while ``idle``.
    idle : Out(1)
        All beats were taken.
    o : Out(stream.Signature(layout))
        Beats for the accelerator, one per cycle.

    Attributes
    ----------
    latency : int
        Cycles from ``start`` to the first beat.
    """

    latency = 2

    def __init__(self, layout, *, beats, channels):
        codes = layout["data"].shape
        self.layout, self.beats, self.channels = layout, beats, channels
        self.lanes, self.bits = codes.length, Shape.cast(codes.elem_shape).width
        super().__init__({
            "clear": In(1),
            "store": In(1),
            "code": In(self.bits),
            "busy": Out(1),
            "complete": Out(1),
            "start": In(1),
            "idle": Out(1),
            "o": Out(stream.Signature(layout)),
        })

    def elaborate(self, platform):
        m = Module()
        width = self.lanes * self.bits
        m.submodules.memory = frame = memory.Memory(
            shape=width, depth=max(2, self.beats), init=[])
        write, read = frame.write_port(), frame.read_port()

        # codes become beats
        beat = Signal(width, reset_less=True)
        lane, channel = Signal(range(self.lanes)), Signal(range(self.channels))
        filling, full, taken = Signal(), Signal(), Signal()
        place = Signal(range(self.beats))
        m.d.comb += [
            self.busy.eq(filling | full),
            taken.eq(self.store | filling),
            write.addr.eq(place), write.data.eq(beat), write.en.eq(full),
        ]
        with m.If(taken):
            m.d.sync += [beat.eq(Cat(beat, Mux(filling, 0, self.code))[self.bits :]),
                         lane.eq(lane + 1)]
            with m.If(lane == self.lanes - 1):
                m.d.sync += [lane.eq(0), full.eq(1), filling.eq(0)]
            if self.channels % self.lanes:
                with m.If(~filling):
                    m.d.sync += channel.eq(channel + 1)
                    with m.If(channel == self.channels - 1):
                        m.d.sync += [channel.eq(0), filling.eq(lane != self.lanes - 1)]
        with m.If(full):
            m.d.sync += [full.eq(0), place.eq(place + 1)]
            with m.If(place == self.beats - 1):
                m.d.sync += [place.eq(0), self.complete.eq(1)]
        with m.If(self.clear):
            m.d.sync += [place.eq(0), lane.eq(0), channel.eq(0), filling.eq(0), full.eq(0),
                         self.complete.eq(0)]

        # beats go to the accelerator
        giving, fetch = Signal(), Signal()
        following = Signal(range(self.beats))
        m.d.comb += [
            fetch.eq(giving & (self.o.ready | ~self.o.valid)),
            self.idle.eq(~giving & ~self.o.valid),
            read.addr.eq(following), read.en.eq(fetch),
        ]
        for n in range(self.lanes):
            m.d.comb += self.o.p.data[n].eq(read.data.word_select(n, self.bits))
        with m.If(self.start):
            m.d.sync += giving.eq(1)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(fetch):
            m.d.sync += [self.o.valid.eq(1), self.o.p.last.eq(following == self.beats - 1),
                         following.eq(following + 1)]
            with m.If(following == self.beats - 1):
                m.d.sync += [following.eq(0), giving.eq(0)]
        return m


class ResultStore(wiring.Component):
    """Keep the last frame of an output, and give it code by code.

    Parameters
    ----------
    layout : data.StructLayout
        Payload of the accelerator's output stream.
    beats : int
        Beats of a frame.
    codes : int
        Codes that are given, the first ones of a frame.

    Members
    -------
    i : In(stream.Signature(layout))
        Beats of the accelerator, which never wait.
    ended : Out(1)
        The last beat of a frame is there.
    first, following : In(1)
        Go to the first code, or to the one behind.
    code : Out(code)
        It, two cycles later.
    is_last : Out(1)
        It is the last one.

    Attributes
    ----------
    latency : int
        Cycles from ``first`` to the code.
    """

    latency = 2

    def __init__(self, layout, *, beats, codes):
        self.beats, self.codes = beats, codes
        shape = layout["data"].shape
        self.lanes, self.bits = shape.length, Shape.cast(shape.elem_shape).width
        super().__init__({
            "i": In(stream.Signature(layout)),
            "ended": Out(1),
            "first": In(1),
            "following": In(1),
            "code": Out(self.bits),
            "is_last": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = result = memory.Memory(
            shape=self.lanes * self.bits, depth=max(2, self.beats), init=[])
        write, read = result.write_port(), result.read_port()
        place, index = Signal(range(self.beats)), Signal(range(self.codes))
        beat, lane = Signal(range(self.beats)), Signal(range(self.lanes))
        m.d.comb += [
            self.i.ready.eq(1),
            self.ended.eq(self.i.valid & self.i.p.last),
            write.addr.eq(place), write.en.eq(self.i.valid),
            write.data.eq(self.i.p.data.as_value()),
            # never a read and a write in one cycle: their collision would take LUTs
            read.addr.eq(beat), read.en.eq(~write.en),
            self.code.eq(read.data.word_select(lane, self.bits)),
            self.is_last.eq(index == self.codes - 1),
        ]
        with m.If(self.i.valid):
            m.d.sync += place.eq(Mux(self.i.p.last, 0, place + 1))
        with m.If(self.following):
            m.d.sync += [index.eq(index + 1), lane.eq(lane + 1)]
            with m.If(lane == self.lanes - 1):
                m.d.sync += [lane.eq(0), beat.eq(beat + 1)]
        with m.If(self.first):
            m.d.sync += [index.eq(0), lane.eq(0), beat.eq(0)]
        return m
