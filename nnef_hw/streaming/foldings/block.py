"""A layer with a folding: its parts, FIFOs, resources and cycles all follow from that."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.ir import Graph, stream_image
from nnef_hw.parts import Part, WindowPart
from nnef_hw.parts.streams.fifo import BlockFifo
from nnef_hw.parts.streams.stream import Fifo, make_fifo
from nnef_hw.streaming.layers.layer import AnyLayer, Folding

__all__ = ["Block", "Operand"]


@dataclass(frozen=True, slots=True)
class Operand:
    """Where a block's operand comes from.

    Parameters
    ----------
    tensor
        Name of the stream: the input's, or of the tensor that another block computes.
    depth
        Items of the FIFO in front of the block; 0 without one.
    """

    tensor: str
    depth: int = 0


@dataclass(frozen=True, kw_only=True)
class Block:
    """The hardware of one layer.

    Parameters
    ----------
    layer, folding, device
        What it computes, how it is folded, and onto what.
    fifos
        Items of the FIFO in front of every operand, 0 without one.
    """

    layer: AnyLayer
    folding: Folding
    device: Device
    fifos: tuple[int, ...]

    @classmethod
    def of(cls, layer: AnyLayer, folding: Folding, device: Device) -> Block:
        """Return a block without FIFOs, but for those that it cannot be without."""
        fifos = (layer.least_queue(device),) * len(layer.sources)
        return cls(layer=layer, folding=folding, device=device, fifos=fifos)

    def with_fifos(self, depths: Sequence[int]) -> Block:
        """Return the block with FIFOs of those depths in front of its operands."""
        return replace(self, fifos=tuple(depths))

    def with_folding(self, **choices: Any) -> Block:
        """Return the block with other choices."""
        return replace(self, folding=replace(self.folding, **choices))

    @property
    def name(self) -> str:
        """Name of the layer."""
        return self.layer.name

    @property
    def op(self) -> str:
        """Operator of the model."""
        return self.layer.node.op

    @property
    def kind(self) -> str:
        """The sort of hardware, for reports."""
        return self.layer.kind(self.folding)

    @property
    def tensor(self) -> str:
        """Name of the tensor that the block computes."""
        return self.layer.tensor

    @property
    def sources(self) -> tuple[Operand, ...]:
        """Sources of the block's operands."""
        return tuple(map(Operand, self.layer.sources, self.fifos))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the block, in stream order, without FIFOs."""
        return self.layer.parts(self.folding, self.device)

    @cached_property
    def joins(self) -> int:
        """Number of the part that takes the operands beside the first one."""
        return self.layer.joins(self.parts)

    @property
    def timing(self) -> Hashable:
        """Value equal for all blocks of a layer that move their items in the same cycles."""
        return id(self.layer), self.fifos, tuple(part.timing for part in self.parts)

    @property
    def closes_loop(self) -> bool:
        """Whether operands come from blocks behind this one, a frame later."""
        return self.layer.closes_loop

    @property
    def leads(self) -> bool:
        """Whether the block gives codes of a frame before any is taken: after reset, by itself."""
        return self.layer.leads or (self.buffer is not None and self.buffer.window.leads)

    @property
    def needs_fifos(self) -> bool:
        """Whether FIFOs in front of its operands may be needed for frames to come out."""
        return len(self.fifos) > 1 or self.layer.least_queue(self.device) > 0

    @property
    def buffer(self) -> WindowPart | None:
        """Line buffer of the block."""
        return next((part for part in self.parts if isinstance(part, WindowPart)), None)

    @property
    def worker(self) -> int:
        """Number of the part that takes the words to work on: the one behind the line buffer."""
        buffers = [n for n, part in enumerate(self.parts) if isinstance(part, WindowPart)]
        return buffers[0] + 1 if buffers else 0

    @cached_property
    def cycles(self) -> int:
        """Cycles per frame when it is never starved or blocked."""
        return self.layer.repeats * self.layer.cycles(self.folding, self.device)

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame."""
        return self.layer.repeats * self.layer.macs

    @cached_property
    def multipliers(self) -> int:
        """Multipliers built for them."""
        return sum(part.multipliers for part in self.parts)

    @cached_property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates per cycle while none of its multipliers is idle."""
        return sum(part.macs_per_cycle for part in self.parts)

    @cached_property
    def in_dsp(self) -> int:
        """Number of the multipliers that are in DSP blocks."""
        return self.multipliers - sum(part.in_logic for part in self.parts)

    @property
    def instance(self) -> str:
        """Name of the block's instance in the accelerator: a Verilog identifier."""
        name = re.sub(r"\W", "_", self.name)
        return name if re.match(r"[A-Za-z_]", name) else f"layer_{name}"

    def describe(self, graph: Graph) -> str:
        """Say in a line which operator it runs, on which images, and how it is folded."""
        node = self.layer.node
        parts = [self.op]
        if self.layer.image is not None:
            parts[0] += " " + "x".join(map(str, self.layer.image.kernel))
        shapes = [stream_image(graph.tensor(name).shape) for name in (node.inputs[0], self.tensor)]
        parts.append(" -> ".join("x".join(map(str, shape)) for shape in shapes))
        if node.location is not None:
            # The folders of the file are this machine's, not the model's.
            parts.append(re.sub(r".*[/]", "", str(node.location)))
        if self.multipliers:
            counts = {unit: count for unit, count in self.shape.items() if unit != "lines"}
            factors = " x ".join(f"{count} {unit}" for unit, count in counts.items() if count > 1)
            if self.folding.products_per_multiplier > 1:
                factors += f" by {self.multipliers} multipliers"
            parts.append(f"{factors or '1 multiplier'} in {self._places}")
        return ", ".join([*parts, f"{self.cycles} cycles"])

    @property
    def _places(self) -> str:
        """Say where the block's multipliers are."""
        if not self.in_dsp:
            return "logic"
        if self.in_dsp == self.multipliers:
            return "DSP blocks"
        return f"DSP blocks, {self.multipliers - self.in_dsp} of them in logic"

    @property
    def shape(self) -> dict[str, int]:
        """Shape of the block's multipliers: ``rows``, ``lanes``, ``taps``, ``lines``."""
        return self.folding.shape

    @property
    def missing_words(self) -> int:
        """Words of its line buffer that it waits for each frame, counted with a cycle each."""
        return 0 if self.buffer is None else self.buffer.missing_words

    @property
    def words(self) -> int:
        """Words that come to its line buffer in a frame."""
        return 1 if self.buffer is None else self.buffer.window.words

    @property
    def pass_words(self) -> int:
        """Words of what it takes at once: of a pass, or one code."""
        return 1 if self.buffer is None else self.buffer.pass_words

    @property
    def pause(self) -> int:
        """Most cycles on end in which it takes nothing though nobody waits."""
        return self.buffer.pause if self.buffer else self.layer.pause(self.folding)

    @cached_property
    def resources(self) -> Resources:
        """Estimate; ``dsp``, ``bram`` and ``spram`` are exact."""
        constant = self.layer.constant(self.device)
        components = (*self.parts, constant) if constant is not None else self.parts
        parts = [part.resources(self.device) for part in components]
        fifos = [
            self.fifo(operand).resources(self.device)
            for operand, depth in enumerate(self.fifos)
            if depth
        ]
        return Resources.total((*parts, *fifos))

    def fifo(self, operand: int, frame: int = 1) -> Fifo | BlockFifo:
        """Return the FIFO in front of an operand, of which a frame has so many beats."""
        qtype = self.layer.operand_format(operand)
        return make_fifo(
            qtype.bits, qtype.signed, self.fifos[operand], frame, self.device,
            lanes=self.layer.lanes_of(operand),
        )  # fmt: skip
