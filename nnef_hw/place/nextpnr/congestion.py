"""Whether nextpnr's router2 still gets on with a design."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path

from nnef_hw.place.nextpnr.policy import EARLY, FEW, FLOOD, LEFT, MANY, PATIENCE, SPAN

__all__ = ["Congestion"]

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
        """Whether iterations bring nothing or little (PATIENCE, SPAN of the policy), or worse."""
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
