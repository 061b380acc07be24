"""The Plan: which hardware runs which layer, with which folding, and the cycles that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from nnef_hw.architecture.architecture import Port
from nnef_hw.architecture.stored import StoredImage
from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.hardware.devices import Device, Resources, find_device
from nnef_hw.ir import Graph
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.siblings import apart
from nnef_hw.streaming.layers.layer import AnyLayer, Folding

__all__ = ["LayerGraph", "StreamingPlan"]


@dataclass(frozen=True, slots=True, eq=False)
class LayerGraph:
    """All layers in an order in which each follows those it reads, and the ports at the border.

    States come first: what they read is of the frame before. A layer's ``sources`` are names of
    streams: that of an input, or of another layer, which gives its name to what it computes.
    Reshapes at the borders of the graph are left to the host. ``images`` are (height, width,
    channels) of every stream. ``clock_mhz`` is what layers are to reach, if that is known.
    """

    layers: tuple[AnyLayer, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    images: Mapping[str, tuple[int, int, int]]
    clock_mhz: float | None = None

    def widened(self, lanes: Mapping[str, int]) -> LayerGraph:
        """Return the graph with streams of so many codes per beat, one where none is said.

        What a layer reads has the same number everywhere. A layer with the same numbers is the same
        one every time, so that its options are.
        """
        clock = self.clock_mhz
        layers = tuple(
            _widened(layer, lanes.get(layer.sources[0], 1), lanes.get(layer.tensor, 1), clock)
            for layer in self.layers
        )
        inputs, outputs = (
            tuple(replace(port, lanes=lanes.get(port.tensor, 1)) for port in ports)
            for ports in (self.inputs, self.outputs)
        )
        return replace(self, layers=layers, inputs=inputs, outputs=outputs)

    def at_clock(self, clock_mhz: float) -> LayerGraph:
        """Return the graph whose wider streams are to reach a clock, the same one every time."""
        return _at_clock(self, clock_mhz)


@lru_cache(maxsize=256)
def _widened(
    layer: AnyLayer, operand_lanes: int, result_lanes: int, clock_mhz: float | None
) -> AnyLayer:
    return layer.widened(operand_lanes, result_lanes, clock_mhz)


@lru_cache(maxsize=16)
def _at_clock(network: LayerGraph, clock_mhz: float) -> LayerGraph:
    return replace(network, clock_mhz=clock_mhz)


@dataclass(frozen=True, slots=True)
class StreamingPlan:
    """A scheduled accelerator.

    Parameters
    ----------
    model, board, device
        Names.
    clock_mhz
        Clock the board gives it.
    inputs, outputs
        Its streams, in the order of the graph.
    blocks
        The blocks in stream order.
    interval, latency
        Predicted cycles per result in steady state, and from the first beat of any input to
        the last one of all outputs, of a frame in an empty pipeline.
    link
        Resources of the host link.
    layer_counters
        Whether the board counts what every block does.
    period, settling
        In steady state results come in a pattern of so many frames, whose mean, rounded up, is
        ``interval``. It begins after so many frames; None if after more than were simulated.
    apart
        Whether gates of recurrent cells are layers of their own (:func:`siblings.apart`).
    """

    model: str
    board: str
    device: str
    clock_mhz: float
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    blocks: tuple[Block, ...]
    interval: int
    latency: int
    link: Resources
    layer_counters: bool = False

    images: ClassVar[tuple[StoredImage, ...]] = ()
    loaded: ClassVar[None] = None
    """What memories beside the FPGA hold for it: nothing."""
    batch: ClassVar[int] = 1
    """Frames that it has to take before it gives a result."""
    period: int = 1
    settling: int | None = 0
    arch: str = "streaming"
    apart: bool = False

    @property
    def lanes(self) -> Mapping[str, int]:
        """Codes per beat of the streams that have several, by name."""
        lanes = {port.tensor: port.lanes for port in self.inputs}
        lanes |= {block.tensor: block.layer.result_lanes for block in self.blocks}
        return {tensor: count for tensor, count in lanes.items() if count > 1}

    @property
    def stations(self) -> tuple[Block, ...]:
        """The blocks, as reports ask for them."""
        return self.blocks

    def graph_of(self, graph: Graph) -> Graph:
        """Return the form of a fixed graph whose layers it has."""
        return apart(graph) if self.apart else graph

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame."""
        return sum(block.macs for block in self.blocks)

    @property
    def multipliers(self) -> int:
        """Multipliers built for multiply-accumulates."""
        return sum(block.multipliers for block in self.blocks)

    @property
    def mac_utilization(self) -> float:
        """``macs / (interval * multipliers)``; 0 for a network without multiplications."""
        return self.macs / (self.interval * self.multipliers) if self.multipliers else 0.0

    @property
    def resources(self) -> Resources:
        """Estimate of the whole design with its host link."""
        return sum((block.resources for block in self.blocks), self.link)

    def to_json(self) -> JsonObject:
        """Plain JSON values: of blocks what was chosen, by the name of the layer."""
        return {
            "model": self.model,
            "board": self.board,
            "device": self.device,
            "arch": self.arch,
            "clock_mhz": self.clock_mhz,
            "interval": self.interval,
            "latency": self.latency,
            "period": self.period,
            "settling": self.settling,
            "layer_counters": self.layer_counters,
            "apart": self.apart,
            "link": self.link.to_json(),
            "lanes": dict(self.lanes),
            "layers": {
                block.name: {**block.folding.to_json(), "fifos": list(block.fifos)}
                for block in self.blocks
            },
        }

    def dumps(self) -> str:
        """Return the text of ``plan.json``."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, value: JsonObject, network: LayerGraph) -> StreamingPlan:
        """Inverse of :meth:`to_json`, for the layers of the fixed graph that was planned.

        Raises
        ------
        ValueError
            If it is not a plan of these layers.
        """
        chosen = value["layers"]
        if chosen.keys() != {layer.name for layer in network.layers}:
            raise ValueError(
                f"the plan has layers {sorted(chosen)}, which are not the layers of the model"
            )
        device = find_device(value["device"])
        network = network.widened(value["lanes"])
        blocks = tuple(_block(layer, chosen[layer.name], device) for layer in network.layers)
        return cls(
            model=value["model"],
            board=value["board"],
            device=value["device"],
            arch=value["arch"],
            clock_mhz=value["clock_mhz"],
            inputs=network.inputs,
            outputs=network.outputs,
            blocks=blocks,
            interval=value["interval"],
            latency=value["latency"],
            period=value["period"],
            settling=value["settling"],
            link=Resources(**value["link"]),
            layer_counters=value["layer_counters"],
            apart=value["apart"],
        )


def _block(layer: AnyLayer, value: JsonObject, device: Device) -> Block:
    chosen = {key: item for key, item in value.items() if key != "fifos"}
    if len(value["fifos"]) != len(layer.sources):
        raise ValueError(f"layer {layer.name!r} has {len(layer.sources)} operands")
    block = Block.of(layer, Folding.from_json(chosen), device)
    return block.with_fifos(value["fifos"])
