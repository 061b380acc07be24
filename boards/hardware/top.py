"""The hardware of a board: pins from amaranth-boards, clock, reset, and the linked core."""

from importlib import import_module

from amaranth import *
from amaranth.build import DiffPairs, Pins
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.core import DEFAULT_BAUD, LinkedCore
from nnef_hw.boards.hardware.phy import UartPhy, phy_pins
from nnef_hw.boards.hardware.spi import SpiPhy
from nnef_hw.boards.hardware.uart import uart_divider
from nnef_hw.errors import TargetError
from nnef_hw.hardware.families import Pin
from nnef_hw.rtl.readers.pads import connect_pads, pad_ports

__all__ = ["BoardTop", "board_constraints", "board_pins", "board_top", "platform_resources"]

# Longer than block RAMs need after configuration (iCE40: some give zeros for a few microseconds).
STARTUP_SECONDS = 15e-6


def board_pins(board, link="uart"):
    """Pins of the top's ports with a link ``uart`` or ``spi``, as :class:`.Pin` by port.

    Raises
    ------
    TargetError
        When the platform of a board does not exist or lacks a resource that its file names, two
        ports have one pin, or the board has no pins for such a link.
    """
    places = dict(board.pins)
    if link == "spi":
        if not board.spi:
            raise TargetError(
                f"board {board.name!r} has no pins for SPI", remedy="use --link uart, or a board "
                "file of your own with them (docs/boards.md)")
        places = {port: place for port, place in places.items() if port not in {"rx", "tx"}}
        places.update(board.spi)
    pins = {port: _pin(board, place) for port, place in places.items()}
    for port, pin in pins.items():
        other = next(name for name, one in pins.items() if one.site == pin.site)
        if other != port:
            raise TargetError(f"board {board.name!r}: {other} and {port} are both pin {pin.site}")
    return pins


def _pin(board, place):
    if place.startswith("@"):
        return Pin(place[1:], False, dict(board.attributes))
    name, _, subsignal = place.partition(".")
    for item in platform_resources(board):
        if (item.name, item.number) == (name, 0):
            holders = [item] + [io for io in item.ios if subsignal and io.name == subsignal]
            pins = [io for io in holders[-1].ios if isinstance(io, (Pins, DiffPairs))]
            if len(pins) != 1:
                break
            attributes = {}
            for holder in holders:
                attributes.update(holder.attrs)
            # of a pair the positive pin stands for both
            single = pins[0].p if isinstance(pins[0], DiffPairs) else pins[0]
            return Pin(single.names[0], pins[0].invert, attributes)
    if not board.platform:
        raise TargetError(
            f"board {board.name!r}: pin {place!r} belongs to a platform, but the board names none",
            remedy="name its platform, or a pin of the package like '@A9'")
    raise TargetError(f"board {board.name!r}: its platform {board.platform!r} has no pin {place!r}")


def platform_resources(board):
    """Resources of the board's platform, none if it names none.

    Raises
    ------
    TargetError
        When the platform cannot be imported.
    """
    if not board.platform:
        return []
    module, _, name = board.platform.partition(":")
    try:
        return getattr(import_module(module), name).resources
    except (ImportError, ValueError, AttributeError) as error:
        raise TargetError(
            f"board {board.name!r}: platform {board.platform!r} cannot be imported: {error}",
            remedy="write module:class") from error


def board_constraints(board, link="uart", memories=None):
    """Pins and input clock in the language of the family's nextpnr.

    ``memories`` are the pins of memories that are used, as :class:`.Pin` by port.
    """
    pins = {**board_pins(board, link), **(memories or {})}
    return board.device.family.constraints(pins, board.input_mhz)


