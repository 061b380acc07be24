"""Functions of two streams, code by code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import AddRequant, IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import LogicProducts, Pipe
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.base.untyped import Hardware

__all__ = [
    "TABLE_INPUTS",
    "EltwiseExtremum",
    "EltwiseProduct",
    "EltwiseSum",
    "TwoOperands",
    "elastic_pipeline",
]


TABLE_INPUTS = 4
"""Inputs of a LUT."""


def elastic_pipeline(target: Stream, origins: Sequence[Stream], stages: int) -> Process:
    """Let items pass ``stages`` registers, each of which waits only if the next one does."""
    entered = [-1] * (stages + 1)
    while True:
        time = entered[1]
        for origin in origins:
            offered = yield origin
            if offered > time:
                time = offered
        for origin in origins:
            origin.accept(time)
        entered[0] = time
        for stage in range(1, stages):
            time += 1
            if time < entered[stage + 1]:
                time = entered[stage + 1]
            entered[stage] = time
        entered[stages] = yield target, time + 1


class TwoOperands(Pipe):
    """A part that takes two operands at once; its latency begins with the later one."""

    def operands(self, component: Hardware) -> list[Hardware]:
        return [component.a, component.b]


@dataclass(frozen=True, kw_only=True)
class EltwiseSum(TwoOperands):
    """Sum or difference of operands, each times a constant, shifted, rounded and clipped.

    Its contents are ``requant`` and ``in_zero_points``.

    Parameters
    ----------
    in_bits, in_signed
        Formats of the codes of both operands.
    out_bits, out_signed
        Format of the result.
    lanes
        Codes per beat.
    """

    component = "nnef_hw.rtl.functions.eltwise:EltwiseSum"
    label = "sum"
    costs = "sum"

    in_bits: tuple[int, int]
    in_signed: tuple[bool, bool]
    out_bits: int
    out_signed: bool
    lanes: int = 1

    @property
    def tables(self) -> int:
        """Tables, each of which four bits of both operands address."""
        return -(-sum(self.in_bits) // TABLE_INPUTS)

    @property
    def latency(self) -> int:
        return 2 + (self.tables - 1).bit_length()

    def compute(
        self, a: IntArray, b: IntArray, *, requant: AddRequant, in_zero_points: tuple[int, int]
    ) -> IntArray:
        """Return the sums of codes [beats, lanes] of both operands."""
        return requant.apply(a - in_zero_points[0], b - in_zero_points[1])

    @property
    def features(self) -> Mapping[str, float]:
        return {"tables": self.lanes * self.tables}

    def flip_flops(self, device: Device) -> int:
        del device
        return 36 * self.lanes * self.tables + self.latency

    def process(self, target: Stream, *origins: Stream) -> Process:
        return elastic_pipeline(target, origins, self.latency)


@dataclass(frozen=True, kw_only=True)
class EltwiseProduct(TwoOperands):
    """Product of the differences from ``in_zero_points``, which are its contents.

    Parameters
    ----------
    in_bits, in_signed
        Formats of the codes of both operands.
    """

    component = "nnef_hw.rtl.functions.eltwise:EltwiseProduct"
    label = "product"
    costs = "product"
    latency = 3

    in_bits: tuple[int, int]
    in_signed: tuple[bool, bool]

    def compute(self, a: IntArray, b: IntArray, *, in_zero_points: tuple[int, int]) -> IntArray:
        """Return the products of codes [beats, 1] of both operands."""
        return (a - in_zero_points[0]) * (b - in_zero_points[1])

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": sum(self.in_bits)}

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return (LogicProducts(1, self.in_bits),)

    def flip_flops(self, device: Device) -> int:
        del device
        return 4 * sum(self.in_bits) + 10

    def process(self, target: Stream, *origins: Stream) -> Process:
        return elastic_pipeline(target, origins, self.latency)


@dataclass(frozen=True, kw_only=True)
class EltwiseExtremum(TwoOperands):
    """The larger of two codes, or the smaller one.

    Parameters
    ----------
    greatest
        Whether it is the larger one.
    bits, signed, lanes
        Format of all beats.
    """

    component = "nnef_hw.rtl.functions.eltwise:EltwiseExtremum"
    label = "extremum"
    costs = "extremum"
    latency = 1

    greatest: bool
    bits: int
    signed: bool
    lanes: int = 1

    def compute(self, a: IntArray, b: IntArray) -> IntArray:
        """Return the extrema of codes [beats, lanes] of both operands."""
        return (np.maximum if self.greatest else np.minimum)(a, b)

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.lanes * self.bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return self.lanes * self.bits + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        return elastic_pipeline(target, origins, self.latency)
