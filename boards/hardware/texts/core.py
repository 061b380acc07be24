# amaranth: UnusedElaboratable=no
"""The accelerator and a line of texts: everything on a board but pins and clock."""

from functools import partial

from amaranth import *
from amaranth.lib import wiring

from nnef_hw.boards.hardware.crc import SerialCrc
from nnef_hw.boards.hardware.phy import PinnedCore, refuse_more
from nnef_hw.boards.hardware.tokens.writer import TextWriter
from nnef_hw.host.protocol import LINE_ANSWER, LINE_HASH_BYTES
from nnef_hw.rtl.base.reset import WithReset

__all__ = ["TextCore"]

IDLE_SECONDS = 0.05
"""Silence of a host at least behind which an unfinished text is forgotten."""


class TextCore(PinnedCore):
    """Let an accelerator write texts that come over two wires, by docs/protocol.md, section 9.

    Parameters
    ----------
    accelerator : wiring.Component
        As in :class:`.LinkedCore`. Every text restarts it.
    clk_hz : int
        Clock of everything.
    link : TextLine
    loop : ChipLoop
        The streams that are fed and taken. What comes from other outputs is dropped.
    frames : Mapping[str, int]
        Beats of a frame per stream of the accelerator.
    manifest_hash : bytes
        Hash by whose first bytes a host recognises the build.
    long_wires : bool
        As in :class:`.LinkedCore`.
    idle_cycles : int or None
        Silence after which an unfinished text is forgotten, a power of two; by default the first
        one that lasts 50 ms or more.
    others
        Arguments of :class:`.LinkedCore` that have to be its defaults here.

    Members
    -------
    rx, tx
        Wires from and to the host.
    reset : In(1)
        Start over.
    led : Out(1)
        High while a text is written.
    flash_cs_n, ...
        What goes to the pads of memories, if the accelerator has ``pads``.

    Attributes
    ----------
    latency : int
        Cycles from the beginning of a head's last byte on the wires until the answer begins.

    Raises
    ------
    TargetError
        If the host would have to fill the accelerator's memory.
    """

    has_own_clock = False

    def __init__(
        self, accelerator, *, clk_hz, link, loop, frames, manifest_hash, long_wires=False,
        idle_cycles=None, **others
    ):
        refuse_more(accelerator, others, there_is="a line of texts has",
                    nobody_fills=f"the {link.title} cannot fill")
        self.loop, self.long_wires = loop, long_wires
        inputs = {name for name in frames if name[0] == "i"}
        if loop is None or set(loop.inputs) != inputs:
            raise ValueError(f"a line of texts needs a loop that feeds {sorted(inputs)}")
        self.outputs = [name for name in frames if name[0] == "o"]
        self.phy = link.hardware_class()(**link.parameters(clk_hz))
        self.hash = bytes(manifest_hash)[:LINE_HASH_BYTES]
        self.idle_cycles = idle_cycles or 1 << (int(clk_hz * IDLE_SECONDS) - 1).bit_length()
        is_short = self.idle_cycles <= 2 * self.phy.byte_cycles
        if self.idle_cycles & (self.idle_cycles - 1) or is_short:
            raise ValueError("idle_cycles must be a power of two beyond two bytes on the line, not "
                             f"{self.idle_cycles}")
        self.latency = self.phy.latency + 2
        self.layouts = {name: getattr(accelerator, name).payload.shape() for name in frames}
        super().__init__(accelerator, [(link, self.phy)])

    def elaborate(self, platform):
        m = Module()
        resets = partial(WithReset, reset=self.reset)
        m.submodules.phy = resets(self.phy)
        phy = self.phy
        self._connect_pins(m)
        accelerator = self.accelerator
        writer = TextWriter(self.loop, self.layouts, is_plain=True)
        m.submodules.writer = writer
        m.submodules.crc = crc = SerialCrc()

        # A text begins with its first byte, or is forgotten.
        forget, restart = Signal(init=1), Signal(init=1)
        taken = Signal()
        m.d.comb += taken.eq(phy.o.valid & writer.i.ready)
        m.d.sync += restart.eq(forget | taken & writer.fresh)
        m.d.comb += writer.restarted.eq(self._add_accelerator(m, restart))
        idle = Signal(range(self.idle_cycles + 1))
        m.d.sync += [
            idle.eq(Mux(phy.o.valid | writer.fresh | ~writer.i.ready, 0, idle + 1)),
            forget.eq(idle[-1] | self.reset),
        ]
        if self.pads:
            # Without its memory a board does not answer.
            m.d.comb += writer.restart.eq(forget | accelerator.memory_error)
        else:
            m.d.comb += writer.restart.eq(forget)

        # What nobody waits for is lost.
        m.d.comb += [
            phy.o.ready.eq(1),
            writer.i.valid.eq(phy.o.valid),
            writer.i.p.data[0].eq(phy.o.payload),
            crc.start.eq(writer.fresh),
            crc.i.valid.eq(taken & ~writer.prompted),
            crc.i.payload.eq(phy.o.payload),
            self.led.eq(writer.busy),
        ]
        self._answer(m, writer, crc)
        for name in self.loop.inputs:
            wiring.connect(m, self._hop(m, resets, name, getattr(writer, self._port(name))),
                           getattr(accelerator, name))
        for name in self.outputs:
            given = getattr(accelerator, name)
            if name == self.loop.scores:
                wiring.connect(m, self._hop(m, resets, name, given), writer.i_scores)
            else:
                m.d.comb += given.ready.eq(1)
        return m

    def _port(self, name):
        """Return the writer's port for an input of the accelerator."""
        return "o_token" if name == self.loop.token else "o_position"

    def _answer(self, m, writer, crc):
        """Send the build's hash and the checksum behind a head, tokens behind that."""
        phy = self.phy
        answer = Cat(Const(int.from_bytes(self.hash, "little"), 8 * LINE_HASH_BYTES),
                     crc.crc[8:], crc.crc[:8])
        index, answering = Signal(range(LINE_ANSWER.size)), Signal()
        m.d.comb += [
            phy.i.payload.eq(Mux(answering, answer.word_select(index, 8), writer.o.payload)),
            phy.i.valid.eq(answering | writer.o.valid),
            writer.o.ready.eq(phy.i.ready & ~answering),
        ]
        with m.If(answering & phy.i.ready):
            m.d.sync += index.eq(index + 1)
            with m.If(index == LINE_ANSWER.size - 1):
                m.d.sync += answering.eq(0)
        with m.If(writer.headed):
            m.d.sync += [answering.eq(1), index.eq(0)]
