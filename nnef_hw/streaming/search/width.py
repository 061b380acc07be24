"""Codes per beat where no rate is asked for: as many as make the network clearly faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from nnef_hw.hardware.devices import LUT_SHARE, Device, Resources, Target
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import (
    Budget,
    border_resources,
    budget_of,
    total_resources,
)
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.search.lanes import Wide, widths
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.room import fast_budget
from nnef_hw.streaming.search.search import Search

__all__ = ["Width", "useful_widths"]

MOST_LUTS = 3.2
"""Most LUTs of a design with wide streams, for each one of the design with a code per beat.

So place and route of a small network takes not much longer, however large the device is.
"""
LEAST_GAIN = 9 / 8
"""Least factor by which wider streams have to shorten the interval."""
PLENTY = Budget(*[1 << 40] * 4)
MOST_MISSES = 2
"""Widths in a row that gain nothing, after which no wider ones are tried."""


class Width(NamedTuple):
    """A network with streams of some width, and how a design with them is looked for.

    Budgets are tried one after the other. A design that takes enough cycles or fewer leaves nothing
    to gain from the next width.
    """

    network: LayerGraph
    options: Sequence[Sequence[Block]]
    budgets: tuple[Budget, ...]
    enough: int


class _Found(NamedTuple):
    """Result of a search: cycles of the slowest layer, LUTs; whether resources end it."""

    cycles: int
    lut: int
    is_short: bool


def useful_widths(network: LayerGraph, target: Target, layer_counters: bool) -> list[Width]:
    """Return the network with streams of the widths that pay, the fastest first.

    The last one has a code per beat. Only layers are searched, without FIFOs.
    """
    device = target.device
    narrow = Wide(network, network_options(network, device))
    link = border_resources(network, target, layer_counters)
    budget = fast_budget(narrow.options, device, link)
    found = _search(narrow, budget, device, link)
    useful = [Width(*narrow, (budget, budget_of(device, link, LUT_SHARE)), 0)]
    if found is None or found.is_short:
        return useful
    best, misses = found.cycles, 0
    most = min(budget.lut + link.lut, int(MOST_LUTS * found.lut))
    for wide in widths(network, target, best):
        if wide is not None:
            link = border_resources(wide.network, target, layer_counters)
            budget = replace(budget_of(device, link, LUT_SHARE), lut=most - link.lut)
        found = None if wide is None else _search(wide, budget, device, link)
        if wide is None or found is None or found.cycles * LEAST_GAIN > best:
            misses += 1
        else:
            useful.insert(0, Width(*wide, (budget,), best))
            best, misses = found.cycles, 0
        if misses == MOST_MISSES or (found is not None and found.is_short):
            break
    return useful


def _search(wide: Wide, budget: Budget, device: Device, link: Resources) -> _Found | None:
    """Search foldings of a network within a budget; None if none fit."""
    search = Search(wide.options, budget, device, steady_words=True)
    blocks = search.best()
    if blocks is None:
        return None
    cycles = max(block.cycles for block in blocks)
    used = total_resources(blocks) + link
    plenty = Search(wide.options, PLENTY, device, steady_words=True)
    return _Found(cycles, used.lut, search.least() != plenty.least())
