"""Facts about a design in its device, and about memories beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Floorplan",
    "LongestPath",
    "Memory",
    "MemoryMap",
    "PathPart",
    "Placed",
    "ResourceUse",
    "TensorPlace",
]


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Resources of one kind.

    Parameters
    ----------
    used
        Those of the placed design; null before place and route.
    available
        Those of the device.
    estimated
        Estimate from before synthesis.
    """

    used: int | None
    available: int
    estimated: int | None


@dataclass(frozen=True, slots=True)
class PathPart:
    """A part of the longest path.

    Parameters
    ----------
    name
        A layer, a part of one (``conv1, array``), or ``host link``.
    ns
        Nanoseconds in it; wires count for the cell that drives them.
    """

    name: str
    ns: float


@dataclass(frozen=True, slots=True)
class LongestPath:
    """The path that limits the clock.

    Parameters
    ----------
    ns
        Nanoseconds of the whole path.
    parts
        Parts of the design that it leads through, in their order.
    """

    ns: float
    parts: tuple[PathPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Resources of the parts of a placed design, which add up to those used.

    Parameters
    ----------
    link
        Numbers of the host link's, by resource.
    shared
        Those of the array that layers share; null without one.
    layers
        Those of each layer, by its name.
    """

    link: Mapping[str, int]
    shared: Mapping[str, int] | None
    layers: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Data that come from a memory beside the FPGA.

    Parameters
    ----------
    kind
        The memory: ``flash`` or ``SDRAM``.
    read
        Command that reads it.
    address
        First byte of its contents.
    bytes
        Bytes that come per frame.
    resident_bytes
        Bytes that come once and stay on the FPGA.
    bytes_per_cycle
        Rate of a reader that never waits.
    stall_cycles
        Cycles per frame in which the array waits.
    """

    kind: str
    read: str
    address: int
    bytes: int
    resident_bytes: int = 0
    bytes_per_cycle: float
    stall_cycles: int


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor's place in the memory of activations.

    Parameters
    ----------
    name
        Name of the tensor.
    begin, bytes
        Its first byte, and how many it takes.
    first, last
        Numbers of the first and the last step that need it.
    """

    name: str
    begin: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMap:
    """The memory of activations that layers share.

    Parameters
    ----------
    steps
        Names of the program's steps.
    bytes
        Size of the memory.
    bank_bytes
        Size of one of its two banks; 0 without banks.
    tensors
        Places of the tensors.
    """

    steps: tuple[str, ...]
    bytes: int
    bank_bytes: int
    tensors: tuple[TensorPlace, ...]


Spots: TypeAlias = Sequence[tuple[int, int, int]]
"""Columns and rows of a device, each with a number of cells."""


@dataclass(frozen=True, slots=True)
class Floorplan:
    """Places of the cells of a design; a page draws them, and report.json leaves them out.

    Parameters
    ----------
    size
        Columns and rows of the device, counted from the bottom left.
    path
        Column and row of the cells along the path that limits the clock.
    regions
        Spots by the name of a layer and by resource; the name ``""`` is what belongs to no layer.
    """

    size: tuple[int, int]
    path: tuple[tuple[int, int], ...]
    regions: Mapping[str, Mapping[str, Spots]]
