"""FIFO in block RAM, for streams that wait long for another one."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.blockram import tile_memory
from nnef_hw.rtl.memory import TiledMemory
from nnef_hw.rtl.stream import beat_layout, elastic_stages

__all__ = ["BlockFifo"]

STAGES = 2
"""Registers behind the memory: the block RAM's own, and one that makes its output fast."""


class BlockFifo(wiring.Component):
    """Queue of beats in block RAM; golden model: the identity.

    Takes and gives a beat per cycle, both at once, from any fill level. ``i.ready`` and ``o.valid``
    come from registers. With ``o`` stalled it takes exactly ``depth`` beats: ``depth - 2`` in
    memory and 2 in registers behind it.

    Beat k, taken in cycle ``t[k]``, is read in ``r[k] = max(t[k] + 1, s[k - 1])``, moves on in
    ``s[k] = max(r[k] + 1, g[k - 1])``, is offered from ``s[k] + 1`` on and given in ``g[k]``. There
    is room for it from ``r[k - depth + 2] + 1`` on.

    ``last`` is stored where that takes no block RAM more, and else counted again.

    Parameters
    ----------
    bits, signed, lanes : int, bool, int
        Format of a beat.
    frame : int
        Beats of a frame.
    depth : int
        Beats held, at least 4.
    ram : BlockRam
        The device's block RAM.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    tiling : Tiling
        Its memory.
    latency : int
        Cycles from an accepted beat to its ``o.valid``, if the queue is empty.
    """

    latency = 1 + STAGES

    def __init__(self, *, bits, signed, lanes, frame, depth, ram):
        if depth < STAGES + 2:
            raise ValueError(f"BlockFifo depth must be at least {STAGES + 2}, not {depth!r}")
        self.frame = frame
        self.depth = depth
        tilings = [tile_memory(ram, depth - STAGES, bits * lanes + extra) for extra in (0, 1)]
        self.stores_last = tilings[0].count == tilings[1].count
        self.tiling = tilings[self.stores_last]
        beat = stream.Signature(beat_layout(bits=bits, signed=signed, lanes=lanes))
        super().__init__({"i": In(beat), "o": Out(beat)})

    def elaborate(self, platform):
        m = Module()
        words = self.tiling.depth
        m.submodules.storage = storage = TiledMemory(self.tiling, writable=True)
        newest, oldest = Signal(range(words)), Signal(range(words))
        # The stages behind are full whenever the memory is, so this alone tells if there is room.
        stored = Signal(range(words + 1))
        accept = Signal()
        read = Signal()

        waiting = stored != 0
        (enable, enable_output), (loaded, _) = elastic_stages(m, waiting, self.o, stages=STAGES)
        m.d.comb += [
            self.i.ready.eq(stored != words),
            accept.eq(self.i.valid & self.i.ready),
            read.eq(waiting & enable),
            storage.write_address.eq(newest),
            storage.write_enable.eq(accept),
            storage.write_data.eq(self.i.payload),
            storage.read_address.eq(oldest),
            storage.read_enable.eq(read),
        ]
        with m.If(accept != read):
            m.d.sync += stored.eq(Mux(accept, stored + 1, stored - 1))
        with m.If(accept):
            m.d.sync += newest.eq(Mux(newest == words - 1, 0, newest + 1))
        with m.If(read):
            m.d.sync += oldest.eq(Mux(oldest == words - 1, 0, oldest + 1))

        with m.If(enable_output):
            m.d.sync += self.o.payload.data.eq(storage.read_data)
        if self.stores_last:
            with m.If(enable_output):
                m.d.sync += self.o.payload.last.eq(storage.read_data[-1])
        else:
            position = Signal(range(self.frame))
            final = position == self.frame - 1
            with m.If(enable_output & loaded):
                m.d.sync += [
                    position.eq(Mux(final, 0, position + 1)),
                    self.o.payload.last.eq(final),
                ]
        return m
