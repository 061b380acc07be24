"""Sizes of the array that are tried for a network: powers of two, or as it has channels."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.engine.layers.conv import ConvLayer
from nnef_hw.engine.layers.formats import LANES, Shape
from nnef_hw.engine.layers.nest import issue_cycles
from nnef_hw.engine.network.network import Network
from nnef_hw.hardware.devices import Device

__all__ = ["sizes"]

_SIZES = tuple(Shape(rows, lanes) for lanes in LANES[1:] for rows in (4, 8, 16) if rows >= lanes)
"""Arrays for any network."""
_SMALL_SIZES = (Shape(2, 2), Shape(4, 2))
"""Arrays that are only tried where a smaller one is fast enough."""
_MOST_ROWS = 64
_MOST_OTHERS = 4


def sizes(network: Network, device: Device, *, small: bool = False) -> tuple[Shape, ...]:
    """Return the arrays that are tried for a network on a device, the smaller words first.

    Those with a power of two of everything; and, where multipliers are in DSP blocks and in logic,
    the fastest of those whose rows are all output channels of a layer, or a part of them, if none
    that is smaller computes as fast. What waits for memories is not looked at.

    Parameters
    ----------
    small
        Try those with words of two codes, too, where these are as wide as a single-port RAM.
    """
    tried = (*_SMALL_SIZES, *_SIZES) if small and device.single_port else _SIZES
    usual = [size for size in tried if network.fits(size.lanes)]
    if not device.mixes_products:
        return tuple(usual)
    cycles = {size: _cycles(network, size) for size in (*usual, *_others(network, device))}
    found: list[Shape] = []
    least = None
    for size in sorted(cycles, key=lambda size: (size.rows * size.lanes, cycles[size])):
        if least is None or cycles[size] < least:
            least = cycles[size]
            found.append(size)
    others = [size for size in found if size not in usual][-_MOST_OTHERS:]
    return tuple(sorted((*usual, *others), key=lambda size: (size.lanes, size.rows)))


def _others(network: Network, device: Device) -> Iterator[Shape]:
    """Yield arrays with a row for every output channel of a layer, or every second, third, ..."""
    most = device.products + device.lut_share * device.lut / device.lut_multiplier
    for lanes in filter(network.fits, LANES[1:]):
        blocks = {x.target.blocks(lanes) for x in network.layers if isinstance(x, ConvLayer)}
        rows = {-(-count // passes) * lanes for count in blocks for passes in range(1, count + 1)}
        for own in rows:
            if (
                own <= _MOST_ROWS
                and _multipliers(own, lanes, device) <= most
                and Shape(own, lanes) not in _SIZES
            ):
                yield Shape(own, lanes)


def _multipliers(rows: int, lanes: int, device: Device) -> int:
    """Return the multipliers of an array at least: half as many as products where one makes two."""
    halves = device.pairs_products(rows * lanes)
    return (rows + 2) * lanes // 2 if halves else rows * lanes


def _cycles(network: Network, size: Shape) -> int:
    """Return the cycles in which layers have words or results."""
    layers = network.arranged(size.lanes).layers
    return sum(issue_cycles(*layer.passes(size)) for layer in layers)
