# amaranth: UnusedElaboratable=no
"""Accelerator with its host link: everything on a board but pins and clock."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.beats import BeatSerializer, beat_bytes
from nnef_hw.boards.counters import InferenceCounters
from nnef_hw.boards.link import PacketLink
from nnef_hw.boards.phy import MIN_BYTE_CYCLES, UartPhy, phy_pins
from nnef_hw.boards.protocol import identity_payload
from nnef_hw.boards.replay import Replayer
from nnef_hw.boards.uart import uart_divider

__all__ = ["DEFAULT_BAUD", "LinkedCore"]

DEFAULT_BAUD = 1_000_000
IDLE_SECONDS = 0.01


class LinkedCore(wiring.Component):
    """Serve an accelerator to a host over a few wires, by the protocol of docs/protocol.md.

    This is what is simulated when a board is: the board's top adds only the clock and the reset.

    Parameters
    ----------
    accelerator : wiring.Component
        Has an input stream ``i`` and an output stream ``o`` of ``StructLayout({"data":
        ArrayLayout(codes, lanes), "last": 1})``. Every session restarts it: by ``restart`` and
        ``restarted``, if it has them as :class:`~nnef_hw.codegen.accelerator.Accelerator` does.
    clk_hz : int
        Clock of everything.
    baud : int
        Rate of the UART.
    phy : wiring.Component or None
        What is between the wires and the bytes, see :mod:`.phy`; by default a UART.
    manifest_hash : bytes
        The 32 bytes by which a host recognises the build.
    frame_beats : int or None
        Beats of one input frame; without it the link refuses ``REPLAY``.
    idle_cycles : int or None
        Silence after which an unfinished packet is forgotten, a power of two; by default the
        first one that lasts 10 ms or more.

    Members
    -------
    rx, tx, or the pins of another phy
        From and to the host.
    reset : In(1)
        Start over; the link then restarts the accelerator too.
    led : Out(1)
        High while a frame is inside the accelerator.

    Attributes
    ----------
    latency : int
        Cycles from the beginning of a request's last byte on the wires to the reply's first byte.
    """

    def __init__(
        self, accelerator, *, clk_hz, baud=DEFAULT_BAUD, phy=None, manifest_hash,
        frame_beats=None, idle_cycles=None,
    ):
        self.accelerator = accelerator
        self.frame_beats = frame_beats
        self.phy = phy or UartPhy(uart_divider(clk_hz, baud))
        if self.phy.byte_cycles < MIN_BYTE_CYCLES:
            raise ValueError(f"a byte of the phy takes {self.phy.byte_cycles} cycles, under "
                             f"{MIN_BYTE_CYCLES}")
        self.in_layout = accelerator.i.payload.shape()
        self.out_layout = accelerator.o.payload.shape()
        self.identity = identity_payload(
            clk_hz=clk_hz, manifest_hash=manifest_hash,
            in_bytes=beat_bytes(self.in_layout), out_bytes=beat_bytes(self.out_layout))
        if idle_cycles is None:
            idle_cycles = 1 << (int(clk_hz * IDLE_SECONDS) - 1).bit_length()
        if idle_cycles <= 2 * self.phy.byte_cycles:
            raise ValueError(f"idle_cycles of {idle_cycles} is no more than two bytes on the line")
        self.idle_cycles = idle_cycles
        self.latency = self.phy.latency + PacketLink.latency + 1
        super().__init__({"reset": In(1), **phy_pins(self.phy), "led": Out(1)})

    def elaborate(self, platform):
        m = Module()
        phy = self.phy
        link = PacketLink(
            self.in_layout, identity=self.identity, idle_cycles=self.idle_cycles,
            with_replay=self.frame_beats is not None)
        start = ResetInserter(self.reset)
        m.submodules.phy = start(phy)
        m.submodules.link = start(link)
        for name, member in phy_pins(phy).items():
            inner, outer = getattr(phy, name), getattr(self, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        wiring.connect(m, phy.o, link.i_rx)
        wiring.connect(m, link.o_tx, phy.i)

        accelerator, serializer = self.accelerator, BeatSerializer(self.out_layout)
        if "restart" in accelerator.signature.members:
            m.submodules.accelerator = accelerator
            m.d.comb += [
                accelerator.restart.eq(link.abort),
                link.restarted.eq(accelerator.restarted),
            ]
        else:
            m.submodules.accelerator = ResetInserter(link.abort)(accelerator)
            m.d.comb += link.restarted.eq(link.abort)
        restart = ResetInserter(link.restarted)
        m.submodules.serializer = restart(serializer)
        counters = InferenceCounters()
        m.submodules.counters = restart(counters)
        if self.frame_beats is None:
            wiring.connect(m, link.o, accelerator.i)
            wiring.connect(m, accelerator.o, serializer.i)
        else:
            replayer = Replayer(self.in_layout, frame_beats=self.frame_beats)
            m.submodules.replayer = ResetInserter(link.abort)(replayer)
            wiring.connect(m, link.o, replayer.i)
            wiring.connect(m, replayer.o, accelerator.i)
            m.d.comb += [
                replayer.start.eq(link.replay),
                replayer.count.eq(link.replay_count),
                replayer.inside.eq(counters.busy),
                link.working.eq(replayer.busy | counters.busy),
                link.replaying.eq(replayer.busy),
                serializer.i.payload.eq(accelerator.o.payload),
                serializer.i.valid.eq(accelerator.o.valid & ~replayer.busy),
                accelerator.o.ready.eq(serializer.i.ready | replayer.busy),
            ]
        wiring.connect(m, serializer.o, link.i_result)

        m.d.comb += [
            counters.input_taken.eq(accelerator.i.valid & accelerator.i.ready),
            counters.input_last.eq(accelerator.i.p.last),
            counters.output_taken.eq(accelerator.o.valid & accelerator.o.ready),
            counters.output_last.eq(accelerator.o.p.last),
            link.counts.eq(counters.counts),
            self.led.eq(counters.busy),
        ]
        return m
