"""Constraints of a board's top: its pins and its input clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nnef_hw.boards import Board
from nnef_hw.boards.hardware.pins import plan_pins
from nnef_hw.boards.interfaces import DEFAULT_LINK, PinUser
from nnef_hw.errors import TargetError
from nnef_hw.hardware.families import Pin
from nnef_hw.place.toolchain import toolchain_of

__all__ = ["board_constraints"]


def board_constraints(
    board: Board,
    users: Sequence[PinUser] = (DEFAULT_LINK,),
    memories: Mapping[str, Pin] | None = None,
) -> str:
    """Return pins and input clock in the language of the family's toolchain.

    ``users`` are those of :func:`.plan_pins`, ``memories`` the pins of memories that are used, as
    :class:`.Pin` by port.

    Raises
    ------
    TargetError
        When a memory has the pin of something else; also as :func:`.plan_pins`.
    """
    pins = plan_pins(board, users).by_bit
    sites = {pin.site: name for name, pin in pins.items()}
    for name, pin in (memories or {}).items():
        if pin.site in sites:
            raise TargetError(
                f"board {board.name!r}: {sites[pin.site]} and {name} are both pin {pin.site}"
            )
    pins |= memories or {}
    return toolchain_of(board.device.family).constraints(pins, board.input_mhz)
