"""A board as data; what needs Amaranth is in :mod:`nnef_hw.boards.hardware.top`."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from nnef_hw.boards.hardware.memories import Memory, Psram, Sdram, SpiFlash
from nnef_hw.boards.hardware.pll import Pll
from nnef_hw.boards.interfaces import CLOCK, Pins, PinUser
from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import Target
from nnef_hw.hardware.families import Family

__all__ = ["Board", "Memory", "Pins", "Psram", "Sdram", "SpiFlash"]

FREQUENCY_TOLERANCE = 1e-3


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
        Places by name: a place (a resource of the platform, ``clk12``; a subsignal of one,
        ``uart.rx``; a pin of the package, ``@A9``), a tuple of several, or :class:`.Pins` with all
        that is known of them. A design uses ``clk`` and, if there is one, ``led``; what else it
        uses, links, sources and sinks say: ``rx``, ``tx``; ``cs_n``, ``copi``, ``cipo``, ``sck``;
        ``leds``. Those that nobody asks for do no harm.
    platform
        ``module:class`` of amaranth-boards (or another module) that has the resources; may be
        empty if all pins are of the package.
    attributes
        Attributes of pins of the package, as the family's constraints name them.
    clock_pad
        The clock's pin is the pad of an iCE40's PLL.
    has_pll
        The toolchain can make clocks of the oscillator's; otherwise this one is all there is.
    memories
        Beside the FPGA's own; ``--arch engine`` may keep its program in one.
    flash
        Arguments of openFPGALoader, but for the file.
    flash_by_hand
        What to do with the bitstream ``{file}`` where openFPGALoader cannot help.

    Raises
    ------
    TargetError
        If ``input_mhz`` is not a frequency, or there is no ``clk``, or a name has no places.
    """

    part: str
    package: str
    input_mhz: float
    pins: Mapping[str, str | tuple[str, ...] | Pins]
    speed: str = ""
    platform: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    clock_pad: bool = False
    has_pll: bool = True
    memories: tuple[Memory, ...] = ()
    flash: tuple[str, ...] = ()
    flash_by_hand: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.input_mhz, (int, float)) or not self.input_mhz > 0:
            raise TargetError(f"board {self.name!r}: input_mhz must be a positive number, not "
                              f"{self.input_mhz!r}")
        if CLOCK not in self.pins:
            raise TargetError(f"board {self.name!r}: pins lack {CLOCK}, the oscillator's")
        for name, places in self.pins.items():
            try:
                Pins.of(places)
            except TargetError as error:
                raise TargetError(f"board {self.name!r}: {name}: {error.reason}",
                                  remedy=error.remedy) from None

    def has_pins(self, user: PinUser) -> bool:
        """Whether the board has all the pins that somebody needs."""
        return user.pins.keys() <= self.pins.keys()

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

    def setting_below(self, freq_mhz: float) -> Pll | None:
        """Return the PLL's setting for the fastest clock up to a frequency; None if it has none."""
        made = (pll for pll in self._clocks().values() if pll is not None)
        return max(
            (pll for pll in made if pll.output_mhz <= freq_mhz),
            key=lambda pll: pll.output_mhz, default=None)

    def _clocks(self) -> dict[float, Pll | None]:
        if not self.has_pll:
            return {self.input_mhz: None}
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
