"""Requantizers of layers: their foldings, parts and contents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import QType, Requant
from nnef_hw.arithmetic.records import AttributeMap, Fields
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.devices import Device
from nnef_hw.parts import Part
from nnef_hw.parts.arrays.requantizer import AverageRequantizer, Requantizer, TfliteRequantizer
from nnef_hw.parts.streams.lanes import side_by_side
from nnef_hw.streaming.layers.layer import Folding, size_steps

__all__ = [
    "RequantizerFolding",
    "digit_choices",
    "factor_bits",
    "interval_of",
    "make_requantizer",
    "requant_contents",
]


@dataclass(frozen=True, kw_only=True)
class RequantizerFolding(Folding):
    """Bits of ``mult`` that each stage takes per cycle; stages; 0 where nothing is requantized."""

    digit_bits: int
    digit_stages: int


def factor_bits(requant: Requant | TfliteRequant) -> int:
    """Width of the greatest number that a requantizer multiplies with."""
    if isinstance(requant, TfliteRequant):
        return requant.mult_bits
    return max(requant.mult).bit_length()


def digit_choices(requant: Requant | TfliteRequant | None, device: Device) -> list[Fields]:
    """List the foldings of a requantizer, slowest first, as fields of a folding."""
    if requant is None:
        return [{"digit_bits": 0, "digit_stages": 0}]
    digits = _digits(factor_bits(requant), device.digit_bits)
    return [{"digit_bits": bits, "digit_stages": stages} for bits, stages in digits]


def _digits(top_bits: int, most: int) -> Iterator[tuple[int, int]]:
    widest = min(most, top_bits)
    for bits in range(1, widest):
        yield bits, 1
    digits = -(-top_bits // widest)
    for interval in reversed(size_steps(digits)):
        yield widest, -(-digits // interval)


def interval_of(requant: Requant | TfliteRequant | None, folding: RequantizerFolding) -> int:
    """Cycles per code of a requantizer; 0 without one."""
    if requant is None:
        return 0
    return -(-factor_bits(requant) // (folding.digit_bits * folding.digit_stages))


def make_requantizer(
    requant: Requant | TfliteRequant,
    folding: RequantizerFolding,
    *,
    channels: int,
    acc_bits: int,
    target: QType,
    by_position: bool = False,
    lanes: int = 1,
) -> Part:
    """Return the part for sums of ``acc_bits`` that take the constants of ``channels`` in turn.

    ``by_position`` if the constants belong to rows and columns instead; ``lanes`` sums in a beat.
    """
    kind = Requantizer
    if by_position:
        kind = AverageRequantizer
    elif isinstance(requant, TfliteRequant):
        kind = TfliteRequantizer
    offset = requant.offset if isinstance(requant, Requant) else ()
    part = kind(
        channels=max(1, channels // lanes), acc_bits=acc_bits, factor_bits=factor_bits(requant),
        digit_bits=folding.digit_bits, stages=folding.digit_stages, bits=target.bits,
        signed=target.signed, offset_bits=max(offset, default=0).bit_length(),
    )  # fmt: skip
    return side_by_side(part, lanes)


def requant_contents(
    requant: Requant | TfliteRequant, bias: list[int], lanes: int = 1
) -> AttributeMap:
    """Return the contents of a requantizer with ``lanes`` channels in a beat."""
    if lanes == 1:
        return {"requant": requant, "bias": bias}
    every = [slice(n, None, lanes) for n in range(lanes)]
    return {
        "each": [
            {"requant": requant.of_channels(channels), "bias": bias[channels]} for channels in every
        ]
    }
