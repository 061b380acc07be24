"""The hardware of a board: its pins, clock, reset, and the linked core."""

from amaranth import *
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.hardware.clocks import BOARD_DOMAIN
from nnef_hw.boards.hardware.pins import plan_pins
from nnef_hw.boards.interfaces import CLOCK, DEFAULT_LINK, STATUS
from nnef_hw.rtl.readers.pads import connect_pads, pad_ports

__all__ = ["BoardTop", "board_top"]

# Longer than block RAMs need after configuration (iCE40: some give zeros for a few microseconds).
STARTUP_SECONDS = 15e-6


def board_top(
    board, accelerator, freq_mhz=None, manifest_hash=bytes(32), *, link=DEFAULT_LINK,
    sources=None, sinks=None, loop=None, frames=None, queues=None, layers=0, batch=1,
    has_own_clock=False,
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
    link : HostLink
    sources, sinks, loop, frames, queues, layers, batch
        The same as in :class:`.LinkedCore`.
    has_own_clock : bool
        The PLL's setting may change after routing: link and reset keep the oscillator's time.

    Returns
    -------
    top : BoardTop
        For ``verilog.convert(top, name="board_top", ports=ports, platform=...)``.
    ports : list of Signal
        ``clk``, the pins of link, sources and sinks, if there is one ``led``, and what goes to
        memories' pads.

    Raises
    ------
    TargetError
        When the board lacks pins, cannot make the clock, or the link cannot work with it.
    """
    others = [*(sources or {}).values(), *(x for found in (sinks or {}).values() for x in found)]
    pins = plan_pins(board, (link, *others))
    pll = board.clock(freq_mhz or board.clock_mhz)
    if has_own_clock and pll is None:
        raise ValueError(f"{board.name} has no PLL for {freq_mhz} MHz")
    is_behind = pll is not None and not has_own_clock
    clk_hz = round((pll.output_mhz if is_behind else board.input_mhz) * 1e6)
    for interface in (link, *others):
        interface.check_clock(clk_hz)
    core = link.core_class()(
        accelerator, clk_hz=clk_hz, has_own_clock=has_own_clock, link=link,
        sources=sources, sinks=sinks, loop=loop, manifest_hash=manifest_hash, frames=frames,
        queues=queues, layers=layers, batch=batch, long_wires=board.device.long_wires)
    inverted = {port: pins.inverted(port) for port in pins.pins if port != CLOCK}
    top = BoardTop(core, pll=pll, clk_hz=clk_hz, inverted=inverted)
    used = [getattr(top, name) for name in core.pins]
    memories = [getattr(top, name) for name in pad_ports((*core.pads, *core.wires))]
    if memories:
        memories.append(top.core_clk)
    return top, [top.clk, *used, *([top.led] if STATUS in pins.pins else []), *memories]


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
        That of the core.
    inverted : dict of int
        By port, a 1 for each bit whose pin means 1 by a low level.

    Members
    -------
    clk : In(1)
        Oscillator.
    rx, tx, or the pins of another link; pins of sources and sinks
        Wires from and to the host, and others.
    led : Out(1)
        Status, see :class:`.LinkedCore`.
    core_clk : Out(1)
        The core's clock, for the pads of memories; only if there are some, as their ports are.
    """

    def __init__(self, core, *, pll, clk_hz, inverted=None):
        self.core = core
        self.pll = pll
        self.startup_cycles = 1 << (round(clk_hz * STARTUP_SECONDS) - 1).bit_length()
        self.inverted = inverted or {}
        self.latency = core.latency
        self.pads = (*core.pads, *core.wires)
        ports = pad_ports(self.pads)
        if ports:
            ports["core_clk"] = Out(1)
        super().__init__({"clk": In(1), **core.pins, "led": Out(1), **ports})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        core_clk = self.core_clk if self.pads else Signal()
        pll_locked = Signal()
        sync.clk = core_clk
        domain = "sync"
        if self.pll is None:
            m.d.comb += [core_clk.eq(self.clk), pll_locked.eq(1)]
        elif not self.core.has_own_clock:
            m.submodules.pll = self.pll.instance(self.clk, core_clk, pll_locked)
        else:
            domain = BOARD_DOMAIN
            board = ClockDomain(domain, reset_less=True)
            m.domains += board
            m.submodules.pll, board.clk = self.pll.instance_with_input(
                self.clk, core_clk, pll_locked)

        locked = Signal()
        started = Signal()
        timer = Signal(range(self.startup_cycles))
        m.submodules.locked = cdc.FFSynchronizer(pll_locked, locked, o_domain=domain)
        with m.If(~locked):
            m.d[domain] += [timer.eq(0), started.eq(0)]
        with m.Elif(timer == self.startup_cycles - 1):
            m.d[domain] += started.eq(1)
        with m.Else():
            m.d[domain] += timer.eq(timer + 1)

        m.submodules.core = core = self.core
        if core.has_own_clock:
            m.d.comb += core.board_reset.eq(~started)
            ready = Signal()
            m.submodules.started = cdc.FFSynchronizer(started, ready)
            started = ready
        for name, member in core.pins.items():
            inner, outer = getattr(core, name), getattr(self, name)
            invert = self.inverted.get(name, 0)
            if member.flow == In:
                m.d.comb += inner.eq(outer ^ invert if invert else outer)
            else:
                m.d.comb += outer.eq(inner ^ invert if invert else inner)
        connect_pads(m, self.pads, core, self)
        m.d.comb += [
            core.reset.eq(~started), self.led.eq(core.led ^ bool(self.inverted.get(STATUS))),
        ]
        return m
