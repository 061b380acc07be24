"""A board as data; what needs Amaranth is in :mod:`nnef_hw.boards.hardware.top`."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from nnef_hw.boards.hardware.memories import Memory, Psram, Sdram, SpiFlash
from nnef_hw.boards.hardware.pll import Pll
from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import Target
from nnef_hw.hardware.families import Family

__all__ = ["Board", "Memory", "Psram", "Sdram", "SpiFlash"]

FREQUENCY_TOLERANCE = 1e-3
PORTS = frozenset({"clk", "rx", "tx"})
SPI_PORTS = frozenset({"cs_n", "copi", "cipo", "sck"})


@dataclass(frozen=True, kw_only=True)
class Board(Target):
    """A board that the toolkit can build for; every fact about it is in one file.

    Parameters
    ----------
    part, package, speed
        The FPGA's names in nextpnr: ``85k``, ``CABGA381``, speed grade ``6`` ("" on an iCE40).
    input_mhz
        Oscillator.
    pins
        The place of each of the ports ``clk``, ``rx``, ``tx`` and, if there is one, ``led``: a
        resource of the platform (``clk12``), a subsignal of one (``uart.rx``), or a pin of the
        package (``@A9``).
    spi
        Pins of ``cs_n``, ``copi``, ``cipo`` and ``sck`` for the link SPI, if there are any.
    platform
        ``module:class`` of amaranth-boards (or another module) that has the resources; may be
        empty if all pins are of the package.
    attributes
        Attributes of pins of the package, as the family's constraints name them.
    clock_pad
        The clock's pin is the pad of an iCE40's PLL.
    memories
        Beside the FPGA's own; ``--arch engine`` may keep its program in one.
    flash
        Arguments of openFPGALoader, but for the file.
    flash_by_hand
        What to do with the bitstream ``{file}`` where openFPGALoader cannot help.

    Raises
    ------
    TargetError
        If ``input_mhz`` is not a frequency, or ports lack pins or do not exist.
    """

    part: str
    package: str
    input_mhz: float
    pins: Mapping[str, str]
    spi: Mapping[str, str] = field(default_factory=dict)
    speed: str = ""
    platform: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    clock_pad: bool = False
    memories: tuple[Memory, ...] = ()
    flash: tuple[str, ...] = ()
    flash_by_hand: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.input_mhz, (int, float)) or not self.input_mhz > 0:
            raise TargetError(f"board {self.name!r}: input_mhz must be a positive number, not "
                              f"{self.input_mhz!r}")
        for member, needed, optional in (("pins", PORTS, {"led"}), ("spi", SPI_PORTS, set())):
            present = set(getattr(self, member))
            missing, unknown = sorted(needed - present), sorted(present - needed - optional)
            if missing and (present or member == "pins"):
                raise TargetError(f"board {self.name!r}: {member} lack {', '.join(missing)}")
            if unknown:
                raise TargetError(f"board {self.name!r}: {member} name {', '.join(unknown)}, "
                                  f"of {', '.join(sorted(needed | optional))}")

    @property
    def spi_flash(self) -> SpiFlash | None:
        """The flash that designs can read, if there is one."""
        return next((x for x in self.memories if isinstance(x, SpiFlash)), None)

    @property
    def sdram(self) -> Sdram | None:
        """The SDRAM that designs can use, if there is one."""
        return next((x for x in self.memories if isinstance(x, Sdram)), None)

    @property
    def frequencies(self) -> tuple[float, ...]:
        """Every clock in MHz that can be made, in ascending order."""
        return tuple(sorted(self._clocks()))

    def clock(self, freq_mhz: float) -> Pll | None:
        """Find the settings of the PLL for a frequency; None if the oscillator has it already.

        Raises
        ------
        TargetError
            When no setting comes within 0.1% of it.
        """
        frequencies = self.frequencies
        position = bisect_left(frequencies, freq_mhz)
        nearest = frequencies[max(position - 1, 0):position + 1]
        best = min(nearest, key=lambda mhz: abs(mhz - freq_mhz))
        if abs(best - freq_mhz) > FREQUENCY_TOLERANCE * freq_mhz:
            raise TargetError(
                f"{self.name} cannot make {freq_mhz:g} MHz from its {self.input_mhz:g} MHz",
                remedy="nearest possible: " + " or ".join(f"{mhz:.6g}" for mhz in nearest) + " MHz")
        return self._clocks()[best]

    def clock_below(self, freq_mhz: float) -> float:
        """Return the fastest clock in MHz that can be made and is not above a frequency."""
        return max((mhz for mhz in self.frequencies if mhz <= freq_mhz), default=self.input_mhz)

    def _clocks(self) -> dict[float, Pll | None]:
        return _clocks(self.device.family, self.input_mhz, self.clock_pad)


@cache
def _clocks(
    family: Family, input_mhz: float, clock_pad: bool
) -> dict[float, Pll | None]:
    """Tabulate settings by frequency: the first ones, with the least dividers, of each."""
    clocks: dict[float, Pll | None] = {input_mhz: None}
    for pll in family.pll_class().settings(input_mhz, pad=clock_pad):
        clocks.setdefault(round(pll.output_mhz, 9), pll)
    return clocks
