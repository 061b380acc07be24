"""Whether nextpnr's router2 still gets on with a design."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path

__all__ = ["Congestion"]

PATIENCE = 30
"""Iterations of router2 that bring nothing, after which it is stopped."""
MANY = 500
"""By how many wires more than twice the fewest so far router2 goes astray.

Measured on an ECP5-85F: 812 wires that several nets want grew to 3,825 within 23 iterations, each
longer than the one before, since what gives way is late and taken up again. Routes that end well
had less and less of them, with at most some dozens more for a while.

While there are as many as this they halve within :data:`SPAN` iterations, or router2 crawls.
Measured there: 47 routes that ended well had at most 15% of those ten iterations before. Two
without an end had half of 2,700 at iteration 22 and 77% of 1,560 at 27.
"""
SPAN = 10
"""Iterations after which there are half as many wires that several nets want."""
FLOOD, EARLY, LEFT = 10_000, 3, 0.42
"""As many wires in conflict of which so many iterations leave more than this share, or it crawls.

Measured there: routes that ended well left at most 41%, the last 16 of them 14% to 19%, those
without an end 42% to 69% (a layer of adders for every weight, whose iterations took minutes).
"""
FEW = 10
"""Wires in conflict that are worth a route in another order.

Measured there: one wire was wanted by two nets from iteration 30 to 56, with nothing late; another
route of the same placement had none after 29 iterations.
"""
_ITERATION = re.compile(
    rb"\biter=(\d+) wires=\d+ overused=(\d+)\b(?:[^\n]*\btmgfail=(\d+)\b)?[^\n]*\n"
)


class Congestion:
    """Follows router2 in a log that is being written.

    It has no limit of its own: a placement without a route keeps it busy for ever. Every iteration
    tells how many wires several nets want; with a route there are none in the end. Where it takes
    up again what is late, it tells how many arcs are, and goes on until there are none of these
    either.

    Parameters
    ----------
    log
        What nextpnr prints; it need not exist yet.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._fewest: tuple[int, int] | None = None
        self._since = 0
        self._last: deque[int] = deque(maxlen=SPAN)
        self._is_astray = False
        self._crawls = False
        self.iterations = 0
        self.overused = 0
        self.late = 0

    @property
    def is_snag(self) -> bool:
        """Whether a few wires are all that is left: in another order they may have a way."""
        return not self.late and 0 < self.overused < FEW

    def is_stuck(self) -> bool:
        """Whether iterations bring nothing or little (:data:`PATIENCE`, :data:`SPAN`), or worse."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except FileNotFoundError:
            return False
        for match in _ITERATION.finditer(text):
            self.iterations, self.overused = int(match[1]), int(match[2])
            self.late = int(match[3] or 0)
            left = self.overused, self.late
            if self._fewest is None or left < self._fewest:
                self._fewest, self._since = left, self.iterations
            self._is_astray |= self.overused > 2 * self._fewest[0] + MANY
            if len(self._last) == SPAN:
                self._crawls |= self.overused >= max(MANY, self._last[0] / 2)
            if len(self._last) >= EARLY:
                self._crawls |= self.overused >= max(FLOOD, LEFT * self._last[-EARLY])
            self._last.append(self.overused)
        # a line that is not complete yet is read again
        self._read += text.rfind(b"\n") + 1
        lags = self.iterations - self._since >= PATIENCE
        return self._is_astray or self._crawls or lags
