"""Plan and fixed graph -> the accelerator as one Amaranth component."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.codegen.blocks import connect_block
from nnef_hw.devices import find_device
from nnef_hw.ir import Graph
from nnef_hw.rtl.fifo import BlockFifo
from nnef_hw.rtl.fork import Fork
from nnef_hw.rtl.stream import Fifo, beat_layout
from nnef_hw.schedule import Plan, Source, lower
from nnef_hw.schedule.plan import SHALLOW_FIFO
from nnef_hw.schedule.support import image_shape

__all__ = ["Accelerator", "module_name"]


def module_name(layer: str) -> str:
    """Verilog identifier for a layer's name."""
    name = re.sub(r"\W", "_", layer)
    return name if re.match(r"[A-Za-z_]", name) else f"layer_{name}"


class Accelerator(wiring.Component):  # type: ignore[misc]
    """All blocks of a Plan, between two skid buffers.

    A stream that several blocks read is forked; a block with several operands has a FIFO where one
    of them comes early.

    Golden model: :func:`nnef_hw.reference.run_fixed`.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        The input image: row, column, channel.
    o : Out(stream.Signature(beat_layout))
        The output image.
    """

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan = plan
        self.network = lower(graph)
        self.beats = {
            source.tensor: math.prod(image_shape(graph.tensor(source.tensor).shape) or ())
            for block in plan.blocks
            for source in block.sources
        }
        self.device = find_device(plan.device)
        ports = {}
        for name, flow, port in (("i", In, plan.input), ("o", Out, plan.output)):
            layout = beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes)
            ports[name] = flow(stream.Signature(layout))
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate and connect the blocks."""
        m = Module()
        plan = self.plan
        readers = Counter(source.tensor for block in plan.blocks for source in block.sources)
        readers[plan.output.tensor] += 1
        streams: dict[str, list[Any]] = {}

        def give(tensor: str, result: Any, name: str) -> None:
            """Make a stream known by its name, once for every reader."""
            streams[tensor] = [result]
            if readers[tensor] > 1:
                m.submodules[f"{name}_fork"] = fork = Fork(
                    result.payload.shape(), branches=readers[tensor]
                )
                wiring.connect(m, result, fork.i)
                streams[tensor] = [getattr(fork, f"o{n}") for n in range(readers[tensor])]

        m.submodules.input_skid = skid = Fifo(self.i.payload.shape())
        wiring.connect(m, wiring.flipped(self.i), skid.i)
        give(plan.input.tensor, skid.o, "input")
        for block, layer in zip(plan.blocks, self.network.layers, strict=True):
            name = module_name(block.name)
            operands = [
                self._operand(m, f"{name}_fifo{n}", streams[source.tensor].pop(), source)
                for n, source in enumerate(block.sources)
            ]
            give(block.tensor, connect_block(m, name, block, layer, self.device, operands), name)
        m.submodules.output_skid = skid = Fifo(self.o.payload.shape())
        wiring.connect(m, streams[plan.output.tensor].pop(), skid.i)
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        return m

    def _operand(self, m: Module, name: str, origin: Any, source: Source) -> Any:
        """Put the FIFO in front of an operand that has one."""
        if not source.depth:
            return origin
        if source.depth <= SHALLOW_FIFO:
            m.submodules[name] = queue = Fifo(origin.payload.shape(), depth=source.depth)
            wiring.connect(m, origin, queue.i)
            return queue.o
        [code] = origin.payload.data
        fifo = BlockFifo(
            bits=len(code), signed=code.shape().signed, lanes=1, frame=self.beats[source.tensor],
            depth=source.depth, ram=self.device.ram,
        )  # fmt: skip
        m.submodules[name] = fifo
        wiring.connect(m, origin, fifo.i)
        return fifo.o
