# amaranth: UnusedElaboratable=no
"""The accelerator between sensors and sinks, without a host: all on a board but pins and clock."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw.boards.hardware.phy import PinnedCore, refuse_more
from nnef_hw.errors import TargetError
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.streams.fork import Fork

__all__ = ["LoneCore"]


class LoneCore(PinnedCore):
    """Let sensors feed an accelerator, and sinks take its results: nobody else takes part.

    Parameters
    ----------
    accelerator : wiring.Component
        As in :class:`.LinkedCore`.
    clk_hz : int
        Clock of everything.
    link : NoLink
    sources, sinks
        As in :class:`.LinkedCore`: a source for each input. What comes from an output without a
        sink is dropped.
    frames : Mapping[str, int]
        Beats of a frame per stream of the accelerator.
    manifest_hash : bytes
        Nobody asks for it.
    others
        Arguments of :class:`.LinkedCore` that have to be its defaults here.

    Members
    -------
    pins of sources and sinks
        Wires.
    reset : In(1)
        Start over.
    led : Out(1)
        High as soon as a sensor has lost something, or a memory has not what it should.
    flash_cs_n, ...
        What goes to the pads of memories, and of wires that sources and sinks pull low.

    Raises
    ------
    TargetError
        If an input has no source, or the host would have to fill the accelerator's memory.
    """

    has_own_clock = False
    latency = 0

    def __init__(
        self, accelerator, *, clk_hz, link, sources, sinks, frames, manifest_hash=b"",
        long_wires=False, queues=None, **others
    ):
        refuse_more(accelerator, others, there_is="without a host there is",
                    nobody_fills="without a link nobody fills")
        self.outputs = [name for name in frames if name[0] == "o"]
        lone = [name for name in frames if name[0] == "i" and name not in sources]
        if lone:
            raise TargetError(
                f"without a link nobody feeds {len(lone)} of the network's inputs",
                remedy="give each a --source, or use --link uart")
        super().__init__(accelerator, self._make_ends(accelerator, clk_hz, sources, sinks))

    def elaborate(self, platform):
        m = Module()
        self._connect_pins(m)
        accelerator = self.accelerator
        restart = Signal(init=1)
        m.d.sync += restart.eq(self.reset)
        self._add_accelerator(m, restart)
        for name, source in self.sources.items():
            m.submodules[f"{name}_source"] = WithReset(source, restart)
            wiring.connect(m, source.o, getattr(accelerator, name))
            if "inside" in source.signature.members:
                m.d.comb += source.inside.eq(self._inside(m, name))
        for name in self.outputs:
            self._take(m, name, getattr(accelerator, name), restart)
        wrong = [source.lost.any() for source in self.losing]
        wrong += [accelerator.memory_error] if self.pads else []
        with m.If(Cat(wrong).any()):
            m.d.sync += self.led.eq(1)
        with m.If(restart):
            m.d.sync += self.led.eq(0)
        return m

    def _inside(self, m, name):
        """Return whether a frame of an input is in the accelerator."""
        inside = Signal(name=f"{name}_inside")
        given = getattr(self.accelerator, name)
        result = getattr(self.accelerator, self.outputs[-1])
        with m.If(result.valid & result.ready & result.p.last):
            m.d.sync += inside.eq(0)
        with m.If(given.valid & given.ready):
            m.d.sync += inside.eq(1)
        return inside

    def _take(self, m, name, result, restart):
        """Give results to all sinks of an output."""
        sinks = self.sinks.get(name, [])
        for n, sink in enumerate(sinks):
            m.submodules[f"{name}_sink{n}"] = WithReset(sink, restart)
        if not sinks:
            m.d.comb += result.ready.eq(1)
        elif len(sinks) == 1:
            wiring.connect(m, result, sinks[0].i)
        else:
            fork = Fork(result.payload.shape(), branches=len(sinks))
            m.submodules[f"{name}_fork"] = WithReset(fork, restart)
            wiring.connect(m, result, fork.i)
            for n, sink in enumerate(sinks):
                wiring.connect(m, getattr(fork, f"o{n}"), sink.i)
