"""Streams of several codes per beat: how many an interval takes, and which networks can."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from math import gcd, prod
from typing import NamedTuple

from nnef_hw.hardware.devices import Target
from nnef_hw.host.protocol import MAX_BEAT
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.search.options import network_options, useful_options

__all__ = [
    "Wide",
    "common_codes",
    "equally_wide",
    "takes_lanes",
    "wider",
    "why_not_whole",
    "widths",
]


BUSY = (7 / 8, 3 / 4, 1 / 2)
"""Shares of the cycles of an interval in which the busiest stream may have a beat, as tried."""


class Wide(NamedTuple):
    """A network with wider streams, and the options of its layers."""

    network: LayerGraph
    options: list[list[Block]]


def wider(network: LayerGraph, target: Target, interval: int) -> Iterator[Wide]:
    """Yield a network with wider streams: wide enough for the interval, and then of whole pixels.

    Streams that are never idle may make layers wait: between the two, streams are wide enough for
    less and less of the interval. Those that layers, or the host link, do not take are left out.
    """
    tried: list[Mapping[str, int]] = []
    steps = [interval, interval - 1, *(int(interval * share) for share in BUSY)]
    ways = (_enough(network, cycles) for cycles in steps)
    for lanes in chain(ways, [_whole_pixels(network)]):
        if max(lanes.values()) > 1 and lanes not in tried:
            tried.append(lanes)
            wide = network.widened(lanes)
            options = network_options(wide, target.device) if takes_lanes(wide, target) else []
            if options and all(options):
                yield Wide(wide, options)


def widths(network: LayerGraph, target: Target, most_cycles: int) -> Iterator[Wide | None]:
    """Yield a network with ever wider streams, each with fewer beats in its busiest one.

    None stands for one whose layers, or the host link, do not take them. Layers that get wider have
    the options that take so many cycles.
    """
    beats = max(prod(image) for image in network.images.values())
    while beats > 1:
        lanes = _enough(network, beats - 1)
        fewer = max(prod(image) // lanes[name] for name, image in network.images.items())
        if fewer >= beats:
            break  # whole pixels
        beats = fewer
        wide = network.widened(lanes)
        if not takes_lanes(wide, target):
            yield None
            continue
        options = [
            useful_options(layer, target.device, None if layer is narrow else most_cycles)
            for layer, narrow in zip(wide.layers, network.layers, strict=True)
        ]
        yield Wide(wide, options) if all(options) else None


def why_not_whole(network: LayerGraph, target: Target) -> str:
    """Say why streams of whole pixels are no way to build a network; nothing if they are one."""
    wide = network.widened(_whole_pixels(network))
    if why := _why_narrow(wide, target):
        return why
    for layer, options in zip(wide.layers, network_options(wide, target.device), strict=True):
        if not options:
            return f"{layer.name} has no folding for them on {target.device.name}"
    return ""


def takes_lanes(wide: LayerGraph, target: Target) -> bool:
    """Whether all layers of a network with wider streams, and the host link, take its beats.

    A beat is one item to the host link, which says its bytes in one byte. Layers that compute
    several times in a frame take codes one by one.
    """
    return not _why_narrow(wide, target)


def _why_narrow(wide: LayerGraph, target: Target) -> str:
    ports = (*wide.inputs, *wide.outputs)
    for port in ports:
        size = port.lanes * -(-port.bits // 8)
        if target.link_lut and size > MAX_BEAT:
            return f"the host link takes at most {MAX_BEAT} bytes per beat, not {size}"
        if port.image[2] % port.lanes:
            return f"{port.tensor} has {port.image[2]} channels, no multiple of {port.lanes}"
    lanes = {port.tensor: port.lanes for port in wide.inputs}
    lanes |= {layer.tensor: layer.result_lanes for layer in wide.layers}
    for layer in wide.layers:
        is_wide = max(layer.operand_lanes, layer.result_lanes) > 1
        if any(lanes[name] != layer.lanes_of(n) for n, name in enumerate(layer.sources)):
            return f"{layer.name} reads streams of several widths"
        if layer.keeps_lanes and layer.operand_lanes != layer.result_lanes:
            return (
                f"{layer.name} gives as many codes per beat as it takes, not "
                f"{layer.result_lanes} for {layer.operand_lanes}"
            )
        if not layer.takes_lanes or (is_wide and layer.repeats > 1):
            return f"{layer.name} takes codes one by one"
    return ""


def _whole_pixels(network: LayerGraph) -> dict[str, int]:
    return {tensor: image[2] for tensor, image in network.images.items()}


def _enough(network: LayerGraph, interval: int) -> dict[str, int]:
    """Return the fewest codes per beat with which no stream has more beats than cycles.

    Where a layer has as many in its result as in its operands, the most of them.
    """
    lanes = {}
    for tensor, image in network.images.items():
        channels = image[2]
        divisors = [count for count in range(1, channels + 1) if channels % count == 0]
        enough = (count for count in divisors if prod(image) <= count * interval)
        lanes[tensor] = next(enough, channels)
    for streams in equally_wide(network):
        most = max(lanes[name] for name in streams)
        common = common_codes(network, streams)
        enough = (n for n in range(most, common + 1) if common % n == 0)
        lanes |= dict.fromkeys(streams, next(enough, common))
    return lanes


def common_codes(network: LayerGraph, streams: Collection[str]) -> int:
    """Return the most codes per beat of streams that layers make equally wide."""
    moves = (layer.together for layer in network.layers if layer.tensor in streams)
    return gcd(*(network.images[name][2] for name in streams), *moves)


def equally_wide(network: LayerGraph) -> list[set[str]]:
    """Return streams in sets of those that layers make, or take, equally wide; each is in one."""
    found = [{tensor} for tensor in network.images]
    for together in (x for layer in network.layers for x in (layer.equally_wide, layer.joined)):
        joined = set(together)
        joined.update(*(streams for streams in found if streams & joined))
        found = [joined, *(streams for streams in found if not streams & joined)]
    return found
