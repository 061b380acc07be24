"""Which rows an operator computes a row of, where an axis of its operand is time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.operators import (
    ConvAttributes,
    FactorAttributes,
    InterpolateAttributes,
    LogSpectrumAttributes,
    PadAttributes,
    PerOperator,
    PoolAttributes,
    SliceAttributes,
)

__all__ = ["NotInStepsError", "Taps", "has_other_padding", "taps_in_time"]

_IMAGE = 2
"""First axis of rows and columns in [N, C, H, W]."""


class Taps(NamedTuple):
    """Row j of a result is computed of rows ``j * stride - before + k * dilation``, k < size.

    Attributes
    ----------
    axis
        Axis of time of the result.
    pads
        Whether any of these may be padding.
    """

    axis: int
    size: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    pads: bool = False

    @property
    def reach(self) -> int:
        """Rows from the first to the last one, inclusive."""
        return (self.size - 1) * self.dilation + 1

    def first(self, row: int) -> int:
        """Return the first row that a row of the result is computed of."""
        return row * self.stride - self.before

    def last(self, row: int) -> int:
        """Return the last one."""
        return self.first(row) + self.reach - 1


class _Case(NamedTuple):
    graph: Graph
    node: Node
    axis: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.graph.tensor(self.node.inputs[0]).shape

    def of_axis(self, pairs: Sequence[object], what: str) -> int:
        """Return the place of the axis among those of an image."""
        place = self.axis - _IMAGE
        if not 0 <= place < len(pairs):
            raise NotInStepsError(
                f"time is axis {self.axis} of {list(self.shape)}, {what}",
                "name an axis of rows or columns: --stream time=AXIS",
            )
        return place


class NotInStepsError(Exception):
    """Why an operator cannot run step by step, and what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


_taps = PerOperator[Callable[[_Case], Taps]]("rows in time")
"""Which rows an operator computes a row of; raises NotInStepsError."""


@_taps("conv")
def _conv(case: _Case) -> Taps:
    conv = case.node.attributes(ConvAttributes)
    place = case.of_axis(conv.stride, "which are the channels of a convolution")
    size = case.graph.tensor(case.node.inputs[1]).shape[case.axis]
    (before, after) = conv.padding[place]
    dilation = conv.dilation[place]
    return Taps(case.axis, size, conv.stride[place], dilation, before, before + after > 0)


@_taps("avg_pool", "box", "max_pool")
def _pool(case: _Case) -> Taps:
    pool = case.node.attributes(PoolAttributes)
    place = case.of_axis(pool.stride, "which are the channels of a pool")
    (before, after) = pool.padding[place]
    return Taps(
        case.axis, pool.size[place], pool.stride[place], pool.dilation[place], before,
        before + after > 0,
    )  # fmt: skip


@_taps("linear")
def _linear(case: _Case) -> Taps:
    raise NotInStepsError(
        f"its filter is over the axis of time, {case.axis} of {list(case.shape)}",
        "name another axis: --stream time=AXIS",
    )


@_taps(Trait.TABLE, Trait.ARITHMETIC)
def _elementwise(case: _Case) -> Taps:
    return Taps(case.axis)


@_taps(Trait.ALONG_CHANNELS)
def _along_channels(case: _Case) -> Taps:
    if case.axis in case.node.attrs["axes"]:
        raise NotInStepsError(
            "it compares all rows of the window with each other",
            "compute it of what the steps give, on the host",
        )
    return Taps(case.axis)


@_taps("log_mel", "log_bands")
def _log_mel(case: _Case) -> Taps:
    found = case.node.attributes(LogSpectrumAttributes)
    case.of_axis([found.front.hop, 1], "which has no samples")
    before = found.before + found.mirrored[0]
    return Taps(
        case.axis, found.front.reach, found.front.hop, before=before,
        pads=before + found.mirrored[1] > 0,
    )  # fmt: skip


