"""Functions of samples that come and of codes that leave, computed by parts that take a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nnef_hw.architecture.architecture import Port
from nnef_hw.architecture.fronts import check_frames, log_mel_part
from nnef_hw.architecture.kept_rows import find_kept_rows
from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Graph, Node, Stage, StreamOrder, layers, stream_image
from nnef_hw.ir.operators import PerOperator
from nnef_hw.parts.base.part import Part, Pipe
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.functions.argmax import Argmax
from nnef_hw.parts.functions.softmax import SerialSoftmax, Softmax
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax

__all__ = ["Head", "HeadNodes", "Tail", "find_heads", "heads", "tails"]


@dataclass(frozen=True)
class HeadNodes:
    """A front end of an input, and what keeps samples of steps before for it.

    Parameters
    ----------
    node
        The front end.
    kept
        Names of the nodes that only hand samples on, from a step to the next one.
    states
        Names of the states that hold these.
    """

    node: Node
    kept: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Names of all nodes that the part stands for."""
        return self.kept | {self.node.name}


@dataclass(frozen=True, eq=False)
class Head:
    """A front end, as a part between an input and the engine.

    Parameters
    ----------
    node
        The node.
    port
        The input's port, whose beats the part takes.
    begin
        What computes it.
    """

    node: Node
    port: Port
    begin: Begin

    @property
    def name(self) -> str:
        """Name of the layer that the head computes."""
        return self.node.name

    @property
    def part(self) -> Pipe:
        """Part that computes it."""
        return self.begin.part

    @property
    def instance(self) -> str:
        """Name of the head's instance: that of the only one is ``head``."""
        return f"head{self.port.name.removeprefix('i')}"


class Begin(NamedTuple):
    """A part in front of the engine, and what it is filled with.

    Attributes
    ----------
    part, contents
        Part and contents.
    cycles
        Cycles from a frame of the network to the next one.
    """

    part: Pipe
    contents: AttributeMap
    cycles: int


heads = PerOperator[Callable[[layers.Layer, Device, bool], Begin]]("engine head")
"""How nodes of an operator are computed of samples that come; whether these go on is given."""


@heads("log_mel", "log_bands")
def _log_mel(layer: layers.Layer, device: Device, goes_on: bool) -> Begin:
    assert isinstance(layer, layers.LogMelFront)
    check_frames(layer, goes_on=goes_on)
    part = log_mel_part(layer, device, goes_on=goes_on, single_port=device.single_port)
    frames, _, _ = layer.result_image
    first = 0 if goes_on else part.window - part.hop
    return Begin(part, {"requant": layer.requant}, first + frames * part.frame_cycles)


def find_heads(graph: Graph, order: StreamOrder) -> dict[str, HeadNodes]:
    """Return by input the front ends that are computed of its samples as they come.

    Nobody else reads the samples. Formats, which tell whether states are samples in front of
    these, are known of fixed graphs only.
    """
    found = {}
    for name in graph.inputs:
        samples = order.inputs[name].tensor
        readers = graph.consumers(samples)
        if len(readers) != 1 or samples in graph.outputs:
            continue
        [reader] = readers
        if reader.op in heads:
            found[name] = HeadNodes(reader)
        elif (own := _behind_kept(graph, reader)) is not None:
            found[name] = own
    return found


def _behind_kept(graph: Graph, both: Node) -> HeadNodes | None:
    """Return the front end that alone reads samples of steps before and of this one."""
    fronts = [node for node in graph.consumers(both.name) if node.op in heads]
    if len(fronts) != 1 or both.op != "concat":
        return None
    kept = {both.name, *(node.name for node in graph.consumers(both.name))} - {fronts[0].name}
    if graph.stage is Stage.FIXED:
        keeping = find_kept_rows(graph)
        if both.name not in keeping.rows or not kept <= keeping.nodes:
            return None
    states = {name for name in both.inputs if name in graph.states}
    return HeadNodes(fronts[0], frozenset(kept), frozenset(states))


@dataclass(frozen=True, eq=False)
class Tail:
    """The last node, as a part between the engine and the output.

    Parameters
    ----------
    node
        The node.
    part, contents
        What computes it, and what that is filled with.
    """

    node: Node
    part: Part
    contents: AttributeMap

    @classmethod
    def of(cls, layer: layers.Layer, device: Device) -> Tail:
        """Return the tail that computes an integer layer."""
        fields = {
            "channels": stream_image(layer.operands[0].shape)[2], "bits": layer.source.bits,
            "signed": layer.source.signed,
        }  # fmt: skip
        return tails[layer.node.op](layer, device, fields)

    @property
    def name(self) -> str:
        """Name of the layer that the tail computes."""
        return self.node.name

    def given(self, *, table: bool) -> AttributeMap:
        """Return the contents of the part from the beginning, with or without its table."""
        return {key: value for key, value in self.contents.items() if table or key != "table"}

    @property
    def table_beats(self) -> Sequence[int]:
        """Table of the part as beats of a program that comes as a stream, the lower bits first."""
        if not isinstance(self.part, SerialSoftmax):
            return ()
        entries = [*self.contents["table"], *[0] * self.part.table_memory.depth]
        return [
            entry >> place & (1 << BEAT_BITS) - 1
            for entry in entries[: self.part.table_memory.depth]
            for place in range(0, self.part.exponential_bits, BEAT_BITS)
        ]

    @property
    def written(self) -> Part:
        """Part of the tail, with a table that comes with the program."""
        part = self.part
        return replace(part, is_written=True) if isinstance(part, SerialSoftmax) else part


tails = PerOperator[Callable[[Any, Device, Fields], Tail]]("engine tail")
"""How nodes of an operator are computed of the codes that leave."""


@tails("softmax")
def _softmax(layer: layers.Softmax, device: Device, fields: Fields) -> Tail:
    part: TfliteSoftmax | Softmax = TfliteSoftmax(**fields, ram=device.ram)
    if not layer.is_tflite:
        part = Softmax(**fields, ram=device.ram, out_bits=layer.target.bits, places=layer.places)
    masked = {"is_masked": True} if layer.is_masked else {}
    return Tail(layer.node, part, {"table": layer.table.tolist(), **masked})


@tails("argmax_reduce", "argmin_reduce")
def _argmax(layer: layers.ArgExtremum, device: Device, fields: Fields) -> Tail:
    del device
    return Tail(layer.node, Argmax(**fields, greatest=layer.greatest), {})
