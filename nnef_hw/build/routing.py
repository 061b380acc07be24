"""Whether nextpnr's router2 still gets on with a design."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["Congestion"]

PATIENCE = 30
"""Iterations of router2 that bring nothing, after which it is stopped."""
MANY = 500
"""By how many wires more than twice the fewest so far router2 goes astray.

Measured on an ECP5-85F: 812 wires that several nets want grew to 3,825 within 23 iterations, each
longer than the one before, since what gives way is late and taken up again. Routes that end well
had less and less of them, with at most some dozens more for a while.
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
        self._is_astray = False
        self.iterations = 0
        self.overused = 0

    def is_stuck(self) -> bool:
        """Whether the last :data:`PATIENCE` iterations have brought nothing, or it goes astray."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except FileNotFoundError:
            return False
        for match in _ITERATION.finditer(text):
            self.iterations, self.overused = int(match[1]), int(match[2])
            left = self.overused, int(match[3] or 0)
            if self._fewest is None or left < self._fewest:
                self._fewest, self._since = left, self.iterations
            self._is_astray |= self.overused > 2 * self._fewest[0] + MANY
        # a line that is not complete yet is read again
        self._read += text.rfind(b"\n") + 1
        return self._is_astray or self.iterations - self._since >= PATIENCE
