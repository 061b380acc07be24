"""A constant operand: the same codes in every frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnef_hw.blockram import BlockRam
from nnef_hw.devices import Device
from nnef_hw.parts.part import Part
from nnef_hw.parts.timing import Kernel, Stream

__all__ = ["Constant"]


@dataclass(frozen=True, kw_only=True)
class Constant(Part):
    """Gives ``count`` codes in turn, ``repeats`` times a frame, always in time.

    Its contents are ``codes``.
    """

    component = "nnef_hw.rtl.constant:Constant"
    label = "constant"
    costs = "constant"

    count: int
    repeats: int
    bits: int
    signed: bool
    ram: BlockRam

    @property
    def features(self) -> Mapping[str, float]:
        return {}

    def flip_flops(self, device: Device) -> int:
        del device
        return 0

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        raise AssertionError("a constant makes nothing wait")

    def build(self, **contents: Any) -> Any:
        """Return the component; ``codes`` are its contents."""
        return self.component_class()(
            repeats=self.repeats, bits=self.bits, signed=self.signed, ram=self.ram, style="logic",
            **contents,
        )  # fmt: skip
