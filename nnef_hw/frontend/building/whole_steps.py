"""Formats of real numbers that are integers, such as pixels."""

from __future__ import annotations

from nnef_hw.ir import Quantization

__all__ = ["whole_steps"]

_MOST_BITS = 16


def whole_steps(bits: int, *, signed: bool) -> Quantization | None:
    """Return the format whose codes are the integers of a type; None if it has over 16 bits."""
    if bits > _MOST_BITS:
        return None
    args = {"zero_point": 0, "scale": 1.0, "bits": bits, "signed": signed, "symmetric": False}
    return Quantization("zero_point_linear_quantize", args)
