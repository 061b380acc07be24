"""The most that boards can make of a network, and which of their resources end it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nnef_hw.hardware.devices import LUT_SHARE, Device, Resources, Target
from nnef_hw.hardware.families import Family
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import (
    Budget,
    border_resources,
    budget_of,
    largest,
    queue_resources,
)
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.search.lanes import takes_lanes
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.room import fast_budget
from nnef_hw.streaming.search.search import Search

__all__ = ["Ceiling", "find_ceilings"]

RESOURCES = ("lut", "dsp", "bram")

_BudgetFor = Callable[[Sequence[Sequence[Block]], Device, Resources], Budget]
"""Budget of layers with these options on a device, beside a host link."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The least interval of a network on a board.

    Parameters
    ----------
    interval
        Cycles of the slowest layer; waits between layers may add some.
    with_twice
        The interval with twice as many of a resource, for those resources that end it here.
    floor
        Cycles below which no folding of some layer comes, whatever the device.
    """

    interval: int
    with_twice: Mapping[str, int]
    floor: int


def find_ceilings(
    network: LayerGraph, targets: Iterable[Target], blocks: Sequence[Block] = ()
) -> dict[str, Ceiling | None]:
    """Search the fastest design for every target; None where nothing fits.

    The search is that of :func:`nnef_hw.streaming.schedule`, which by default takes a design that
    is up to a quarter slower if that makes better use of its multipliers. FIFOs as those of
    ``blocks`` have to fit, too; if they take wide beats, other boards may have such streams.
    """
    targets = list(targets)
    options = _options(network, [target.device for target in targets])
    found: dict[tuple[Device, Resources], Ceiling | None] = {}
    ceilings = {}
    for target in targets:
        device = target.device
        link = border_resources(network, target) + queue_resources(blocks, device)
        foldings, key = options[device.family], (replace(device, name=""), link)
        if key not in found:
            ways = (fast_budget, _full_budget)
            found[key] = next(filter(None, (_ceiling(foldings, *key, way) for way in ways)), None)
        ceilings[target.name] = found[key]
    layers = [block.layer for block in blocks]
    lanes = {name: x.lanes_of(n) for x in layers for n, name in enumerate(x.sources)}
    lanes |= {layer.tensor: layer.result_lanes for layer in layers}
    if max(lanes.values(), default=1) > 1:
        return _with_lanes(ceilings, network, targets, lanes)
    return ceilings


def _full_budget(options: Sequence[Sequence[Block]], device: Device, link: Resources) -> Budget:
    del options  # all that can be placed, whatever they take
    return budget_of(device, link, LUT_SHARE)


def _options(network: LayerGraph, devices: Sequence[Device]) -> Mapping[Family, list[list[Block]]]:
    """Fold all layers for the family of every device: a folding suits all of its devices."""
    options = {}
    for family in {device.family for device in devices}:
        relatives = [device for device in devices if device.family is family]
        device = largest(relatives, 2)
        options[family] = network_options(network, device)
    return options


def _with_lanes(
    ceilings: dict[str, Ceiling | None],
    network: LayerGraph,
    targets: Iterable[Target],
    lanes: Mapping[str, int],
) -> dict[str, Ceiling | None]:
    """Return the better of each ceiling and that of streams of so many codes per beat."""
    found, wide = dict(ceilings), network.widened(lanes)
    takers = [target for target in targets if takes_lanes(wide, target)]
    options = _options(wide, [target.device for target in takers])
    for target in takers:
        link = border_resources(wide, target)
        ceiling = _ceiling(options[target.device.family], target.device, link, _full_budget)
        narrow = ceilings[target.name]
        if ceiling and (narrow is None or ceiling.interval < narrow.interval):
            found[target.name] = ceiling
    return found


def _ceiling(
    options: Sequence[Sequence[Block]], device: Device, link: Resources, budget_for: _BudgetFor
) -> Ceiling | None:
    """Search within that budget of a device."""

    def least(device: Device) -> int | None:
        budget = budget_for(options, device, link)
        return Search(options, budget, device, steady_words=False).least()

    interval = least(device)
    if interval is None:
        return None
    floor = max(min(block.cycles for block in layer) for layer in options)
    with_twice = {}
    for name in RESOURCES if interval > floor else ():
        shorter = least(replace(device, **{name: 2 * getattr(device, name)}))
        if shorter is not None and shorter < interval:
            with_twice[name] = shorter
    return Ceiling(interval, with_twice, floor)
