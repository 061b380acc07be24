"""Plan and fixed graph -> the accelerator as one Amaranth component."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.hardware.devices import find_device
from nnef_hw.ir import Graph
from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.rtl.base.reset import WithReset, reset_late
from nnef_hw.rtl.streams.fork import Fork
from nnef_hw.rtl.streams.stream import Fifo, beat_layout
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.hardware.layer_module import LayerModule

__all__ = ["Accelerator"]

MOST_HOPS = 64
"""Cycles of a restart: fewer than the host link takes for its next packet.

The last one is that of all parts behind the hop that they share.
"""


class Accelerator(wiring.Component):  # type: ignore[misc]
    """All layers of a Plan, between two skid buffers.

    A stream that several layers read is forked.

    Golden model: :func:`nnef_hw.reference.run_fixed`.

    Parameters
    ----------
    plan, graph
        The design to build, and its fixed graph.
    restartable
        Whether it has a reset of its own, which hops from block to block through registers: wires
        to everything would be the longest of a big device. Nothing may come in until the hops have
        reached the last block; what was inside is lost.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        The input image: row, column, channel block. If there are several inputs, each has a port of
        its own, with the name in the Plan.
    o : Out(stream.Signature(beat_layout))
        The output image; ports as for inputs. One that is not read stops the others after a while.
    restart : In(1)
        Restart, for a cycle or more; only if ``restartable``.
    restarted : Out(1)
        The restart of the last block, when it has reached all its parts.
    busy, waiting : Out(len(plan.blocks))
        With ``counted``: whether each block takes a word in this cycle; whether one is there and is
        not taken.
    """

    def __init__(
        self, plan: StreamingPlan, graph: Graph, *, restartable: bool = False, counted: bool = False
    ) -> None:
        self.plan = plan
        self.counted = counted
        graph = plan.graph_of(graph)
        self.beats = {
            source.tensor: graph.tensor(source.tensor).volume // block.layer.operand_lanes
            for block in plan.blocks
            for source in block.sources
        }
        self.device = find_device(plan.device)
        ports: dict[str, Hardware] = {}
        if counted:
            ports = {name: Out(len(plan.blocks)) for name in ("busy", "waiting")}
        for flow, port in (
            *((In, port) for port in plan.inputs), *((Out, port) for port in plan.outputs)
        ):  # fmt: skip
            layout = beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes)
            ports[port.name] = flow(stream.Signature(layout))
        self.restartable = restartable
        self.resets_late = restartable and self.device.long_wires
        if restartable:
            ports |= {"restart": In(1), "restarted": Out(1)}
        super().__init__(ports)

    @cached_property
    def layers(self) -> list[LayerModule]:
        """The layers, in stream order."""
        return [
            LayerModule(
                block,
                tuple(self.beats[source.tensor] for source in block.sources),
                counted=self.counted,
                resets_late=self.resets_late,
            )
            for block in self.plan.blocks
        ]

    def elaborate(self, platform: Hardware) -> Module:
        """Instantiate and connect the layers."""
        m = Module()
        plan = self.plan
        readers = Counter(source.tensor for block in plan.blocks for source in block.sources)
        readers.update(port.tensor for port in plan.outputs)
        streams: dict[str, list[Hardware]] = {}
        restart = self.restart if self.restartable else None
        every = -(-len(plan.blocks) // (MOST_HOPS - 1))
        loops: list[tuple[str, Hardware]] = []
        # A state gives nothing before a restart has reached whatever reads it.
        restarting = Signal()
        hops = [restart]

        def insert(name: str, component: Hardware) -> None:
            """Add a component that the nearest restart reaches."""
            m.submodules[name] = (
                reset_late(m, platform, component, restart, name=name)
                if self.resets_late
                else WithReset(component, restart)
            )

        def give(tensor: str, result: Hardware, name: str) -> None:
            """Make a stream known by its name, once for every reader."""
            streams[tensor] = [result]
            if readers[tensor] > 1:
                fork = Fork(result.payload.shape(), branches=readers[tensor])
                insert(f"{name}_fork", fork)
                wiring.connect(m, result, fork.i)
                streams[tensor] = [getattr(fork, f"o{n}") for n in range(readers[tensor])]

        for port in plan.inputs:
            name, outside = f"input{port.name[1:]}", getattr(self, port.name)
            insert(f"{name}_skid", skid := Fifo(outside.payload.shape()))
            wiring.connect(m, wiring.flipped(outside), skid.i)
            give(port.tensor, skid.o, name)
        for n, block in enumerate(plan.blocks):
            name = block.instance
            if restart is not None and self.resets_late and n % every == 0:
                hop = Signal(name=f"restart{n}", init=1, reset_less=True)
                m.d.sync += hop.eq(restart)
                hops.append(restart := hop)
            layer = self.layers[n]
            reset = restarting if block.leads and self.restartable else restart
            m.submodules[name] = WithReset(layer, reset)
            operands = [getattr(layer, operand) for operand in layer.operands]
            for source, operand in zip(block.sources, operands, strict=True):
                if block.closes_loop:
                    loops.append((source.tensor, operand))
                else:
                    wiring.connect(m, streams[source.tensor].pop(), operand)
            if self.counted:
                m.d.comb += [self.busy[n].eq(layer.busy), self.waiting[n].eq(layer.waiting)]
            give(block.tensor, layer.o, name)
        for tensor, operand in loops:
            wiring.connect(m, streams[tensor].pop(), operand)
        for port in plan.outputs:
            outside = getattr(self, port.name)
            insert(f"output{port.name[1:]}_skid", skid := Fifo(outside.payload.shape()))
            wiring.connect(m, streams[port.tensor].pop(), skid.i)
            wiring.connect(m, skid.o, wiring.flipped(outside))
        if restart is not None:
            domain = m.d.sync if self.resets_late else m.d.comb
            domain += self.restarted.eq(restart)
            if any(block.leads for block in plan.blocks):
                m.d.comb += restarting.eq(Cat(*hops).any())
        return m
