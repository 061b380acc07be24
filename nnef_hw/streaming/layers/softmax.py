"""Softmax over channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.records import Fields
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.parts.functions.pipelined_softmax import PipelinedSoftmax
from nnef_hw.parts.functions.softmax import Softmax
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax
from nnef_hw.streaming.layers.layer import (
    Contents,
    Folding,
    PixelLayer,
    StreamContext,
    lowers,
    size_steps,
)

__all__ = ["SoftmaxFolding", "SoftmaxLayer"]


@dataclass(frozen=True, kw_only=True)
class SoftmaxFolding(Folding):
    """Stages of the division if several pixels are computed at once; 0 for one at a time."""

    stages: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxLayer(PixelLayer[SoftmaxFolding]):
    """Softmax over channels; ``table`` has the exponentials.

    Parameters
    ----------
    places, rounds_down
        Bits of a probability below 1, and whether it is rounded down, as its part says.
    """

    label = "softmax"

    table: NDArray[np.int64]
    places: int = 8
    rounds_down: bool = False
    is_tflite: bool = False
    is_masked: bool = False

    def kind(self, folding: SoftmaxFolding) -> str:
        if self.is_tflite:
            return "tflite_softmax"
        return "pipelined_softmax" if folding.stages else "softmax"

    @property
    def takes_lanes(self) -> bool:
        return super().takes_lanes and not (self.is_tflite and self.result_lanes > 1)

    def foldings(self, device: Device) -> Sequence[SoftmaxFolding]:
        del device
        one_at_a_time = [0] * (self.operand_lanes == 1)
        several = [] if self.is_tflite else size_steps(self.places + 1)
        return [SoftmaxFolding(stages=count) for count in (*one_at_a_time, *several)]

    def _part(
        self, folding: SoftmaxFolding, device: Device
    ) -> PipelinedSoftmax | Softmax | TfliteSoftmax:
        parameters: Fields = {
            "channels": self.channels, "bits": self.source.bits, "signed": self.source.signed,
            "ram": device.ram,
        }  # fmt: skip
        if self.is_tflite:
            return TfliteSoftmax(**parameters)
        parameters |= {"out_bits": self.target.bits, "places": self.places}
        if self.rounds_down:
            parameters["rounds_down"] = True
        if folding.stages:
            return PipelinedSoftmax(stages=folding.stages, lanes=self.operand_lanes, **parameters)
        return Softmax(**parameters)

    def parts(self, folding: SoftmaxFolding, device: Device) -> tuple[Part, ...]:
        return (self._part(folding, device),)

    def cycles(self, folding: SoftmaxFolding, device: Device) -> int:
        return self.pixels * self._part(folding, device).pixel_cycles

    def contents(self, folding: SoftmaxFolding) -> Contents:
        del folding
        masked = {"is_masked": True} if self.is_masked else {}
        return {"softmax": {"table": self.table.tolist(), **masked}}

    def without_overlap(self, folding: SoftmaxFolding) -> SoftmaxFolding | None:
        is_narrow = self.operand_lanes == 1
        return SoftmaxFolding(stages=0) if folding.stages and is_narrow else None


@lowers("softmax")
def _lower_softmax(context: StreamContext[layers.Softmax]) -> SoftmaxLayer:
    layer = context.layer
    if layer.is_tflite:
        return SoftmaxLayer(**context.common, **context.extents, table=layer.table, is_tflite=True)
    return SoftmaxLayer(
        **context.common, **context.extents, table=layer.table, places=layer.places,
        is_masked=layer.is_masked,
    )  # fmt: skip


@lowers("integer_softmax")
def _lower_integer_softmax(context: StreamContext[layers.IntegerSoftmax]) -> SoftmaxLayer:
    layer = context.layer
    return SoftmaxLayer(
        **context.common, **context.extents, table=layer.table,
        places=(layer.levels - 1).bit_length(), rounds_down=True,
    )  # fmt: skip
