"""FIFO in block RAM, for streams that wait long for another one."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.parts.streams.fifo import FIFO_REGISTERS
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.streams.stream import Fifo, code_streams, elastic_stages

__all__ = ["BlockFifo", "CutFifo"]


class BlockFifo(wiring.Component):
    """Queue of beats in block RAM; golden model: the identity.

    Takes and gives a beat per cycle, both at once, from any fill level. ``i.ready`` and ``o.valid``
    come from registers. With ``o`` stalled it takes exactly ``depth`` beats: ``depth - 2`` in
    memory and 2 in registers behind it.

    Beat k, taken in cycle ``t[k]``, is read in ``r[k] = max(t[k] + 1, s[k - 1])``, moves on in
    ``s[k] = max(r[k] + 1, g[k - 1])``, is offered from ``s[k] + 1`` on and given in ``g[k]``. There
    is room for it from ``r[k - depth + 2] + 1`` on.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.BlockFifo):
        self.part = part
        super().__init__(code_streams(part, lanes=part.lanes))

    def elaborate(self, platform):
        m = Module()
        part = self.part
        words = part.memory.depth
        m.submodules.storage = storage = TiledMemory(
            part.memory, writable=True, registered=part.reads_twice)
        newest, oldest = Signal(range(words)), Signal(range(words))
        # The stages behind are full whenever the memory is, so this alone tells if there is room.
        stored, has_room = Signal(range(words + 1)), Signal(init=1)
        waiting = Signal() if part.reads_twice else stored != 0
        accept = Signal()
        read = Signal()

        enable, loaded, enable_output, domain, loads, output = self._leave(m, waiting, storage)
        m.d.comb += [
            self.i.ready.eq(has_room),
            accept.eq(self.i.valid & self.i.ready),
            read.eq(waiting & enable),
            storage.write_address.eq(newest),
            storage.write_enable.eq(accept),
            storage.write_data.eq(self.i.payload),
            storage.read_address.eq(oldest),
            # What is read while nothing waits is not taken for a beat. Where block RAMs are far,
            # what decides is short; on other devices it would take a LUT more.
            storage.read_enable.eq(enable if part.reads_twice else read),
        ]
        with m.If(accept != read):
            m.d.sync += [
                stored.eq(Mux(accept, stored + 1, stored - 1)),
                has_room.eq(read | (stored != words - 1)),
            ]
            if part.reads_twice:
                m.d.sync += waiting.eq(accept | (stored != 1))
        with m.If(accept):
            m.d.sync += newest.eq(Mux(newest == words - 1, 0, newest + 1))
        with m.If(read):
            m.d.sync += oldest.eq(Mux(oldest == words - 1, 0, oldest + 1))

        with m.If(loads):
            domain += output.data.eq(storage.read_data)
        if part.stores_last:
            with m.If(loads):
                domain += output.last.eq(storage.read_data[-1])
        else:
            position = Signal(range(part.frame))
            final = position == part.frame - 1
            with m.If(enable_output & loaded):
                m.d.sync += position.eq(Mux(final, 0, position + 1))
                domain += output.last.eq(final)
        return m

    def _leave(self, m, waiting, storage):
        """Make the registers that beats leave by; return how they move.

        What the memory reads is kept there; the register behind it makes its output fast.

        Returns
        -------
        enable, loaded : Value
            The memory reads a word; what it gives is one.
        enable_output : Value
            The next register takes it.
        domain, loads, output
            How that is written: statements, under which condition, about which payload.
        """
        (enable, enable_output), (loaded, _) = elastic_stages(m, waiting, self.o,
                                                              stages=FIFO_REGISTERS)
        return enable, loaded, enable_output, m.d.sync, enable_output, self.o.payload


class CutFifo(BlockFifo):
    """A BlockFifo with a skid: no path from ``o.ready`` to the memory, and none behind it is long.

    Its beats pass a register that is a part of the block RAM, and then the skid: it holds two
    more. Beat k is read in ``r[k] = max(t[k] + 1, s[k - 1])``, moves on to the register in
    ``s[k] = max(r[k] + 1, u[k - 1])`` and to the skid in
    ``u[k] = max(s[k] + 1, u[k - 1] + 1, g[k - 2] + 1)``, and is offered from ``u[k] + 1`` on.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def _leave(self, m, waiting, storage):
        m.submodules.skid = skid = Fifo(self.o.payload.shape())
        enables, (_, loaded) = elastic_stages(m, waiting, skid.i, stages=2)
        enable, enable_register = enables
        m.d.comb += storage.register_enable.eq(enable_register)
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        return enable, loaded, skid.i.ready, m.d.comb, Const(1), skid.i.payload
