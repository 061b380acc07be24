"""What stands between an accelerator and the world: links to a host, sources, sinks; and pins.

Facts of each are here, without Amaranth, and its other end for the simulated board in C++; its
hardware is in :mod:`nnef_hw.boards.hardware`. A further one is a file here and a line below.
"""

from collections.abc import Mapping
from typing import Any

from nnef_hw.boards.interfaces.interface import FarEnd, Interface, Option, Sink, Source
from nnef_hw.boards.interfaces.link import HostLink, Link, PlainStreams
from nnef_hw.boards.interfaces.pins import (
    ANY_NUMBER,
    CLOCK,
    STATUS,
    Direction,
    Pins,
    PinUse,
    PinUser,
)
from nnef_hw.boards.interfaces.spi import Spi
from nnef_hw.boards.interfaces.uart import Uart
from nnef_hw.errors import UsageError

__all__ = [
    "ANY_NUMBER", "CLOCK", "DEFAULT_LINK", "LINKS", "PLAIN_STREAMS", "STATUS", "Direction",
    "FarEnd", "HostLink", "Interface", "Link", "Option", "PinUse", "PinUser", "Pins",
    "PlainStreams", "Sink", "Source", "Spi", "Uart", "find_link", "link_names", "link_of",
    "link_options",
]

LINKS: tuple[HostLink, ...] = (Uart(), Spi())
"""Every link to a host, with its options as they are by default."""
DEFAULT_LINK = LINKS[0]
PLAIN_STREAMS = PlainStreams()


def link_names() -> list[str]:
    """Return the names of all links to a host."""
    return [link.name for link in LINKS]


def link_options() -> list[Option]:
    """Return the options that links have, each of one of them."""
    return [option for link in LINKS for option in link.options]


def find_link(name: str, **options: Any) -> HostLink:
    """Return the link of a name.

    Parameters
    ----------
    options
        Its options, and perhaps those of others; None of those that are not given.

    Raises
    ------
    UsageError
        If there is no such link, or it has no such option, or not with such a value.
    """
    known = {type(link).name: type(link) for link in LINKS}
    if name not in known:
        raise UsageError(f"there is no link {name!r}", remedy=f"use --link {' or '.join(known)}")
    given = {option: value for option, value in options.items() if value is not None}
    own = {option.name for option in known[name].options}
    for option in given:
        if option not in own:
            owners = [link.name for link in LINKS for one in link.options if one.name == option]
            raise UsageError(f"--{option} is for --link {' or '.join(owners)}",
                             remedy=f"omit it: the link {name} has no such option")
    return known[name](**given)


def link_of(entry: Mapping[str, Any]) -> Link:
    """Return the link that a manifest's entry describes.

    Raises
    ------
    UsageError
        If it is none that is known.
    """
    if entry["kind"] == PLAIN_STREAMS.name:
        return PLAIN_STREAMS
    for link in LINKS:
        if entry["kind"] == link.name:
            return type(link).from_json(entry)
    raise UsageError(f"the build has a link {entry['kind']!r}, which is not known",
                     remedy=f"build it with --link {' or '.join(link_names())}")
