"""The fastest clock of a design, which only place and route knows.

Where nothing but the PLL depends on it, its setting follows one placement: what place and route is
asked for, and the setting for what is reached. Elsewhere the clock is a constant of the netlist,
and one placement after another is asked for it.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.boards import Board
from nnef_hw.boards.interfaces import HostLink, Interface
from nnef_hw.codegen.board import fastest_clock, why_constant
from nnef_hw.errors import TargetError, UnroutedError
from nnef_hw.hardware.devices import Target
from nnef_hw.host.protocol import RATIO_BITS, RATIO_CYCLES
from nnef_hw.place.toolchain import Setting, Tuning
from nnef_hw.report.model.clock import ClockChoice

__all__ = [
    "GAIN", "MOST_UNROUTED", "PROBE_FACTOR", "UNROUTED_SHARE", "asked_clock", "choice_of",
    "search_clock", "slower_clocks", "tuning_of",
]  # fmt: skip

MARGIN = 0.02
"""Share of what a routed design reaches that its PLL stays below.

Chosen: nextpnr's times are those of the slowest chip, cold or hot; what they do not have is the
jitter of a PLL (150 to 300 ps from peak to peak by the data sheets, of 10 to 30 ns).
"""
PROBE_FACTOR = 2.0
"""Factor of a board's clock that no design reaches, so that each shows its fastest one."""
LEAST_BYTE_CYCLES = 20
"""Cycles of the accelerator's clock between two bytes of a link: it takes 16, and the crossing."""

MOST_CLOCKS = 6
"""Clocks that are tried before the fastest that was met is taken."""
NEXT_SHARE = 0.98
"""The fastest clock that is tried after one that was missed, as a share of it."""
GAIN = 1.01
"""Factor that a further try has to promise over the best clock so far."""
UNROUTED_SHARE = 0.5
"""The fastest clock that is tried after one for which there was no route, as a share of it."""
MOST_UNROUTED = 2
"""Clocks without a route before any was met, after which there is none to be expected."""

MOST_CHAINED = 8
"""Adders between two registers for which clocks are tried where latency counts."""
WIDEST_SUM = 24
"""Bits of these adders, as many as sums of most networks have."""


def slower_clocks(target: Target, link: HostLink) -> Iterator[float]:
    """Yield clocks below the usual one that can be had, each with time for one more adder."""
    for adders in range(2, MOST_CHAINED + 1):
        clock = target.device.family.adders.clock_mhz(adders, WIDEST_SUM)
        if clock >= target.clock_mhz:
            continue
        if not isinstance(target, Board):
            yield clock
            continue
        with contextlib.suppress(TargetError):
            yield fastest_clock(target, clock, (link,))


def asked_clock(board: Board, factor: float = 1.0) -> float:
    """Return the clock in MHz that place and route is asked for, so that the board's is left.

    It is the next one that the PLL makes; ``factor`` asks for so many times as much.
    """
    wanted = factor * board.clock_mhz / (1 - MARGIN)
    frequencies: tuple[float, ...] = board.frequencies
    made = [mhz for mhz in frequencies if mhz != board.input_mhz]
    return min((mhz for mhz in made if mhz >= wanted), default=max(made))


def tuning_of(board: Board, link: HostLink) -> Tuning:
    """Return how a board's PLL is set to what a routed design reaches."""
    most = board.input_mhz * ((1 << RATIO_BITS) - 1) / RATIO_CYCLES
    least = LEAST_BYTE_CYCLES * link.bytes_per_second(board.input_mhz) / 1e6

    def choose(reached_mhz: float) -> Setting | None:
        pll = board.setting_below(min((1 - MARGIN) * reached_mhz, most))
        if pll is None or (link.keeps_time and pll.output_mhz < least):
            return None
        return Setting(pll.output_mhz, pll.parameters)

    return Tuning(board.input_mhz, board.device.family.pll_class().outputs, choose)


def choice_of(
    target: Target,
    plan: AcceleratorPlan,
    link: HostLink,
    others: Sequence[type[Interface]] = (),
    *,
    clock_mhz: float | None = None,
    fixed: bool = False,
    searched: bool = False,
) -> ClockChoice:
    """Return how the clock of a design is decided.

    Parameters
    ----------
    link, others
        The host link, and kinds of sources and sinks.
    clock_mhz
        The clock; by default that of the plan.
    fixed
        Whether the clock is one that was asked for.
    searched
        Whether one placement after another is asked for a clock.
    """
    clock = clock_mhz or plan.clock_mhz
    if not isinstance(target, Board):
        return ClockChoice("option" if fixed else "system", clock)
    why = why_constant(target, clock, link, others, has_images=bool(plan.images))
    if searched:
        return ClockChoice("search", clock, reason=why or "the PLL makes none that is low enough")
    if fixed:
        return ClockChoice("option", clock)
    if why:
        return ClockChoice("constant", clock, reason=why)
    return ClockChoice("routing", clock, margin=MARGIN)


def search_clock(
    probe: float,
    available: Callable[[float], float],
    place: Callable[[float], tuple[float, bool]],
    *,
    gain: float = GAIN,
) -> float:
    """Return the fastest clock that was met, in MHz; it is the one that was placed last.

    A placement for another clock is another placement, so that what one reaches need not be what
    the next one does.

    Parameters
    ----------
    probe
        Limit of the first clock, beyond what the design reaches.
    available
        The fastest clock up to a limit; raises an error if there is none.
    place
        Places the design for a clock; returns the clock that it reaches, and if that is enough.
    gain
        Factor that a further try has to promise over the best clock; infinite for the first clock
        that is met, from the probe downwards.

    Raises
    ------
    UnroutedError
        If no placement has a route, for several clocks.
    """
    limit, missed, met, tried, unrouted = probe, math.inf, 0.0, 0.0, 0
    for count in itertools.count(1):
        tried = available(limit)
        try:
            reached, enough = place(tried)
        except UnroutedError:
            # the harder a clock is, the more of the shortest wires are wanted
            unrouted += 1
            if not met and unrouted >= MOST_UNROUTED:
                raise
            reached, enough = UNROUTED_SHARE * tried, False
        if enough:
            met = tried
        else:
            missed = NEXT_SHARE * tried
        limit = min(reached, missed)
        if met and (count >= MOST_CLOCKS or available(limit) < gain * met):
            break
    if tried != met:
        place(met)
    return met
