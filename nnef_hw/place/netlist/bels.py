"""Nextpnr's names of places in a device: bels."""

from __future__ import annotations

import re

__all__ = ["place_of"]

_BEL = re.compile(r"X(\d+)/?Y(\d+)")


def place_of(name: str) -> tuple[int, int] | None:
    """Return column and row in nextpnr's name of a place; None if it names none."""
    match = _BEL.match(name)
    return (int(match[1]), int(match[2])) if match else None
