# amaranth: UnusedElaboratable=no
"""The accelerator and MLPerf Tiny's protocol: everything on a board but pins and clock."""

from functools import partial

from amaranth import *
from amaranth.lib import wiring

from nnef_hw.boards.hardware.mlperf.engine import RunEngine
from nnef_hw.boards.hardware.mlperf.program import Condition, runner_program
from nnef_hw.boards.hardware.mlperf.sequencer import Sequencer
from nnef_hw.boards.hardware.phy import PinnedCore, refuse_more
from nnef_hw.rtl.base.reset import WithReset

__all__ = ["RunnerCore"]


class RunnerCore(PinnedCore):
    """Answer MLPerf Tiny's runner: keep an input, run it as often as it asks, print the result.

    An inference begins when the one before has ended, as in the benchmark's own harness. What is
    printed, and how an input's bytes become codes, is the link's, see
    :class:`nnef_hw.boards.interfaces.mlperf.Mlperf`. The clock of microseconds stands still
    while it is printed, so that the time between the two of ``infer`` is that of the inferences.

    Parameters
    ----------
    accelerator : wiring.Component
        As in :class:`.LinkedCore`, with one input and one output.
    clk_hz : int
        Clock of everything.
    link : Mlperf
        Bound to the network.
    frames : Mapping[str, int]
        Beats of a frame per stream of the accelerator.
    long_wires : bool
        As in :class:`.LinkedCore`.
    manifest_hash : bytes
        Nobody asks for it.
    others
        Arguments of :class:`.LinkedCore` that have to be its defaults here.

    Members
    -------
    rx, tx
        Wires from and to the host.
    reset : In(1)
        Start over.
    led : Out(1)
        High while a frame is inside the accelerator.
    flash_cs_n, ...
        What goes to the pads of memories, if the accelerator has ``pads``.

    Attributes
    ----------
    latency : int
        Cycles from the beginning of a command's last byte on the wires until it is looked at.

    Raises
    ------
    TargetError
        If the host would have to fill the accelerator's memory.
    """

    has_own_clock = False
    """Whether the accelerator has another clock: the board tells the time by it."""

    def __init__(
        self, accelerator, *, clk_hz, link, frames, long_wires=False, manifest_hash=b"", **others
    ):
        if list(frames) != ["i", "o"]:
            raise ValueError(f"the protocol carries one input and one output, not {list(frames)}")
        refuse_more(accelerator, others, there_is="the protocol has",
                    nobody_fills="the link mlperf cannot fill")
        self.long_wires = long_wires
        self.phy = link.hardware_class()(**link.parameters(clk_hz))
        super().__init__(accelerator, [(link, self.phy)])
        facts = link.facts(clk_hz)
        self.engine = RunEngine(
            accelerator.i.payload.shape(), accelerator.o.payload.shape(), facts,
            in_beats=frames["i"], out_beats=frames["o"])
        self.sequencer = Sequencer(runner_program(
            model=facts.model, vendor=facts.vendor, size=facts.formats.size,
            is_distance=facts.formats.distance is not None,
            with_memory=bool(self.pads)))
        self.latency = self.phy.latency + Sequencer.latency

    def elaborate(self, platform):
        m = Module()
        resets = partial(WithReset, reset=self.reset)
        m.submodules.phy = resets(self.phy)
        self._connect_pins(m)
        sequencer = self.sequencer
        m.submodules.sequencer = resets(sequencer)
        wiring.connect(m, self.phy.o, sequencer.i_rx)
        wiring.connect(m, sequencer.o_tx, self.phy.i)
        engine = self.engine
        m.submodules.engine = resets(engine)
        m.d.comb += [
            engine.action.eq(sequencer.action),
            engine.nibble.eq(sequencer.nibble),
            engine.sent.eq(sequencer.sent),
            sequencer.facts.eq(engine.facts),
            sequencer.digit.eq(engine.digit),
            sequencer.time_digit.eq(engine.time_digit),
        ]
        accelerator = self.accelerator
        if self.pads:
            m.d.comb += engine.memory_error.eq(accelerator.memory_error)
        restart = Signal(init=1)
        m.d.sync += restart.eq(self.reset)
        self._add_accelerator(m, restart)
        wiring.connect(m, self._hop(m, resets, "i", engine.o), accelerator.i)
        wiring.connect(m, self._hop(m, resets, "o", accelerator.o), engine.i)
        m.d.comb += self.led.eq(engine.facts[Condition.RUNNING])
        return m

