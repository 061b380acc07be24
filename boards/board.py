"""What all boards have in common: pins from amaranth-boards, clock, reset, top."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache

from amaranth import *
from amaranth.build import Clock, Pins
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.core import DEFAULT_BAUD, LinkedCore
from nnef_hw.boards.uart import uart_divider
from nnef_hw.errors import TargetError

__all__ = ["Board", "BoardTop", "Pin"]

# Longer than block RAMs need after configuration (iCE40: some give zeros for a few microseconds).
STARTUP_SECONDS = 15e-6
FREQUENCY_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Pin:
    """A pin of the device: its package name, polarity, and what the board asks of it."""

    site: str
    invert: bool
    attributes: dict


class Board:
    """A board the toolkit can build for; one instance per board, found by ``get_board``.

    Attributes
    ----------
    name, aliases
        What users call it.
    family, device, package
        The FPGA, as nextpnr names its parts: ``ice40`` or ``ecp5``.
    constraints_suffix
        Of the file that nextpnr reads: ``pcf`` or ``lpf``.
    platform
        Class of amaranth-boards with the board's pins.
    pll
        Class of the clock generator's settings.
    clock_resource, led_resource
        Resources of the platform: input clock and status LED.
    default_mhz
        Clock of the accelerator unless somebody asks for another.
    """

    name = ""
    aliases = ()
    family = ""
    device = ""
    package = ""
    constraints_suffix = ""
    platform = None
    pll = None
    clock_resource = ""
    led_resource = ""
    default_mhz = 0.0

    def pin(self, resource, subsignal=None):
        """Pin of a resource of the platform, or of a subsignal of it.

        Raises
        ------
        KeyError
            When the platform has no such resource of one pin.
        """
        for item in self.platform.resources:
            if (item.name, item.number) == (resource, 0):
                holders = [item]
                if subsignal is not None:
                    holders += [io for io in item.ios if io.name == subsignal]
                [pins] = [io for io in holders[-1].ios if isinstance(io, Pins)]
                attributes = {}
                for holder in holders:
                    attributes.update(holder.attrs)
                return Pin(pins.names[0], pins.invert, attributes)
        raise KeyError(f"{self.name} has no pin {resource!r}")

    @property
    def input_mhz(self):
        """Frequency of the oscillator."""
        [clock] = [item.clock for item in self.platform.resources
                   if item.name == self.clock_resource]
        if not isinstance(clock, Clock):
            raise TypeError(f"{self.name} gives {self.clock_resource!r} no frequency")
        return clock.frequency / 1e6

    @property
    def frequencies(self):
        """Every clock in MHz that can be made, in ascending order."""
        return tuple(sorted(_clocks(self.pll, self.input_mhz)))

    def clock(self, freq_mhz):
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
        return _clocks(self.pll, self.input_mhz)[best]

    def board_top(self, accelerator, freq_mhz=None, manifest_hash=bytes(32), *, baud=DEFAULT_BAUD):
        """Top of the board: accelerator, host link, clock and reset.

        Parameters
        ----------
        accelerator : wiring.Component
            As in :class:`.LinkedCore`.
        freq_mhz : float or None
            Clock of the accelerator, by default ``default_mhz``.
        manifest_hash : bytes
            The 32 bytes by which a host recognises the build.
        baud : int
            Rate of the UART.

        Returns
        -------
        top : BoardTop
            For ``verilog.convert(top, name="board_top", ports=ports, platform=...)``.
        ports : list of Signal
            ``clk``, ``rx``, ``tx``, ``led``.
        constraints : str
            Text of the file that nextpnr reads.
        """
        pll = self.clock(freq_mhz or self.default_mhz)
        clk_hz = round((pll.output_mhz if pll else self.input_mhz) * 1e6)
        try:
            uart_divider(clk_hz, baud)
        except ValueError as error:
            raise TargetError(str(error), remedy="choose another clock or baud rate") from None
        core = LinkedCore(accelerator, clk_hz=clk_hz, baud=baud, manifest_hash=manifest_hash)
        top = BoardTop(core, pll=pll, clk_hz=clk_hz, led_invert=self.pin(self.led_resource).invert)
        return top, [top.clk, top.rx, top.tx, top.led], self.constraints()

    def pins(self):
        """Pins of the top's ports."""
        return {
            "clk": self.pin(self.clock_resource),
            "rx": self.pin("uart", "rx"),
            "tx": self.pin("uart", "tx"),
            "led": self.pin(self.led_resource),
        }

    def constraints(self):
        """Pins and input clock in the language of the family's nextpnr."""
        raise NotImplementedError


@cache
def _clocks(pll, input_mhz):
    """Tabulate settings by frequency: the first ones, with the least dividers, of each."""
    clocks = {input_mhz: None}
    for settings in pll.settings(input_mhz):
        clocks.setdefault(round(settings.output_mhz, 9), settings)
    return clocks


class BoardTop(wiring.Component):
    """Clock, power-on reset, and the :class:`.LinkedCore` they drive.

    Reset lasts until the PLL has been locked for 15 microseconds or more.

    Parameters
    ----------
    core : LinkedCore
        Everything behind clock and pins.
    pll : Ice40Pll or Ecp5Pll or None
        Clock generator, if the oscillator is not the clock.
    clk_hz : int
        Frequency of the core's clock.
    led_invert : bool
        The LED is lit by a low level.

    Members
    -------
    clk : In(1)
        Oscillator.
    rx : In(1)
        From the host.
    tx : Out(1)
        To the host.
    led : Out(1)
        Status, see :class:`.LinkedCore`.
    """

    def __init__(self, core, *, pll, clk_hz, led_invert=False):
        self.core = core
        self.pll = pll
        self.startup_cycles = 1 << (round(clk_hz * STARTUP_SECONDS) - 1).bit_length()
        self.led_invert = led_invert
        self.latency = core.latency
        super().__init__({"clk": In(1), "rx": In(1), "tx": Out(1), "led": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.domains.startup = startup = ClockDomain(reset_less=True)
        core_clk = Signal()
        pll_locked = Signal()
        sync.clk = startup.clk = core_clk
        if self.pll is None:
            m.d.comb += [core_clk.eq(self.clk), pll_locked.eq(1)]
        else:
            m.submodules.pll = self.pll.instance(self.clk, core_clk, pll_locked)

        locked = Signal()
        started = Signal()
        timer = Signal(range(self.startup_cycles))
        m.submodules.locked = cdc.FFSynchronizer(pll_locked, locked, o_domain="startup")
        m.d.comb += ResetSignal().eq(~started)
        with m.If(~locked):
            m.d.startup += [timer.eq(0), started.eq(0)]
        with m.Elif(timer == self.startup_cycles - 1):
            m.d.startup += started.eq(1)
        with m.Else():
            m.d.startup += timer.eq(timer + 1)

        m.submodules.core = core = self.core
        m.d.comb += [
            core.rx.eq(self.rx),
            self.tx.eq(core.tx),
            self.led.eq(core.led ^ self.led_invert),
        ]
        return m
