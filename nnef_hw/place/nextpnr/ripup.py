"""Promises of placements, and clocks that are worth a route that rips up late nets.

Router2 goes on with ``--tmg-ripup`` until nothing is late, and has no end where that cannot be.
What it holds then is by far better than a route without the option, but is not written. So a clock
that turns out to be out of reach is followed by one that is in reach: what nextpnr estimated after
placement, with wires a little longer than those of a route without congestion.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.place.nextpnr.policy import MARGIN, REACH

__all__ = [
    "estimated_share", "is_in_reach", "raised", "reached_for", "set_clock", "stated_for",
]  # fmt: skip

HEAD = 10_000
"""Characters at the begin of a placed netlist, among which are nextpnr's settings."""
_ESTIMATE = re.compile(r": Max frequency for clock .*: ([\d.]+) MHz \(\w+ at ([\d.]+) MHz\)")
_TARGET = re.compile(rb'"target_freq": "([\d.]+)"')


def estimated_share(log: str) -> float:
    """Return by what factor clocks reach their constraints, as nextpnr estimates after placement.

    It is infinite without a clock.
    """
    found = _ESTIMATE.findall(log)
    return min((float(mhz) / float(limit) for mhz, limit in found), default=math.inf)


def is_in_reach(frequency_mhz: float, estimate_mhz: float) -> bool:
    """Return whether a placement is worth to be routed for a clock."""
    return raised(frequency_mhz) <= REACH * estimate_mhz


def raised(frequency_mhz: float) -> float:
    """Return the frequency in MHz that the router aims at for a clock."""
    return MARGIN * frequency_mhz


def reached_for(report: Path, aim_mhz: float) -> float:
    """Return the frequency of the clock that a route aimed at; infinite without one.

    It may be less than the aim, and than what was wanted, though router2 saw nothing late: its last
    iterations make late what it does not look at again.
    """
    clocks = json.loads(report.read_text())["fmax"].values()
    return min((c["achieved"] for c in clocks if _is_aim(c, aim_mhz)), default=math.inf)


def set_clock(netlist: Path, frequency_mhz: float) -> None:
    """Let a placed netlist be routed for a clock: its settings go before nextpnr's options."""
    with netlist.open("r+b") as file:
        head = file.read(HEAD)
        found = _TARGET.search(head)
        assert found is not None, f"{netlist} has no clock"
        # as long as that of nextpnr, which has six decimals: what follows stays where it is
        file.seek(found.start(1))
        file.write(f"{frequency_mhz * 1e6:0{len(found[1])}.1f}".encode())


def stated_for(report: Path, aim_mhz: float, frequency_mhz: float) -> dict[str, object]:
    """Return nextpnr's report, with the clock that was asked for where it names the aim."""
    value: JsonObject = json.loads(report.read_text())
    for clock in value["fmax"].values():
        if _is_aim(clock, aim_mhz):
            clock["constraint"] = frequency_mhz
    report.write_text(json.dumps(value) + "\n")
    return value


def _is_aim(clock: Mapping[str, float], aim_mhz: float) -> bool:
    return math.isclose(clock["constraint"], aim_mhz, rel_tol=1e-4)
