"""Copies of a part side by side, for streams of several codes per beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.parts.base.part import LogicProducts, Part
from nnef_hw.parts.base.timing import Kernel, Stream
from nnef_hw.parts.base.untyped import Content, Hardware

__all__ = ["Lanes", "side_by_side"]


@dataclass(frozen=True, kw_only=True)
class Lanes(Part, of_parts=True):
    """Copies of a part that computes channel by channel, one for each code of a beat.

    A copy takes every ``lanes``-th channel, and all move in step: none looks at codes to decide
    when. Its contents are those of all copies; ``each`` are those that differ, by lane.

    Parameters
    ----------
    part
        A copy: a part of one code per beat, for a share of the channels.
    lanes
        How many of them.

    Raises
    ------
    ValueError
        If there are fewer than two, or the part has no registers or takes its operands in turn.
    """

    component = "nnef_hw.rtl.streams.lanes:Lanes"

    part: Part
    lanes: int

    def __post_init__(self) -> None:
        if self.lanes < 2:
            raise ValueError(f"Lanes lanes must be at least 2, not {self.lanes!r}")
        if self.part.takes_turns or not self.part.is_registered:
            raise ValueError(f"Lanes cannot be copies of {type(self.part).__name__}")

    @property
    def label(self) -> str:  # type: ignore[override]
        """Name of a copy."""
        return self.part.label

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return self.part.memories * self.lanes

    @property
    def interval(self) -> int:
        return self.part.interval

    @property
    def kept_bits(self) -> int:
        return self.lanes * self.part.kept_bits

    @property
    def multipliers(self) -> int:
        return self.lanes * self.part.multipliers

    @property
    def macs_per_cycle(self) -> int:
        return self.lanes * self.part.macs_per_cycle

    @property
    def in_logic(self) -> int:
        return self.lanes * self.part.in_logic

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return tuple(self.part.logic_products) * self.lanes

    def dsp(self, device: Device) -> int:
        return self.lanes * self.part.dsp(device)

    @property
    def spram(self) -> int:
        return self.lanes * self.part.spram

    def compute(
        self, *operands: IntArray, each: Sequence[AttributeMap] = (), **contents: Content
    ) -> IntArray:
        """Return the results of every copy for its lane of the operands [beats, lanes]."""
        own = each or [{}] * self.lanes
        results = [
            self.part.compute(*(x[:, n : n + 1] for x in operands), **contents, **mine)
            for n, mine in enumerate(own)
        ]
        return np.concatenate(results, axis=1)

    @property
    def features(self) -> Mapping[str, float]:
        return {}

    def flip_flops(self, device: Device) -> int:
        return self.lanes * self.part.flip_flops(device)

    @property
    def timing(self) -> Part:
        return self.part.timing

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        return self.part.start(kernel, *origins)

    def _estimate(self, device: Device) -> Resources:
        return sum([self.part.resources(device)] * self.lanes, Resources())

    def made(self, component: Hardware) -> list[Hardware]:
        return [component, *component.copies]

    def operands(self, component: Hardware) -> list[Hardware]:
        return self.part.operands(component)

    def build(self, *, each: Sequence[AttributeMap] = (), **contents: Content) -> Hardware:
        """Return the component; every copy has the contents, and those that ``each`` has for it."""
        own = each or [{}] * self.lanes
        copies = [self.part.build(**contents, **mine) for mine in own]
        return self.component_class()(self, copies)


def side_by_side(part: Part, lanes: int) -> Part:
    """Return so many copies of a part, or the part alone."""
    return part if lanes == 1 else Lanes(part=part, lanes=lanes)
