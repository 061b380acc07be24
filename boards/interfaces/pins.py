"""Pins: what a board has, and what a design needs of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from nnef_hw.errors import TargetError

__all__ = ["ANY_NUMBER", "CLOCK", "STATUS", "Direction", "PinUse", "PinUser", "Pins"]

CLOCK = "clk"
"""Name of the oscillator's pin, which every design uses."""
STATUS = "led"
"""Name of the LED that says that the accelerator is busy, which a board need not have."""
ANY_NUMBER = 0
"""Width of a use that takes as many pins as the board has."""


class Direction(Enum):
    """Which way a signal passes the FPGA's pins."""

    INPUT = "input"
    OUTPUT = "output"
    BOTH = "bidirectional"

    def allows(self, other: "Direction") -> bool:
        """Whether a pin of this direction can be used in another one."""
        return self in {other, Direction.BOTH}


@dataclass(frozen=True)
class Pins:
    """Pins of a board under one name, in order.

    In a board's file a string stands for one place, and a tuple of strings for several.

    Parameters
    ----------
    places
        A resource of the platform (``clk12``, the fourth of its LEDs: ``led:3``), a subsignal of
        one (``uart.rx``), or a pin of the package (``@A9``).
    direction
        What the circuit around the pin allows; that of a platform's resource counts as well.
    invert
        A low level means 1; of pins of the package, since a platform says it of its own.
    attributes
        Beside those of the platform, or of the board for pins of the package; as the family's
        constraints name them.

    Raises
    ------
    TargetError
        If there are no places, or they are no strings.
    """

    places: tuple[str, ...]
    direction: Direction = Direction.BOTH
    invert: bool = False
    attributes: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places = self.places
        if not isinstance(places, tuple) or not places or not all(
            isinstance(place, str) and place for place in places
        ):
            raise TargetError(f"pins must have a tuple of names of places, not {places!r}",
                              remedy="write '@A9', a resource as 'uart.rx', or a tuple of them")

    @classmethod
    def of(cls, value: "str | tuple[str, ...] | Pins") -> "Pins":
        """Return the pins that a board's file names in any of the three ways."""
        if isinstance(value, Pins):
            return value
        return cls((value,) if isinstance(value, str) else value)


@dataclass(frozen=True)
class PinUse:
    """Use of pins by a design: direction and number.

    Parameters
    ----------
    direction
        ``INPUT`` or ``OUTPUT``.
    width
        How many; ``ANY_NUMBER`` takes all that the board has under the name.
    """

    direction: Direction
    width: int = 1


class PinUser(Protocol):
    """Whatever needs pins of a board: a link, a source, a sink."""

    @property
    def title(self) -> str:
        """Name of the user in messages: ``link spi``."""

    @property
    def pins(self) -> Mapping[str, PinUse]:
        """Pins that the user needs, by the name that board and top have for them."""
