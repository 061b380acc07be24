"""Pins of a design on a board: which there are, who uses them, and which are free."""

from importlib import import_module

from amaranth import build

from nnef_hw.boards.interfaces import (
    ANY_NUMBER,
    CLOCK,
    DEFAULT_LINK,
    STATUS,
    Direction,
    Pins,
    PinUse,
)
from nnef_hw.errors import TargetError
from nnef_hw.hardware.families import Pin

__all__ = ["PinPlan", "board_pins", "count_pins", "plan_pins", "platform_resources"]

MOST_FREE = 12
"""Free pins that a message lists."""
DIRECTIONS = {"i": Direction.INPUT, "o": Direction.OUTPUT}
"""Directions of amaranth's pins; others are used in both."""


class PinPlan:
    """Pins of a design by port, in the order of the board's file.

    Parameters
    ----------
    pins : dict of list of Pin
        Of each port, in the order of its bits.
    uses : dict of PinUse
        How each port is used.
    """

    def __init__(self, pins, uses):
        self.pins = pins
        self.uses = uses

    @property
    def by_bit(self):
        """Each pin by the name of its port, with the bit behind it if there are several."""
        return {name: pin for port, pins in self.pins.items()
                for name, pin in zip(_bits(port, len(pins)), pins, strict=True)}

    def width(self, port):
        """Return how many pins a port has."""
        return len(self.pins[port])

    def inverted(self, port):
        """Return a number with a 1 for each bit of a port whose pin means 1 by a low level."""
        return sum(pin.invert << n for n, pin in enumerate(self.pins[port]))


def board_pins(board, users=(DEFAULT_LINK,)):
    """Return a design's pins as :class:`.Pin` by port: ``rx``, ``leds[0]``; see :func:`plan_pins`.

    Raises
    ------
    TargetError
        The same as for :func:`plan_pins`.
    """
    return plan_pins(board, users).by_bit


def plan_pins(board, users=(DEFAULT_LINK,)):
    """Give users their pins, besides the oscillator's and that of the status LED.

    The status LED is left out where the board has none, or its pin is somebody's.

    Parameters
    ----------
    board : Board
    users : Sequence[PinUser]
        The link, and sources and sinks that have pins.

    Returns
    -------
    PinPlan

    Raises
    ------
    TargetError
        When the board lacks pins that a user needs, or they do not suit; when the platform does not
        exist or lacks a resource that the board's file names; or when two ports have one pin.
    """
    uses = {CLOCK: PinUse(Direction.INPUT)}
    owners = {CLOCK: "the clock", STATUS: "the status LED"}
    for user in users:
        missing = [name for name in user.pins if name not in board.pins]
        if missing:
            raise _lacking(board, user, missing)
        for name, use in user.pins.items():
            if name in owners:
                raise TargetError(f"{owners[name]} and {user.title} both need the pin {name!r}",
                                  remedy="omit one of them")
            uses[name], owners[name] = use, user.title
    if STATUS in board.pins:
        uses[STATUS] = PinUse(Direction.OUTPUT)
    pins = {}
    for name in board.pins:
        if name in uses:
            width = uses[name].width
            found = _resolved(board, name, owners[name], uses[name].direction)
            if len(found) < width:
                raise TargetError(f"board {board.name!r} has {len(found)} pins {name!r}, and "
                                  f"{owners[name]} needs {width}")
            pins[name] = found if width == ANY_NUMBER else found[:width]
    if STATUS in pins:
        sites = {pin.site for port in pins if port != STATUS for pin in pins[port]}
        if any(pin.site in sites for pin in pins[STATUS]):
            del pins[STATUS], uses[STATUS]
    plan = PinPlan(pins, uses)
    by_site = {}
    for name, pin in plan.by_bit.items():
        other = by_site.setdefault(pin.site, name)
        if other != name:
            raise TargetError(f"board {board.name!r}: {other} and {name} are both pin {pin.site}")
    return plan


def count_pins(board, names):
    """Return how many pins a board has under each name; 0 where it has none."""
    return {name: len(Pins.of(board.pins[name]).places) if name in board.pins else 0
            for name in names}


def _bits(port, width):
    return [port] if width == 1 else [f"{port}[{n}]" for n in range(width)]


def _resolved(board, name, owner, direction):
    """Return the pins of a name, and check that they may be used in a direction."""
    pins = Pins.of(board.pins[name])
    found = []
    for place in pins.places:
        pin, allowed = _pin(board, place, pins)
        if not (pins.direction.allows(direction) and allowed.allows(direction)):
            raise TargetError(f"board {board.name!r}: pin {name!r} ({place}) is no "
                              f"{direction.value}, which {owner} needs")
        found.append(pin)
    return found


def _pin(board, place, pins):
    """Return a place's pin, and its direction by the platform."""
    if place.startswith("@"):
        return Pin(place[1:], pins.invert, {**board.attributes, **pins.attributes}), Direction.BOTH
    name, _, subsignal = place.partition(".")
    name, _, number = name.partition(":")
    for item in platform_resources(board):
        if item.name == name and str(item.number) == (number or "0"):
            holders = [item] + [io for io in item.ios if subsignal and io.name == subsignal]
            found = [io for io in holders[-1].ios if isinstance(io, (build.Pins, build.DiffPairs))]
            if len(found) != 1:
                break
            attributes = {}
            for holder in holders:
                attributes.update(holder.attrs)
            # of a pair the positive pin stands for both
            single = found[0].p if isinstance(found[0], build.DiffPairs) else found[0]
            pin = Pin(single.names[0], found[0].invert, {**attributes, **pins.attributes})
            return pin, DIRECTIONS.get(found[0].dir, Direction.BOTH)
    if not board.platform:
        raise TargetError(
            f"board {board.name!r}: pin {place!r} belongs to a platform, but the board names none",
            remedy="name its platform, or a pin of the package like '@A9'")
    raise TargetError(f"board {board.name!r}: its platform {board.platform!r} has no pin {place!r}")


def platform_resources(board):
    """Resources of the board's platform, none if it names none.

    Raises
    ------
    TargetError
        When the platform cannot be imported.
    """
    return _of_platform(board, "resources")


def _of_platform(board, member):
    if not board.platform:
        return []
    module, _, name = board.platform.partition(":")
    try:
        return getattr(getattr(import_module(module), name), member)
    except (ImportError, ValueError, AttributeError) as error:
        raise TargetError(
            f"board {board.name!r}: platform {board.platform!r} cannot be imported: {error}",
            remedy="write module:class") from error


def _lacking(board, user, missing):
    """Return the error for a board that lacks pins: it names the free ones."""
    taken = {_pin(board, place, pins)[0].site
             for pins in map(Pins.of, board.pins.values()) for place in pins.places}
    memories = {memory.resource for memory in board.memories if not memory.in_package}
    taken |= {site for item in platform_resources(board) if item.name in memories
              for signal in item.ios for io in signal.ios for site in io.names}
    free = [f"@{site}" for connector in _of_platform(board, "connectors")
            for site in connector.mapping.values() if ":" not in site and site not in taken]
    shown = " ".join(free[:MOST_FREE])
    if len(free) > MOST_FREE:
        shown += f" and {len(free) - MOST_FREE} more"
    known = f"; free on its connectors: {shown}" if free else ""
    pins = "pin" if len(missing) == 1 else "pins"
    return TargetError(
        f"board {board.name!r} has no {pins} {', '.join(missing)}, which the {user.title} needs",
        remedy="take another board, or name them in a board file of your own (docs/boards.md)"
        f"{known}")
