"""The blocks that a layer could be, and those of them that are worth a try."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nnef_hw.hardware.devices import Device
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.layers.layer import AnyLayer
from nnef_hw.streaming.search.knapsack import undominated

__all__ = ["layer_options", "network_options", "useful_options"]


def layer_options(layer: AnyLayer, device: Device, most_cycles: int | None = None) -> list[Block]:
    """List the blocks that could run a layer in so many cycles: one for every folding."""
    blocks = [Block.of(layer, folding, device) for folding in layer.foldings(device)]
    if most_cycles is None:
        return blocks
    return [block for block in blocks if block.cycles <= most_cycles]


def useful_options(layer: AnyLayer, device: Device, most_cycles: int | None = None) -> list[Block]:
    """List those blocks that no other one beats in everything; none if it cannot be folded.

    Nobody changes the list. Those of the last layers are kept: most layers stay what they are where
    some streams of a network get wider.
    """
    return _useful_options(layer, device, most_cycles)


@lru_cache(maxsize=256)
def _useful_options(layer: AnyLayer, device: Device, most_cycles: int | None) -> list[Block]:
    options = layer_options(layer, device, most_cycles)
    if not options:
        return []
    amounts = np.array([_amounts(block) for block in options], np.int64)
    return [options[n] for n in undominated(amounts)]


@lru_cache(maxsize=4)
def network_options(network: LayerGraph, device: Device) -> list[list[Block]]:
    """List those blocks for every layer; nobody changes the lists.

    Those of the last devices are kept: a refusal looks at the largest device of every family, for
    every board that is asked.
    """
    return [useful_options(layer, device) for layer in network.layers]


def _amounts(block: Block) -> tuple[int, ...]:
    """All figures in which another block can be better."""
    used = block.resources
    return (
        block.cycles, block.missing_words,
        used.lut, used.dsp, used.bram, used.spram, block.multipliers,
    )  # fmt: skip
