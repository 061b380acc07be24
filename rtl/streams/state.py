"""State of a recurrent network: what a step leaves for the next one."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import beat_words, code_range, code_streams

__all__ = ["State"]


class State(wiring.Component):
    """Give a frame of initial codes after reset, then hand on the input; golden model: that.

    That of a loop gives the initial codes again after ``steps - 1`` frames have passed. A beat per
    cycle; the initial codes begin in the second cycle after that, or after reset. ``o`` is
    ``i`` behind them, in the same cycle: a queue in front cuts the loop that a state closes.

    Parameters
    ----------
    codes : list[int]
        The initial codes of a frame.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Next values, frame by frame; waits until the initial codes have left.
    o : Out(stream.Signature(beat_layout))

    Raises
    ------
    ValueError
        If there are not as many codes as its part says, they differ though it says that they do
        not, or one does not fit their format.
    """

    def __init__(self, part: parts.State, *, codes):
        allowed = code_range(part.bits, part.signed)
        outside = [code for code in codes if code not in allowed]
        if outside:
            raise ValueError(f"State of {part.bits} bits cannot hold {outside[0]!r}")
        if len(codes) != part.count * part.lanes:
            raise ValueError(f"State needs {part.count * part.lanes} codes, not {len(codes)}")
        if part.style == "equal" and len(set(codes)) > 1:
            raise ValueError("State of equal codes has several")
        self.part = part
        self.words = beat_words(codes, bits=part.bits, lanes=part.lanes)
        super().__init__(code_streams(part, lanes=part.lanes))

    def elaborate(self, platform):
        m = Module()
        part = self.part
        # Whether the initial codes have left; one of them is there; it is the last one.
        passing, present, final = Signal(), Signal(), Signal()
        position = Signal(range(part.count))
        initial = Signal(part.bits * part.lanes)
        fetch = Signal()
        if part.style == "equal":
            m.d.comb += initial.eq(self.words[0])
        else:
            m.submodules.words = words = TiledMemory(part.tiling, words=self.words,
                                                   style=part.style)
            m.d.comb += [
                words.read_address.eq(position),
                words.read_enable.eq(fetch),
                initial.eq(words.read_data),
            ]
        m.d.comb += [
            fetch.eq(~passing & (~present | self.o.ready)),
            self.o.valid.eq(Mux(passing, self.i.valid, present)),
            self.o.payload.data.eq(Mux(passing, self.i.payload.data.as_value(), initial)),
            self.o.payload.last.eq(Mux(passing, self.i.payload.last, final)),
            self.i.ready.eq(passing & self.o.ready),
        ]
        with m.If(fetch):
            m.d.sync += [
                present.eq(1),
                final.eq(position == part.count - 1),
                position.eq(position + 1),
                passing.eq(present & final),
            ]
        if part.passed:
            done = Signal(range(part.passed))
            with m.If(passing & self.i.valid & self.o.ready):
                m.d.sync += done.eq(done + 1)
                with m.If(done == part.passed - 1):
                    m.d.sync += [done.eq(0), passing.eq(0), present.eq(0), position.eq(0)]
        return m
