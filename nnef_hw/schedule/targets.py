"""Where a design may go, as the schedule sees it."""

from __future__ import annotations

from nnef_hw.boards import BOARDS, find_board
from nnef_hw.devices import Device, Target

__all__ = ["TARGETS", "Device", "Target", "find_target"]

TARGETS: tuple[Target, ...] = BOARDS


def find_target(name: str) -> Target:
    """Return the board of that name, as :func:`nnef_hw.boards.find_board`."""
    target: Target = find_board(name)
    return target
