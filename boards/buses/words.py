# amaranth: UnusedElaboratable=no
"""Between words of registers and the beats of an accelerator: a FIFO each way."""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.beats import beat_bytes
from nnef_hw.boards.hardware.frames import FrameMerger, FrameSplitter
from nnef_hw.registers.table import WORD_BITS, WORD_BYTES

__all__ = ["LEVEL_BITS", "WordsIn", "WordsOut", "frame_words"]

LEVEL_BITS = 16
SHALLOWEST = 16


def frame_words(frame_bytes):
    """Words of a frame, which begins with a new one."""
    return -(-frame_bytes // WORD_BYTES)


def _depth(frame_bytes):
    """Words that a FIFO holds: a frame, and a power of two."""
    return max(SHALLOWEST, 1 << (frame_words(frame_bytes) - 1).bit_length())


class WordsIn(wiring.Component):
    """Frames in words, lowest byte first, as beats of every input; golden model: ``to_stream``.

    The bytes of the tensors follow each other, and a frame begins with a new word. A byte takes
    about two cycles. Words wait in block RAM, at least those of a frame.

    Parameters
    ----------
    layouts : Sequence[data.StructLayout]
        Payload of every input.
    beats : Sequence[int]
        Beats of a frame of every input.

    Members
    -------
    word, strobe : In
        A word comes; only if there is ``room``.
    room : Out(1)
        A word may come.
    free : Out(16)
        Words that may come, as of the cycle before.
    o0, o1, ... : Out(stream.Signature(layout))
        Beats of each input.
    """

    def __init__(self, layouts, beats):
        self.frame_bytes = sum(
            beat_bytes(layout) * count for layout, count in zip(layouts, beats, strict=True))
        self.depth = _depth(self.frame_bytes)
        self.splitter = FrameSplitter(layouts, beats)
        outputs = {f"o{n}": Out(stream.Signature(layout)) for n, layout in enumerate(layouts)}
        super().__init__({
            "word": In(WORD_BITS), "strobe": In(1), "room": Out(1), "free": Out(LEVEL_BITS),
            **outputs,
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = fifo.SyncFIFOBuffered(width=WORD_BITS, depth=self.depth)
        m.submodules.splitter = splitter = self.splitter
        m.d.comb += [
            words.w_data.eq(self.word), words.w_en.eq(self.strobe), self.room.eq(words.w_rdy),
        ]
        m.d.sync += self.free.eq(self.depth - words.w_level - self.strobe)
        for n in range(len(splitter.layouts)):
            wiring.connect(m, getattr(splitter, f"o{n}"), wiring.flipped(getattr(self, f"o{n}")))

        index = Signal(range(WORD_BYTES))
        count = Signal(range(self.frame_bytes))
        final = count == self.frame_bytes - 1
        m.d.comb += [
            splitter.i.p.data[0].eq(words.r_data.word_select(index, 8)),
            splitter.i.valid.eq(words.r_rdy),
            words.r_en.eq(splitter.i.ready & (final | (index == WORD_BYTES - 1))),
        ]
        with m.If(splitter.i.valid & splitter.i.ready):
            m.d.sync += [index.eq(Mux(final, 0, index + 1)), count.eq(Mux(final, 0, count + 1))]
        return m


class WordsOut(wiring.Component):
    """Beats of every output as frames in words; golden model: ``to_stream``.

    The bytes of the tensors follow each other; a frame begins with a new word, and zeros fill its
    last one. A byte takes a cycle, a beat one more. Words wait in block RAM, at least a frame's.

    Parameters
    ----------
    layouts : Sequence[data.StructLayout]
        Payload of every output.
    beats : Sequence[int]
        Beats of a frame of every output.

    Members
    -------
    i0, i1, ... : In(stream.Signature(layout))
        Beats of each output.
    word, strobe
        The oldest word, and that it is taken; only if one is ``there``.
    there : Out(1)
        A word waits.
    waiting : Out(16)
        Words that wait.
    finished : Out(1)
        The last word of a frame has come in the cycle before.
    """

    def __init__(self, layouts, beats):
        self.frame_bytes = sum(
            beat_bytes(layout) * count for layout, count in zip(layouts, beats, strict=True))
        self.depth = _depth(self.frame_bytes)
        self.merger = FrameMerger(layouts)
        inputs = {f"i{n}": In(stream.Signature(layout)) for n, layout in enumerate(layouts)}
        super().__init__({
            "word": Out(WORD_BITS), "strobe": In(1), "there": Out(1), "waiting": Out(LEVEL_BITS),
            "finished": Out(1), **inputs,
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = fifo.SyncFIFOBuffered(width=WORD_BITS, depth=self.depth)
        m.submodules.merger = merger = self.merger
        for n in range(len(merger.layouts)):
            wiring.connect(m, wiring.flipped(getattr(self, f"i{n}")), getattr(merger, f"i{n}"))

        word = Signal(WORD_BITS)
        full = Signal()
        ends = Signal()
        index = Signal(range(WORD_BYTES))
        count = Signal(range(self.frame_bytes))
        final = count == self.frame_bytes - 1
        m.d.comb += [
            merger.o.ready.eq(~full),
            words.w_data.eq(word),
            words.w_en.eq(full),
            self.word.eq(words.r_data),
            self.there.eq(words.r_rdy),
            words.r_en.eq(self.strobe),
            self.waiting.eq(Mux(words.r_rdy, words.r_level, 0)),
        ]
        with m.If(merger.o.valid & merger.o.ready):
            m.d.sync += [
                word.word_select(index, 8).eq(merger.o.payload),
                index.eq(Mux(final, 0, index + 1)),
                count.eq(Mux(final, 0, count + 1)),
                full.eq(final | (index == WORD_BYTES - 1)),
                ends.eq(final),
            ]
        with m.If(full & words.w_rdy):
            m.d.sync += [full.eq(0), word.eq(0)]
        m.d.sync += self.finished.eq(full & words.w_rdy & ends)
        return m
