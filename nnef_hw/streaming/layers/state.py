"""States as layers: what they read is of a step before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.arithmetic.records import Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Graph, Node, stream_image
from nnef_hw.ir import State as GraphState
from nnef_hw.parts import Part, Split
from nnef_hw.parts import State as StatePart
from nnef_hw.parts.streams.delay import Delay
from nnef_hw.streaming.layers.layer import Contents, Folding, PlainLayer, StreamLayer

__all__ = ["DelayLayer", "StateLayer", "state_layers"]

LOGIC_CODES = 128
"""Most initial codes that are in LUTs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StateLayer(StreamLayer[Folding]):
    """A state that begins with ``initial`` codes, in the order of its stream.

    The queue in front of it, of two codes at least, cuts the loop. That of a loop of several
    ``steps`` drops what the last of them leaves, and begins anew; with the first value of a
    ``begin_steps`` if it is ``begun`` by one, which takes the others from here.
    """

    label = "state"
    closes_loop: ClassVar[bool] = True
    leads: ClassVar[bool] = True
    keeps_lanes: ClassVar[bool] = True

    initial: tuple[int, ...]
    steps: int = 1
    begun: bool = False

    def least_queue(self, device: Device) -> int:
        del device
        return 2

    def foldings(self, device: Device) -> list[Folding]:
        del device
        return [Folding()]

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return (self.steps - self.begun) * len(self.initial) // self.operand_lanes

    def parts(self, folding: Folding, device: Device) -> tuple[Part, ...]:
        del folding
        count = len(self.initial) // self.operand_lanes
        codes: Fields = {
            "bits": self.source.bits, "signed": self.source.signed, "lanes": self.operand_lanes,
        }  # fmt: skip
        style = "logic" if len(self.initial) <= LOGIC_CODES else "block"
        if len(set(self.initial)) == 1:
            style = "equal"
        state = StatePart(count=count, ram=device.ram, style=style, steps=self.steps, **codes)
        if self.steps == 1:
            return (state,)
        runs = ((self.steps - 1) * count, count)
        drop = Split(runs=runs, turns=1, kept=(True, False), **codes)
        return (drop,) if self.begun else (drop, state)

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {"state": {"codes": list(self.initial)}}


@dataclass(frozen=True, eq=False, kw_only=True)
class DelayLayer(PlainLayer):
    """A stream ``count`` codes later, in frames of so many: rows of steps before.

    ``code`` stands for those before the first step. The queue in front of it holds what a branch
    beside it waits for.
    """

    label = "delay"
    leads: ClassVar[bool] = True

    count: int
    frame: int
    code: int

    def least_queue(self, device: Device) -> int:
        del device
        return 2

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.frame

    def part(self, device: Device) -> Part:
        del device
        return Delay(count=self.count, frame=self.frame, code=self.code, **self.codes_format)


def state_layers(
    graph: Graph, states: Mapping[str, GraphState], streams: Mapping[str, str]
) -> list[StateLayer]:
    """Return states of a fixed graph as layers.

    Parameters
    ----------
    states
        Those that are kept in queues.
    streams
        Names of the streams that tensors come in.
    """
    layers = []
    for name, state in states.items():
        tensor = graph.tensor(name)
        assert tensor.qtype is not None
        height, width, channels = stream_image(tensor.shape)
        codes = state.initial.reshape(channels, height, width).transpose(1, 2, 0)
        node = Node("update", (state.result,), (name,), location=tensor.location)
        layers.append(
            StateLayer(
                name=name, node=node, sources=(streams[state.result],), source=tensor.qtype,
                target=tensor.qtype, initial=tuple(codes.reshape(-1).tolist()), steps=state.steps,
                begun=any(
                    reader.op == "begin_steps" and reader.inputs[1] == name
                    for reader in graph.consumers(name)
                ),
            )
        )  # fmt: skip
    return layers
