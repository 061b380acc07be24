"""Checks that many shape rules share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest

from nnef_hw.frontend.shapes.call import Call

__all__ = [
    "Shape",
    "broadcast",
    "check_axes",
    "check_axis",
    "check_choice",
    "elementwise",
    "reduced",
    "same",
    "spreads",
]

Shape = tuple[int, ...]


def broadcast(call: Call, shapes: Sequence[Shape]) -> Shape:
    """Join shapes that are aligned at their first dimension; missing last ones are 1."""
    result: list[int] = []
    for axis, extents in enumerate(zip_longest(*shapes, fillvalue=1)):
        extent = max(extents)
        if any(other not in {1, extent} for other in extents):
            shown = " and ".join(str(list(shape)) for shape in shapes)
            raise call.error(
                f"shapes {shown} do not go together in dimension {axis}",
                "NNEF aligns them at the first dimension: unsqueeze the one of lower rank",
            )
        result.append(extent)
    return tuple(result)


def spreads(shape: Shape, result: Shape) -> bool:
    """Tell whether a shape broadcasts to ``result``."""
    extents = zip_longest(shape, result, fillvalue=1)
    return len(shape) <= len(result) and all(extent in {1, other} for extent, other in extents)


def check_axes(call: Call, rank: int, name: str = "axes") -> list[int]:
    """Return the attribute ``axes``: different dimensions of a tensor of this rank."""
    axes: list[int] = call.attrs[name]
    if len(set(axes)) != len(axes) or any(not 0 <= axis < rank for axis in axes):
        raise call.error(f"{name} {axes} must be different numbers in 0..{rank - 1}", at=name)
    return axes


def check_axis(call: Call, rank: int) -> int:
    """Return the attribute ``axis``: a dimension of a tensor of this rank."""
    axis: int = call.attrs["axis"]
    if not 0 <= axis < rank:
        raise call.error(f"axis {axis} must be in 0..{rank - 1}", at="axis")
    return axis


def check_choice(call: Call, name: str, choices: Collection[str]) -> None:
    """Check an attribute that is one of a few words."""
    if call.attrs[name] not in choices:
        raise call.error(
            f"{name} {call.attrs[name]!r} does not exist here",
            f"use one of {', '.join(map(repr, choices))}",
            at=name,
        )


def elementwise(call: Call) -> list[Shape]:
    """Return the one shape that all operands broadcast to."""
    return [broadcast(call, [tensor.shape for tensor in call.inputs])]


def same(call: Call) -> list[Shape]:
    """Return the first operand's shape for every result."""
    return [call.inputs[0].shape] * len(call.dtypes)


def reduced(call: Call) -> list[Shape]:
    """Return the first operand's shape with extent 1 along ``axes``."""
    shape = call.inputs[0].shape
    axes = check_axes(call, len(shape))
    result = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return [result] * len(call.dtypes)
