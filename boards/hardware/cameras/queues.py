"""Queues of a camera's beats in block RAM: a few lines of a picture, or a whole one."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["LineQueue", "PictureQueue"]

LINES_THAT_WAIT = 2


class _WholeBeats:
    """Beats that are kept as they are, with their mark of a frame's end."""

    def stored(self, payload):
        """Return the part of a beat that is kept in block RAM."""
        return payload.as_value()

    def last(self, word, is_final):
        """Return whether a word ends a frame, which may be the one at the greatest address."""
        return word[-1]


class _DataAlone:
    """Beats of which the data is kept: a frame ends at the greatest address."""

    def stored(self, payload):
        """Return the part of a beat that is kept in block RAM."""
        return payload.data.as_value()

    def last(self, word, is_final):
        """Return whether a word ends a frame, which may be the one at the greatest address."""
        return is_final


class _BlockQueue(wiring.Component):
    """Beats in block RAM, in their order: one per cycle in, and one out.

    Parameters
    ----------
    layout : StructLayout
        Beats: ``data`` and ``last``.
    depth : int
        How many there may be.
    kept : _WholeBeats or _DataAlone
        What is kept of a beat.

    Members
    -------
    i, o : stream.Signature(layout)
    empty : Out(1)
        Every beat was taken.

    Attributes
    ----------
    latency : int
        Cycles from a beat to it.
    """

    latency = 2

    def __init__(self, layout, depth, kept):
        self.layout, self.depth, self._kept = layout, depth, kept
        super().__init__({
            "i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout)),
            "empty": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        stored = self._kept.stored(self.i.payload)
        depth, width = self.depth, len(stored)
        m.submodules.memory = memory = TiledMemory(Tiling(depth, width, depth, width),
                                                   writable=True)
        first, end = Signal(range(depth)), Signal(range(depth))
        level, left = Signal(range(depth + 1)), Signal(range(depth + 1))
        pushes, taken, is_read = Signal(), Signal(), Signal()
        following = Signal.like(first)
        is_final = first == depth - 1
        m.d.comb += [
            self.i.ready.eq(level != depth),
            self.empty.eq(level == 0),
            pushes.eq(self.i.valid & self.i.ready),
            taken.eq(self.o.valid & self.o.ready),
            following.eq(Mux(taken, Mux(is_final, 0, first + 1), first)),
            left.eq(level - taken),
            memory.write_data.eq(stored),
            memory.write_address.eq(end),
            memory.write_enable.eq(pushes),
            memory.read_enable.eq(1),
            memory.read_address.eq(following),
            self.o.valid.eq(is_read),
            self.o.p.data.as_value().eq(memory.read_data),
            self.o.p.last.eq(self._kept.last(memory.read_data, is_final)),
        ]
        # what is written in this cycle is not read in it
        m.d.sync += [first.eq(following), is_read.eq(left != 0), level.eq(left + pushes)]
        with m.If(pushes):
            m.d.sync += end.eq(Mux(end == depth - 1, 0, end + 1))
        return m


class LineQueue(_BlockQueue):
    """Beats of two lines, or a few more, for an accelerator that reads them line by line.

    Parameters
    ----------
    line : int
        Beats of a line.
    """

    def __init__(self, layout, line):
        depth = 1 << max(4, (LINES_THAT_WAIT * line - 1).bit_length())
        super().__init__(layout, depth, _WholeBeats())


class PictureQueue(_BlockQueue):
    """All beats of a picture, for an accelerator that takes none for a while.

    Parameters
    ----------
    beats : int
        Beats of a picture.
    """

    def __init__(self, layout, beats):
        super().__init__(layout, beats, _DataAlone())
