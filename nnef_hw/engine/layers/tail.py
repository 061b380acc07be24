"""Functions of the codes that leave, computed by parts that take a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Node, layers, stream_image
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
