"""Why a network does not fit a board, proven and in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.architecture.room import WeightRoom, name_largest
from nnef_hw.errors import ShortageError
from nnef_hw.hardware.devices import LUT_SHARE, Device, Resources, Target
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import (
    Budget,
    border_resources,
    budget_of,
    queue_resources,
    total_resources,
)
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.search.knapsack import BRAM, Table, cheapest, choose, least
from nnef_hw.streaming.search.lanes import why_not_whole, wider
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.search import Search

__all__ = ["ARCH", "Misfit", "may_fit", "weight_bits", "weight_room"]

ARCH = "streaming"
"""Name of the architecture."""

NAMES = ("LUTs", "DSP blocks", "block RAMs", "single-port RAMs")
BITS_PER_LUT = 16
"""Bits of constants in one LUT4."""


@dataclass(frozen=True)
class Misfit:
    """A network for which no design was found.

    Parameters
    ----------
    model
        Name of the network.
    network, target, layer_counters
        What was to be built, and where.
    options
        The options of every layer on that device.
    """

    model: str
    network: LayerGraph
    target: Target
    layer_counters: bool
    options: Sequence[Sequence[Block]]

    @property
    def device(self) -> Device:
        """The target's."""
        return self.target.device

    @cached_property
    def budget(self) -> Budget:
        """Resources that the layers may use."""
        return self._budget(self.target)

    @cached_property
    def limits(self) -> Table:
        """Resources that the layers may use, as an array."""
        return _limits(self.budget)

    @cached_property
    def tables(self) -> list[Table]:
        """Resources that the options of every layer use."""
        return _tables(self.options)

    @property
    def feasible(self) -> bool:
        """Whether the layers fit, but for the FIFOs between branches."""
        return choose(self.tables, self.limits) is not None

    @cached_property
    def _needed(self) -> NDArray[np.int64]:
        """Resources that every layer needs at least."""
        return np.array([table.min(axis=0) for table in self.tables])

    def smallest(self) -> list[Block]:
        """Return the blocks with the fewest block RAMs, and of these with the fewest LUTs."""
        limits = self.limits.copy()
        fewest = least(self.tables, limits, BRAM)
        assert fewest is not None, "the layers fit"
        limits[BRAM] = fewest
        chosen = cheapest(self.tables, limits)
        assert chosen is not None
        return [layer[n] for layer, n in zip(self.options, chosen, strict=True)]

    def too_slow(self, target_fps: float, clock: float, found: int | None) -> ShortageError:
        """Say which resources are short of a rate, with wider streams as well.

        Parameters
        ----------
        found
            Cycles of the fastest design that was tried and fits; None if none fitted.
        """
        wanted = int(clock * 1e6 / target_fps)
        tried = [
            self.options,
            *(wide.options for wide in wider(self.network, self.target, wanted)),
        ]
        intervals = [
            Search(options, self.budget, self.device, steady_words=False).least()
            for options in tried
        ]
        interval = min(least for least in intervals if least is not None)
        if interval > wanted:
            reason = f"no foldings that fit together take fewer than {interval:,} cycles"
            reason += self._what_is_short_of(wanted, tried)
        elif found is None:
            reason = f"foldings of {interval:,} cycles fit together, but not with their FIFOs"
        else:
            reason = (
                f"foldings of {interval:,} cycles fit together, but layers wait for each other: "
                f"the fastest design found takes {found:,} cycles"
            )
        return ShortageError(
            f"model {self.model!r} does not reach {target_fps:g} inferences/s on "
            f"{self.target.name} at {clock:g} MHz ({wanted:,} cycles each)",
            ARCH,
            reason,
        )

    def _what_is_short_of(self, wanted: int, tried: Sequence[Sequence[Sequence[Block]]]) -> str:
        """Say which resources so few cycles would take, with the widest streams for every layer."""
        quick = [
            [[block for block in layer if block.cycles <= wanted] for layer in options]
            for options in tried
        ]
        enough = [options for options in quick if all(options)]
        if not enough:
            fewest = [[min(block.cycles for block in layer) for layer in way] for way in tried]
            cycles = min(fewest, key=max)
            slowest = cycles.index(max(cycles))
            text = f"; {self.network.layers[slowest].name} alone takes {max(cycles):,}"
            why = why_not_whole(self.network, self.target)
            return f"{text}, as streams of whole pixels are no way: {why}" if why else text
        misfit = replace(self, options=enough[-1])
        if misfit.feasible:
            return ""
        return f"; for {wanted:,} {misfit._one_short() or misfit._together_short()}"

    def error(self, design: Sequence[Block] = ()) -> ShortageError:
        """Say which resources are lacking.

        Parameters
        ----------
        design
            The smallest one with FIFOs, if the layers alone fit.
        """
        if self.feasible:
            reason = self._too_many_fifos(design)
        else:
            reason = self._one_short() or self._together_short()
        return ShortageError(
            f"model {self.model!r} does not fit {self.target.name} ({self.device.name})",
            ARCH,
            reason,
        )

    def _one_short(self) -> str:
        """Name the resources of which the layers need too much, whatever they use of others."""
        amounts, needed = self._needed, self._needed.sum(axis=0).tolist()
        short = [n for n in range(len(NAMES)) if needed[n] > self.limits[n]]
        if not short:
            return ""
        short.sort(key=lambda n: -self._share(needed[n], n))
        text = ", and ".join(
            f"at least {self._excess(needed[n], n)} ({self._largest(amounts[:, n])})" for n in short
        )
        enough = [self._of(needed[n], n) for n in range(len(NAMES)) if n not in short]
        others = ", ".join(filter(None, enough))
        return f"it takes {text}" + (f"; of the others, {others} would do" if others else "")

    def _together_short(self) -> str:
        """Say how much of each resource is needed, given the others."""
        alone = self._needed.sum(axis=0).tolist()
        each = ", ".join(filter(None, (self._of(alone[n], n) for n in range(len(NAMES)))))
        text = f"each resource by itself would do ({each}), but not all together: "
        wanted = {n: least(self.tables, self.limits, n) for n in range(len(NAMES))}
        found = {n: amount for n, amount in wanted.items() if amount is not None}
        if not found:
            return f"{text}no one resource makes up for the others"
        ways = []
        for n, amount in sorted(found.items(), key=lambda way: self._share(way[1], way[0])):
            limits = self.limits.copy()
            limits[n] = amount
            chosen = choose(self.tables, limits)
            assert chosen is not None, "so much is enough"
            amounts = [table[row, n] for table, row in zip(self.tables, chosen, strict=True)]
            ways.append(f"at least {self._excess(amount, n)} ({self._largest(np.array(amounts))})")
        return f"{text}with no more of the others it takes {', or '.join(ways)}"

    def _too_many_fifos(self, design: Sequence[Block]) -> str:
        used = _amounts(total_resources(design)).tolist()
        queues = _amounts(queue_resources(design, self.device))
        text = " and ".join(
            f"{self._excess(used[n], n)}, {queues[n]:,} of them for FIFOs between branches"
            for n, limit in enumerate(self.limits)
            if used[n] > limit
        )
        return f"its layers alone would fit, but the smallest design found takes {text}"

    def _share(self, amount: int, resource: int) -> float:
        return amount / max(1, int(self.limits[resource]))

    def _of(self, amount: int, resource: int) -> str:
        """Say how many of what is left; nothing of what the device has not."""
        limit = max(0, int(self.limits[resource]))
        return f"{amount:,} of {limit:,} {NAMES[resource]}" if limit else ""

    def _excess(self, amount: int, resource: int) -> str:
        limit = max(0, int(self.limits[resource]))
        return (
            f"{amount:,} {NAMES[resource]}, {amount - limit:,} more than the {limit:,} left beside "
            "the host link"
        )

    def _largest(self, amounts: NDArray[np.int64]) -> str:
        """Name the layers that take most of a resource."""
        layers = (layer.name for layer in self.network.layers)
        return name_largest(zip(layers, amounts.tolist(), strict=True))

    def _budget(self, target: Target) -> Budget:
        link = border_resources(self.network, target, self.layer_counters)
        return budget_of(target.device, link, LUT_SHARE)


