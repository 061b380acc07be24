"""Choice of a design's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ClockChoice"]


@dataclass(frozen=True, slots=True)
class ClockChoice:
    """Choice of a design's clock, and its reason.

    Parameters
    ----------
    by
        ``routing``: the PLL is set after routing. ``option``: ``--freq`` fixes it. ``search``: one
        placement after another is asked for a clock. ``constant``: part of the netlist.
        ``system``: the design around plain IP gives it.
    planned_mhz
        The clock that cycles are planned for.
    margin
        Share of the clock that is reached that a PLL stays below, where it is set after routing.
    reason
        Why the PLL cannot be set after routing; empty where it can be, or where ``--freq`` decides.
    """

    by: Literal["routing", "option", "search", "constant", "system"]
    planned_mhz: float
    margin: float = 0.0
    reason: str = ""

    @property
    def rule(self) -> str:
        """The choice in words, without the clock."""
        if self.by == "routing":
            return (
                f"set after routing to the fastest that the PLL makes {self.margin:.0%} below what "
                "is reached"
            )
        if self.by == "option":
            return "fixed by --freq"
        if self.by == "system":
            return "given by the design around it"
        way = "found by one placement after another" if self.by == "search" else "a constant"
        return f"{way}: {self.reason}"

    @property
    def text(self) -> str:
        """The choice in words."""
        planned = "planned for " if self.by in {"routing", "system"} else ""
        return f"{planned}{self.planned_mhz:.6g} MHz, {self.rule}"
