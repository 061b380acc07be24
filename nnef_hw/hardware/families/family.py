"""What is known of an FPGA family: every question that its devices, boards and tools are asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nnef_hw.hardware.families.tiles import LogicTiles
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["CellModels", "Family", "Pin", "Program"]

ODD_DIGIT = 1.15
"""LUTs of a multiplier with an odd number of digits, for each that its bits would have it take."""


@dataclass(frozen=True)
class Pin:
    """A pin of the device: its package name, polarity, and what the board asks of it."""

    site: str
    invert: bool
    attributes: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Program:
    """A tool of the family's own: a program, or a function of a Python package.

    Parameters
    ----------
    name, minimum
        Of the program, and its oldest version that will do.
    distribution, module, call
        Python package that has it, too; what to import of that; and how it is called there.
    probe, usage
        Arguments with which it ends at once, and the status it then has.
    """

    name: str
    minimum: str
    distribution: str
    module: str
    call: str
    probe: tuple[str, ...]
    usage: int


@dataclass(frozen=True, kw_only=True)
class CellModels:
    """Verilog of the cells that a design is mapped to.

    Parameters
    ----------
    files
        Of yosys, below its folder of shared files.
    ours
        Files of ``sim/models`` with what those lack.
    defines
        Macros that they need.
    omitted
        Regular expressions of the modules that are left out: a PLL is modelled where a board is
        simulated.
    """

    files: tuple[str, ...]
    ours: tuple[str, ...]
    defines: tuple[str, ...]
    omitted: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Family(ABC):
    """An FPGA family: its facts, and the language of its tools.

    A family that leaves a fact or a question open cannot be made. There is one object of each, so
    that they are compared and hashed as objects; it prints as its name.

    Parameters
    ----------
    name, title
        As yosys and FuseSoC call it, and in full. The name is also an alias of the board that
        stands for the family: components are measured for its device.
    ram
        Block RAM and its shapes.
    products_per_dsp
        Independent 8x8 products in a DSP block.
    sums_per_dsp
        Products of two sums of 9 bits, for two products each of a fast inner product; 0 where these
        take as many DSP blocks as the products.
    flip_flops_per_lut
        How many flip-flops a device has beside each of its LUTs.
    has_lut_ram
        Whether LUTs can be memory.
    lut_multiplier
        LUTs of one registered 8x8 multiplier in logic, measured.
    mixes_products
        Whether devices have the LUTs for multipliers beside an engine whose others fill the DSP
        blocks.
    lut_weights
        LUTs per unit of every feature of a part, measured: ``lut_weights[part][feature]``;
        ``docs/resources.md`` tells how.
    weight_delay
        Registers between weight memories and multipliers that the clocks of its boards need.
    long_wires
        Whether a wire across the device takes most of a cycle of those clocks: a FIFO then stands
        between sums and their requantizer, and a restart hops from block to block.
    digit_bits
        Most adders a requantizer may chain in one cycle, for the clocks of its boards.
    logic_words
        Most words of a weight memory in LUTs, for the clocks of its boards.
    lut_share
        Share of the LUTs that a design may fill and still reach those clocks.
    ip_clock_mhz
        Clock for which the rates of plain IP are reported unless the user asks for another.
    define
        Macro with which ``primitives.v`` instantiates the family's cells.
    ip_option
        Option of yosys's synthesis command for plain IP.
    router, packer
        nextpnr, and what makes a bitstream of its configuration.
    constraints_suffix, bitstream_suffix
        Of the files that nextpnr reads and the packer writes, without a dot.
    cells
        Kinds of cells as nextpnr counts them, by resource; the first one is the logic cell.
    flip_flops
        Regular expression of the flip-flops that yosys maps to.
    models
        The cells in Verilog, for simulation.
    pll
        ``module:class`` of its clock generator.
    """

    name: str
    title: str
    ram: BlockRam
    products_per_dsp: int
    sums_per_dsp: int
    flip_flops_per_lut: float
    has_lut_ram: bool
    lut_multiplier: int
    mixes_products: bool
    lut_weights: Mapping[str, Mapping[str, float]]
    weight_delay: int
    long_wires: bool
    digit_bits: int
    logic_words: int
    lut_share: float
    ip_clock_mhz: float
    define: str
    ip_option: str
    router: Program
    packer: Program
    constraints_suffix: str
    bitstream_suffix: str
    cells: Mapping[str, str]
    flip_flops: str
    models: CellModels
    pll: str

    @abstractmethod
    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        """Return the commands of yosys that map a design to cells, in several ways.

        One way is tried after another as long as yosys fails with an assertion of its own.

        Parameters
        ----------
        part
            The device, as nextpnr names it.
        top
            Top module.
        """

    def product_share(self, digits: int, width: int) -> float:
        """Return the LUTs of a multiplier in logic, for each one of an 8x8 multiplier.

        Measured; ``digits`` are the bits of the narrower factor, ``width`` those of the other.
        """
        counted = min(ODD_DIGIT * digits, digits + 1) if digits % 2 else digits
        return counted * width / 64

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

    def revise(self, netlist: dict[str, Any]) -> bool:
        """Better a mapped design where yosys leaves something to do; return whether it did.

        What it does stays the same, cycle for cycle.

        Parameters
        ----------
        netlist
            As yosys writes it in JSON, with the design flat in its top module; it is changed.
        """
        del netlist
        return False

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
        """Return what is known of logic tiles, for placing all their cells; None if too little."""
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

    def lone_flip_flops(self, netlist: Mapping[str, Any]) -> float:
        """Return how many flip-flops will take a logic cell that nextpnr has not counted yet.

        Parameters
        ----------
        netlist
            A mapped design, as yosys writes it in JSON, that nextpnr has packed but not placed.
        """
        del netlist
        return 0.0

    def pll_class(self) -> Any:
        """Return the class of the clock generator; its module is imported only now."""
        module, _, name = self.pll.partition(":")
        return getattr(import_module(module), name)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        # another process, or a copy, has the same object: the constant of the family's module
        return self.name.upper()
