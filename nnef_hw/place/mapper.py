"""Differences between families in the language of yosys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.hardware.families import Family

__all__ = ["Mapper"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Mapper(ABC):
    """A family in the language of yosys, which maps designs to its cells.

    A mapper that leaves a fact or a question open cannot be made.

    Parameters
    ----------
    family
        Whose it is.
    flip_flops
        Regular expression of the flip-flops that yosys maps to.
    """

    family: Family
    flip_flops: str

    @abstractmethod
    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        """Return the commands of yosys that map a design to cells, in several ways.

        One way is tried after another as long as yosys fails with an assertion of its own.

        Parameters
        ----------
        part
            The device, as the placer names it.
        top
            Top module.
        """

    def files(self) -> Mapping[str, str]:
        """Return the text of the files that these commands read, by name in yosys's folder."""
        return {}

    def ports(self, with_pins: bool) -> Sequence[str]:
        """Return further commands of yosys for the ports of a mapped design: their pads.

        Parameters
        ----------
        with_pins
            Whether the constraints have a pin for each. A placer that places no pad by itself has
            to do without ports where they have none.
        """
        del with_pins
        return ()

    def revise(self, netlist: dict[str, object]) -> bool:
        """Better a mapped design where yosys leaves something to do; return whether it did.

        What it does stays the same, cycle for cycle.

        Parameters
        ----------
        netlist
            As yosys writes it in JSON, with the design flat in its top module; it is changed.
        """
        del netlist
        return False
