"""Plan -> the accelerator as one Amaranth component."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.devices import find_device
from nnef_hw.engine.plan import EnginePlan
from nnef_hw.parts.engine import RING_BITS
from nnef_hw.rtl.engine import SharedEngine
from nnef_hw.rtl.reset import WithReset
from nnef_hw.rtl.stream import beat_layout

__all__ = ["EngineAccelerator"]


class EngineAccelerator(wiring.Component):  # type: ignore[misc]
    """The shared engine of a Plan, and what stands between it and the output.

    Golden model: :func:`nnef_hw.reference.run_fixed`.

    Parameters
    ----------
    plan
        The design to build.
    restartable
        Whether it has a reset of its own.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        The input image: row, column, channel.
    o : Out(stream.Signature(beat_layout))
        The output image.
    weights : In(stream.Signature(16))
        Contents of the weight memory over and over, two weights per beat; only if they pass as a
        stream.
    rewind : Out(1)
        All weights of a frame have come; only then.
    restart : In(1)
        Restart, for a cycle or more; only if ``restartable``.
    restarted : Out(1)
        The restart as the engine gets it.
    """

    layers: tuple[Any, ...] = ()

    def __init__(self, plan: EnginePlan, *, restartable: bool = False) -> None:
        self.plan = plan
        self.restartable = restartable
        ports: dict[str, Any] = {}
        for flow, port in ((In, plan.inputs[0]), (Out, plan.outputs[0])):
            layout = beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes)
            ports[port.name] = flow(stream.Signature(layout))
        if plan.design.ring_words:
            ports |= {"weights": In(stream.Signature(RING_BITS)), "rewind": Out(1)}
        if restartable:
            ports |= {"restart": In(1), "restarted": Out(1)}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate and connect the engine."""
        m = Module()
        design = self.plan.design
        network = design.network
        restart = None
        if self.restartable:
            restart = self.restart
            if find_device(self.plan.device).long_wires:
                restart = Signal(name="restart_hop", init=1, reset_less=True)
                m.d.sync += restart.eq(self.restart)
            m.d.comb += self.restarted.eq(restart)
        engine = SharedEngine(
            design.engine, program=design.program, weights=design.weights,
            constants=design.constants, source=(network.input.bits, network.input.signed),
            target=(network.result_bits, network.result_signed), entries=design.entries,
        )  # fmt: skip
        m.submodules.engine = WithReset(engine, restart)
        wiring.connect(m, wiring.flipped(self.i), engine.i)
        if design.ring_words:
            wiring.connect(m, wiring.flipped(self.weights), engine.weights)
            m.d.comb += self.rewind.eq(engine.rewind)
        result = engine.o
        if network.tail is not None:
            part = network.tail.part
            component = part.build(**network.tail.contents)
            m.submodules.tail = WithReset(component, restart)
            [operand] = part.operands(component)
            wiring.connect(m, result, operand)
            result = part.result(component)
        wiring.connect(m, result, wiring.flipped(self.o))
        return m