@_taps("micro_frontend", "micro_frontend_step", "micro_noise")
def _micro_frontend(case: _Case) -> Taps:
    raise NotInStepsError(
        "it reduces the noise that it has estimated since the window's first frame",
        "run it on whole clips, or give the network features of the host",
    )


@_taps("contraction")
def _contraction(case: _Case) -> Taps:
    raise NotInStepsError(
        "it multiplies rows of the window by one another",
        "compute it of what the steps give, on the host",
    )


@_taps("lookup", "write_row")
def _placed(case: _Case) -> Taps:
    raise NotInStepsError(
        "an integer chooses one of its rows", "give its network a step at a time, without --stream"
    )


@_taps("slice")
def _slice(case: _Case) -> Taps:
    part = case.node.attributes(SliceAttributes)
    return Taps(case.axis, before=-part.begin if part.axis == case.axis else 0)


@_taps("pad")
def _pad(case: _Case) -> Taps:
    pad = case.node.attributes(PadAttributes)
    place = case.of_axis(pad.padding, "which are channels")
    return Taps(case.axis, before=pad.padding[place][0], pads=any(pad.padding[place]))


@_taps("concat")
def _concat(case: _Case) -> Taps:
    if case.node.attrs["axis"] == case.axis:
        raise NotInStepsError(
            "it puts rows of several tensors one after the other in time, which is another order "
            "in each window",
            "join channels, or pad with zeros rather than with rows repeated or mirrored",
        )
    return Taps(case.axis)


@_taps("nearest_upsample", "depth_to_space")
def _upsample(case: _Case) -> Taps:
    factors = case.node.attributes(FactorAttributes).factor
    place = case.of_axis(factors, "which are channels")
    if factors[place] > 1:
        raise NotInStepsError(
            f"it makes {factors[place]} rows of each", "cut the network in front of it: --outputs"
        )
    return Taps(case.axis)


@_taps("interpolate")
def _interpolate(case: _Case) -> Taps:
    image = case.node.attributes(InterpolateAttributes)
    places = image.places(case.shape)
    along = places[case.of_axis(places, "which are channels")]
    if along.count != along.extent:
        raise NotInStepsError(
            f"it makes {along.count} rows of {along.extent}",
            "cut the network in front of it: --outputs",
        )
    return Taps(case.axis)


@_taps("begin_steps", "join_steps", "last_step", "reverse_steps", "split_steps")
def _loop(case: _Case) -> Taps:
    """Refuse what a network with a loop is refused for already."""
    raise NotInStepsError(
        f"its loop has the steps of axis {case.axis} within an inference",
        "let the loop go on from one inference to the next: --state loops",
    )


@_taps("transpose")
def _transpose(case: _Case) -> Taps:
    return Taps(list(case.node.attrs["axes"]).index(case.axis))


@_taps("reshape")
def _reshape(case: _Case) -> Taps:
    shape = case.graph.tensor(case.node.name).shape
    outside, extent = prod(case.shape[: case.axis]), case.shape[case.axis]
    for axis, other in enumerate(shape):
        if other == extent and prod(shape[:axis]) == outside:
            return Taps(axis)
    raise NotInStepsError(
        f"it mixes time, axis {case.axis} of {list(case.shape)}, with others: {list(shape)}",
        "keep rows in time on an axis of their own, and treat all of them alike",
    )


_taps.require_all()


def taps_in_time(graph: Graph, node: Node, axis: int) -> Taps:
    """Return which rows of its operands a node computes a row of.

    Parameters
    ----------
    axis
        Axis of time of its operands.

    Raises
    ------
    NotInStepsError
        If that is not the same for all rows, or not of some rows only.
    """
    return _taps[node.op](_Case(graph, node, axis))


def has_other_padding(node: Node, axis: int) -> bool:
    """Whether a ``pad`` pads along another axis than that."""
    pairs = node.attributes(PadAttributes).padding
    return any(any(pair) for n, pair in enumerate(pairs, _IMAGE) if n != axis)
