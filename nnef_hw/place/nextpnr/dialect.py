"""Differences between families in the language of yosys, nextpnr and the packer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnef_hw.hardware.families import Family, Pin
from nnef_hw.place.cells.tiles import LogicTiles
from nnef_hw.place.mapper import Mapper
from nnef_hw.place.toolchain import CellModels
from nnef_hw.system.tools import Package, Spec

__all__ = ["Dialect", "function_of"]


def function_of(
    family: Family, name: str, purpose: str, *, distribution: str, module: str, call: str,
    minimum: str = "0", probe: str = "--help", usage: int = 0,
) -> Spec:  # fmt: skip
    """Return the tool of a family that a Python package has as a function.

    Parameters
    ----------
    name, minimum
        The program, and its oldest version that will do.
    distribution, module, call
        Python package that has it, too; what to import of that; and how it is called there.
    probe, usage
        Argument with which it ends at once, and the status it then has.
    """
    return Spec(
        name, f"{purpose} for {family.title}", (name,), minimum,
        f"pip install 'nnef-hw[{family.name}]'", (Package.function(distribution, module, call),),
        probe=(probe,), usage=usage,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect(Mapper):
    """A family in the language of yosys, nextpnr and its packer.

    A dialect that leaves a fact or a question open cannot be made.

    Parameters
    ----------
    family, flip_flops
        As of every :class:`.Mapper`.
    router, packer
        nextpnr, and what makes a bitstream of its configuration.
    libraries
        Other programs or libraries that placement needs.
    constraints_suffix, bitstream_suffix
        Of the files that nextpnr reads and the packer writes, without a dot.
    cells
        Kinds of cells as nextpnr counts them, by resource; the first one is the logic cell.
    models
        The cells in Verilog, for simulation.
    ip_family, ip_option
        What yosys's synthesis command calls the family, and an option of it, for plain IP.
    """

    router: Spec
    packer: Spec
    libraries: tuple[Spec, ...]
    constraints_suffix: str
    bitstream_suffix: str
    cells: Mapping[str, str]
    models: CellModels
    ip_family: str
    ip_option: str

    @abstractmethod
    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        """Return nextpnr's options for a device, package and speed grade, as it names them."""

    @abstractmethod
    def pin_options(self, constraints: str | None) -> list[str]:
        """Return nextpnr's options for a file of the pins and clocks; None puts pins anywhere."""

    def placings(self, seed: int) -> list[Sequence[str]]:
        """Return nextpnr's options for the ways to one of several placements: a placer or more.

        Each is asked where those before it are far from the clock.
        """
        return [("--seed", str(seed))]

    def planned(self) -> Sequence[str]:
        """Return the types of cells that get their places before nextpnr places the rest."""
        return ()

    def tiles(self) -> LogicTiles | None:
        """Return facts about logic tiles, for placing all their cells; None if too little."""
        return None

    def ripup_options(self) -> list[str]:
        """Return nextpnr's options for a router that takes up again what is late.

        With them it has no end where the clock is out of reach. Empty where the router cannot.
        """
        return []

    @abstractmethod
    def route_options(self, config: str) -> list[str]:
        """Return nextpnr's option for the file that receives the routed configuration.

        They also ask for the placed netlist, as JSON in the file :meth:`placed`.
        """

    def placed(self, config: str) -> str:
        """Return the name of the file of the placed netlist beside that of the configuration."""
        return f"{config}.json"

    @abstractmethod
    def set_pll(self, configuration: Path, placed: Path, parameters: Mapping[str, int]) -> bool:
        """Change the parameters of a routed design's PLL; the design has one.

        Parameters
        ----------
        configuration, placed
            The files that :meth:`route_options` ask for: of these all that the packer reads.
        parameters
            New values by name.

        Returns
        -------
        bool
            Whether nextpnr has to write the configuration anew, of the placed netlist.
        """

    @abstractmethod
    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        """Return the packer's arguments: device, nextpnr's file and the one to be written."""

    @abstractmethod
    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        """Return the text for nextpnr of the pins by port, and of the clock at port ``clk``."""

    def counted_as(self, kind: str) -> str:
        """Return as which kind nextpnr counts the cells of a kind in its utilization."""
        return kind

    def utilization(self, counts: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Return how much is used and available of each resource.

        Parameters
        ----------
        counts
            The same of each kind of cells, as nextpnr reports it of a placed design.
        """
        return {name: counts[cell] for name, cell in self.cells.items() if cell in counts}

    def lone_flip_flops(self, netlist: Mapping[str, object]) -> float:
        """Return how many flip-flops will take a logic cell that nextpnr has not counted yet.

        Parameters
        ----------
        netlist
            A mapped design, as yosys writes it in JSON, that nextpnr has packed but not placed.
        """
        del netlist
        return 0.0
