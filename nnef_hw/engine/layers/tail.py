"""What may be computed of the codes that leave: by parts that take a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nnef_hw.arithmetic.tflite.numerics import TFLITE_SOFTMAX_QTYPE
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Graph, Node, stream_image
from nnef_hw.ir.operators import PerOperator
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.functions.argmax import Argmax
from nnef_hw.parts.functions.softmax import SerialSoftmax, Softmax
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax

__all__ = ["Tail", "tails"]


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
    contents: Mapping[str, Any]

    @classmethod
    def of(cls, graph: Graph, node: Node, device: Device) -> Tail:
        """Return that of a fixed node."""
        source = graph.tensor(node.inputs[0])
        assert source.qtype is not None
        fields = {
            "channels": stream_image(source.shape)[2], "bits": source.qtype.bits,
            "signed": source.qtype.signed,
        }  # fmt: skip
        return tails[node.op](graph, node, device, fields)

    @property
    def name(self) -> str:
        """Name of what it computes."""
        return self.node.name

    @property
    def table_beats(self) -> Sequence[int]:
        """Its table as beats of a program that comes as a stream, the lower bits first."""
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
        """What computes it, with a table that comes so."""
        part = self.part
        return replace(part, is_written=True) if isinstance(part, SerialSoftmax) else part


tails = PerOperator[Callable[[Graph, Node, Device, dict[str, Any]], Tail]]("engine tail")
"""How nodes of an operator are computed of the codes that leave."""


@tails("softmax")
def _softmax(graph: Graph, node: Node, device: Device, fields: dict[str, Any]) -> Tail:
    kind = TfliteSoftmax if graph.tensor(node.name).qtype == TFLITE_SOFTMAX_QTYPE else Softmax
    part = kind(**fields, ram=device.ram)
    return Tail(node, part, {"table": node.attrs["table"].tolist()})


@tails("argmax_reduce")
def _argmax(graph: Graph, node: Node, device: Device, fields: dict[str, Any]) -> Tail:
    del graph, device
    return Tail(node, Argmax(**fields), {})


@tails("argmin_reduce")
def _argmin(graph: Graph, node: Node, device: Device, fields: dict[str, Any]) -> Tail:
    del graph, device
    return Tail(node, Argmax(**fields, greatest=False), {})
