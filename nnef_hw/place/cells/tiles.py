"""Facts about a family's logic tiles, for placing its cells ourselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.records import JsonView

__all__ = ["Cell", "Control", "LogicTiles", "Member", "Path", "Unit"]

Cell: TypeAlias = JsonView
"""A cell of a netlist in nextpnr's JSON."""


class Member(NamedTuple):
    """A cell of a unit: in which of its slots it is, and as what."""

    name: str
    slot: int
    part: str


class Control(NamedTuple):
    """Signals that flip-flops of one tile have in common, and those of one slice.

    What a tile inverts of them its RAMs have in common with its flip-flops: these have None for
    the others.
    """

    tile: Hashable
    slice: Hashable
    inverted: Hashable


class Path(NamedTuple):
    """Delay in ns from a pin into a cell to one out of it, or into a register."""

    source: str
    target: str | None
    delay: float


@dataclass(slots=True)
class Unit:
    """Cells that stay side by side.

    Parameters
    ----------
    slots
        LUTs and flip-flops in a row that it takes, beginning with a slice unless it is one.
    members
        Its cells.
    is_aligned
        Whether it begins with a tile.
    controls
        Slots of its flip-flops and of a RAM, with what these share with others.
    """

    slots: int
    members: list[Member]
    is_aligned: bool = False
    controls: list[tuple[int, Control]] = field(default_factory=list)


class LogicTiles(ABC):
    """Logic tiles in rows: of slots, each a LUT and a flip-flop, two of which make a slice.

    Attributes
    ----------
    mark
        Type of a cell of which every tile holds one.
    slots
        Slots of a tile.
    lut, flip_flop
        Parts of a slot.
    stretch
        How much more a horizontal wire counts than a vertical one.
    """

    mark: str
    slots: int
    lut: str
    flip_flop: str
    stretch: float

    @abstractmethod
    def units(self, cells: Mapping[str, Cell]) -> list[Unit]:
        """Return the units of a packed netlist: all cells in logic tiles."""

    @abstractmethod
    def name(self, x: int, y: int, slot: int, part: str) -> str:
        """Return nextpnr's name of a place."""

    @abstractmethod
    def is_wire(self, port: str) -> bool:
        """Whether a pin is reached by wires among the tiles."""

    @abstractmethod
    def paths(self, cell: Cell) -> Sequence[Path]:
        """Return the paths through a cell: none that begins in it."""

    @abstractmethod
    def clock_to_output(self, cell: Cell, port: str) -> float | None:
        """Return after how many ns an output of a cell follows the clock; None if it does not."""

    @abstractmethod
    def is_direct(self, source: str, target: str) -> bool:
        """Whether what leads from one pin to the other is no wire but within the tiles."""

    @abstractmethod
    def wire_delay(self, dx: NDArray[np.float64], dy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ns of wires across so many tiles, as nextpnr predicts them."""
