"""Toolchains: what makes a placed design, a bitstream or a project file of Verilog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from nnef_hw.errors import UsageError
from nnef_hw.hardware.families import Family, Pin
from nnef_hw.place.result import SynthesisResult
from nnef_hw.system.tools import Spec, find_tool

__all__ = [
    "Attempt", "CellModels", "Design", "Mapped", "Progress", "Setting", "Toolchain", "Tuning",
    "toolchain_of",
]  # fmt: skip

Progress = Callable[[str], None]
"""Is told which program runs."""


def say_nothing(what: str) -> None:
    """Take a message that nobody waits for."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A clock that a PLL makes, and the parameters with which it does."""

    clock_mhz: float
    parameters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Tuning:
    """A PLL that is set to what a routed design reaches.

    Parameters
    ----------
    input_mhz
        Clock of what is not behind the PLL.
    outputs
        By the primitives that the PLL may be, the port of its clock.
    choose
        Returns the setting for a clock in MHz that is reached; None if the PLL makes none.
    """

    input_mhz: float
    outputs: Mapping[str, str]
    choose: Callable[[float], Setting | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A design for a chip: its top module, and where it goes.

    Parameters
    ----------
    top
        Top module.
    part, package, speed
        Device, package and speed grade in the toolchain's names: of nextpnr ``85k``, ``CABGA381``,
        ``6``. A family without speed grades has "".
    frequency_mhz
        Constraint for clocks that the constraints say nothing about.
    constraints
        Text in the toolchain's language; None places the pins anywhere.
    tuning
        The PLL whose setting follows the routes; None if its clock has to be reached as it is.
    """

    top: str
    part: str
    package: str
    speed: str = ""
    frequency_mhz: float
    constraints: str | None = None
    tuning: Tuning | None = None

    @property
    def netlist(self) -> str:
        """Name of the file that a toolchain maps the design to, and places it from."""
        return f"{self.top}.json"


@dataclass(frozen=True, slots=True)
class Mapped:
    """A design in cells of its family, in the folder that it was mapped in.

    Parameters
    ----------
    cells
        How many there are by type. Empty where mapping is left to another program.
    flip_flops
        How many of these are flip-flops.
    seconds
        Time by step.
    """

    cells: dict[str, int] = field(default_factory=dict)
    flip_flops: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One placement.

    Parameters
    ----------
    fmax_mhz
        As :attr:`.SynthesisResult.fmax_mhz`.
    used
        How much it takes of each resource.
    """

    fmax_mhz: float | None
    used: dict[str, int]


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Toolchain(ABC):
    """Tools that map a family's designs to cells, place them, and report the result.

    A toolchain that leaves a fact or a question open cannot be made. One that only writes a project
    for a vendor's program answers :attr:`places` with False: it maps nothing, :meth:`place` returns
    :meth:`.SynthesisResult.unplaced`, and nobody asks for :meth:`count` and :meth:`attempt`.

    Parameters
    ----------
    title
        What users call it.
    programs
        The programs that it runs, in that order. Their versions are part of every result's key.
    places
        Whether it places designs, and so tells their clocks and resources.
    constraints_suffix
        Of the file that holds :meth:`constraints`, without a dot.
    bitstream_suffix
        Of the bitstream; None where another program makes it.
    outputs
        Purposes of the files that :meth:`place` leaves besides the bitstream, by patterns of their
        names, in the order in which a report lists them.
    models
        The cells in Verilog, for simulation of a mapped design; None where that is not possible.
    ip_family, ip_option
        What yosys's synthesis command calls the family, and an option of that command, in the
        FuseSoC core of plain IP.
    """

    title: str
    programs: tuple[Spec, ...]
    places: bool
    constraints_suffix: str
    bitstream_suffix: str | None
    outputs: Mapping[str, str]
    models: CellModels | None
    ip_family: str
    ip_option: str

    @abstractmethod
    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        """Return the text for the pins by port, and for the clock at port ``clk``."""

    @abstractmethod
    def map(
        self, design: Design, sources: Sequence[Path], folder: Path, logs: Path,
        *, pads: bool | None, progress: Progress = say_nothing,
    ) -> Mapped:  # fmt: skip
        """Map sources to cells, or prepare what :meth:`place` needs of them.

        Parameters
        ----------
        sources
            Verilog files.
        folder
            Receives the netlist as :attr:`.Design.netlist`, and for Verilator, with
            :attr:`models`, as ``{top}_netlist.v``.
        logs
            Folder of logs; those of programs that fail stay.
        pads
            Whether ports get the pads of their pins: False where nothing is known of pins, None
            where the netlist is simulated and keeps its ports as they are.

        Raises
        ------
        ToolError
            A program is missing or failed.
        """

    @abstractmethod
    def place(
        self, design: Design, mapped: Mapped, folder: Path, logs: Path,
        *, seeds: Sequence[int], bitstream: bool, progress: Progress = say_nothing,
    ) -> SynthesisResult:  # fmt: skip
        """Place and route what a folder has mapped; the folder receives the files of the result.

        Parameters
        ----------
        seeds
            Of placements, in ascending order; the first one that is in time is taken.
        bitstream
            Whether one is wanted.

        Raises
        ------
        TargetError
            The design does not fit, no placement has a route, or the toolchain does not have the
            device.
        ToolError
            A program is missing or failed for another reason.

        Notes
        -----
        A missed clock is a result, not an error.
        """

    def count(self, design: Design, folder: Path, log: Path) -> dict[str, tuple[int, int]]:
        """Return how much of each resource a mapped design takes, unplaced, and how much there is.

        Raises
        ------
        TargetError
            The design does not fit.
        UsageError
            The toolchain does not place.
        """
        raise self.refusal("what a design takes")

    def attempt(self, design: Design, folder: Path, seed: int, log: Path) -> Attempt:
        """Place :attr:`.Design.netlist` of a folder with one seed, without a bitstream.

        Raises
        ------
        TargetError
            The design does not fit, or this seed has no route.
        UsageError
            The toolchain does not place.
        """
        raise self.refusal("the clock of a design")

    def refusal(self, what: str) -> UsageError:
        """Return the error of a request for what only placement tells."""
        return UsageError(
            f"{self.title} does not place designs, so nothing tells {what}",
            remedy="ask for a board of another family, or for no more than a plan",
        )

    @property
    def identities(self) -> tuple[str, ...]:
        """Names and versions of the programs that a result depends on, for the keys of caches."""
        return tuple(find_tool(program).identity for program in self.programs)


def toolchain_of(family: Family) -> Toolchain:
    """Return the toolchain that a family names; its module is imported only now."""
    module, _, name = family.toolchain.partition(":")
    found = getattr(import_module(module), name)
    assert isinstance(found, Toolchain), f"{family.toolchain} is no toolchain"
    return found
