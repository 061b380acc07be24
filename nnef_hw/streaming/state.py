"""States as layers: their operand comes from a layer behind them, a step before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.devices import Device
from nnef_hw.ir import Graph, Node, stream_image
from nnef_hw.parts import Part
from nnef_hw.parts.state import State
from nnef_hw.streaming.layer import Contents, Folding, PlainLayer

__all__ = ["StateLayer", "state_layers"]

LOGIC_CODES = 128
"""Most initial codes that are in LUTs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StateLayer(PlainLayer):
    """A state that begins with ``initial`` codes, in the order of its stream.

    The queue in front of it, of two codes at least, cuts the loop.
    """

    label = "state"
    least_queue: ClassVar[int] = 2

    initial: tuple[int, ...]

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return len(self.initial)

    def part(self, device: Device) -> Part:
        style = "logic" if len(self.initial) <= LOGIC_CODES else "block"
        if len(set(self.initial)) == 1:
            style = "equal"
        return State(count=len(self.initial), ram=device.ram, style=style, **self.codes_format)

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {"state": {"codes": list(self.initial)}}


def state_layers(graph: Graph, streams: Mapping[str, str]) -> list[StateLayer]:
    """Return the states of a fixed graph as layers.

    Parameters
    ----------
    streams
        Names of the streams that tensors come in.
    """
    layers = []
    for name, state in graph.states.items():
        tensor = graph.tensor(name)
        assert tensor.qtype is not None
        height, width, channels = stream_image(tensor.shape)
        codes = state.initial.reshape(channels, height, width).transpose(1, 2, 0)
        node = Node("update", (state.result,), (name,), location=tensor.location)
        layers.append(
            StateLayer(
                name=name, node=node, sources=(streams[state.result],), source=tensor.qtype,
                target=tensor.qtype, initial=tuple(codes.reshape(-1).tolist()),
            )
        )  # fmt: skip
    return layers
