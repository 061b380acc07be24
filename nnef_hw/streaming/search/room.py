"""Room that the fastest design has: so many LUTs that it can still be placed and is fast.

A share of the device that reaches its clocks (:attr:`Device.stream_share`) is enough for most
networks. A network whose smallest design comes near that share, or is larger, may take more: as
many LUTs above its smallest design as there are between that share and all that can be placed. So
the limit never falls where there is more room, and no design gets slower by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nnef_hw.hardware.devices import LUT_SHARE, Device, Resources
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import Budget, budget_of, queue_resources
from nnef_hw.streaming.search.knapsack import LUT, Table, choose, least

__all__ = ["fast_budget"]

QUEUE = 16
"""Entries of a FIFO in front of a join: the most that are registers, which take most LUTs."""


def fast_budget(options: Sequence[Sequence[Block]], device: Device, link: Resources) -> Budget:
    """Return the budget of the fastest design beside a host link.

    Parameters
    ----------
    options
        Options per layer, at least one.
    """
    roomy, full = (budget_of(device, link, share) for share in (device.stream_share, LUT_SHARE))
    above = full.lut - roomy.lut + _queue_luts(options, device)
    tables = [np.array([_amounts(block) for block in layer], np.int64) for layer in options]
    if choose(tables, _limits(replace(roomy, lut=roomy.lut - above))) is not None:
        return roomy
    smallest = least(tables, _limits(full), LUT)
    return full if smallest is None else replace(full, lut=min(full.lut, smallest + above))


def _queue_luts(options: Sequence[Sequence[Block]], device: Device) -> int:
    """Return the LUTs of FIFOs in front of all joins, whatever they have to hold."""
    joins = [layer[0] for layer in options if layer[0].needs_fifos]
    return queue_resources([x.with_fifos([QUEUE] * len(x.fifos)) for x in joins], device).lut


def _amounts(block: Block) -> tuple[int, int, int, int]:
    used = block.resources
    return used.lut, used.dsp, used.bram, used.spram


def _limits(budget: Budget) -> Table:
    return np.array([budget.lut, budget.dsp, budget.bram, budget.spram], np.int64)