def may_fit(network: LayerGraph, target: Target, *, layer_counters: bool) -> bool:
    """Whether the layers of a network fit a target, but for the FIFOs between branches.

    It takes a small part of the time of a plan. How large FIFOs are depends on the foldings: those
    of the smallest ones may be many times as large as those of a design that fits.
    """
    if sum(weight_bits(network).values()) > weight_room(target).bits:
        return False
    options = network_options(network, target.device)
    return Misfit("", network, target, layer_counters, options).feasible


def weight_bits(network: LayerGraph) -> dict[str, int]:
    """Return the bits of every layer's weights."""
    return {layer.name: layer.weights_of_model * layer.weight_bits for layer in network.layers}


def weight_room(target: Target) -> WeightRoom:
    """Return the room of a device for weights, which may be in logic as well."""
    device = target.device
    bits = device.bram * prod(device.ram.shapes[0]) + BITS_PER_LUT * device.lut
    return WeightRoom(ARCH, bits, "block RAMs and LUTs")


def _amounts(used: Resources) -> Table:
    return np.array([used.lut, used.dsp, used.bram, used.spram], np.int64)


def _limits(budget: Budget) -> Table:
    return np.array([budget.lut, budget.dsp, budget.bram, budget.spram], np.int64)


def _tables(options: Sequence[Sequence[Block]]) -> list[Table]:
    return [np.array([_amounts(block.resources) for block in layer]) for layer in options]