def board_top(
    board, accelerator, freq_mhz=None, manifest_hash=bytes(32), *, baud=DEFAULT_BAUD,
    frames=None, queues=None, layers=0, batch=1, link="uart",
):
    """Top of a board: accelerator, host link, clock and reset.

    Parameters
    ----------
    board : Board
    accelerator : wiring.Component
        The same as in :class:`.LinkedCore`.
    freq_mhz : float or None
        Clock of the accelerator, by default the board's.
    manifest_hash : bytes
        The 32 bytes by which a host recognises the build.
    baud : int
        Rate of the UART.
    frames, queues, layers, batch
        The same as in :class:`.LinkedCore`.
    link : str
        ``uart`` or ``spi``.

    Returns
    -------
    top : BoardTop
        For ``verilog.convert(top, name="board_top", ports=ports, platform=...)``.
    ports : list of Signal
        ``clk``, the link's pins, if the board has one ``led``, and what goes to memories' pads.
    """
    led = board_pins(board, link).get("led")
    pll = board.clock(freq_mhz or board.clock_mhz)
    clk_hz = round((pll.output_mhz if pll else board.input_mhz) * 1e6)
    try:
        phy = SpiPhy() if link == "spi" else UartPhy(uart_divider(clk_hz, baud))
    except ValueError as error:
        raise TargetError(str(error), remedy="choose another clock or baud rate") from None
    core = LinkedCore(
        accelerator, clk_hz=clk_hz, phy=phy, manifest_hash=manifest_hash, frames=frames,
        queues=queues, layers=layers, batch=batch, long_wires=board.device.long_wires)
    top = BoardTop(core, pll=pll, clk_hz=clk_hz, led_invert=led is not None and led.invert)
    pins = [getattr(top, name) for name in phy_pins(core.phy)]
    memories = [getattr(top, name) for name in pad_ports(core.pads)]
    if memories:
        memories.append(top.core_clk)
    return top, [top.clk, *pins, *([top.led] if led else []), *memories]


class BoardTop(wiring.Component):
    """Clock, power-on reset, and the :class:`.LinkedCore` they drive.

    Reset lasts until the PLL has been locked for 15 microseconds or more.

    Parameters
    ----------
    core : LinkedCore
        Everything behind clock and pins.
    pll : Pll or None
        Clock generator, if the oscillator is not the clock.
    clk_hz : int
        Frequency of the core's clock.
    led_invert : bool
        The LED is lit by a low level.

    Members
    -------
    clk : In(1)
        Oscillator.
    rx, tx, or the pins of another phy
        Wires from and to the host.
    led : Out(1)
        Status, see :class:`.LinkedCore`.
    core_clk : Out(1)
        The core's clock, for the pads of memories; only if there are some, as their ports are.
    """

    def __init__(self, core, *, pll, clk_hz, led_invert=False):
        self.core = core
        self.pll = pll
        self.startup_cycles = 1 << (round(clk_hz * STARTUP_SECONDS) - 1).bit_length()
        self.led_invert = led_invert
        self.latency = core.latency
        ports = pad_ports(core.pads)
        if ports:
            ports["core_clk"] = Out(1)
        super().__init__({"clk": In(1), **phy_pins(core.phy), "led": Out(1), **ports})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        core_clk = self.core_clk if self.core.pads else Signal()
        pll_locked = Signal()
        sync.clk = core_clk
        if self.pll is None:
            m.d.comb += [core_clk.eq(self.clk), pll_locked.eq(1)]
        else:
            m.submodules.pll = self.pll.instance(self.clk, core_clk, pll_locked)

        locked = Signal()
        started = Signal()
        timer = Signal(range(self.startup_cycles))
        m.submodules.locked = cdc.FFSynchronizer(pll_locked, locked)
        with m.If(~locked):
            m.d.sync += [timer.eq(0), started.eq(0)]
        with m.Elif(timer == self.startup_cycles - 1):
            m.d.sync += started.eq(1)
        with m.Else():
            m.d.sync += timer.eq(timer + 1)

        m.submodules.core = core = self.core
        for name, member in phy_pins(core.phy).items():
            inner, outer = getattr(core, name), getattr(self, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        connect_pads(m, core.pads, core, self)
        m.d.comb += [core.reset.eq(~started), self.led.eq(core.led ^ self.led_invert)]
        return m
