"""The blocks that a layer could be, and those of them that are worth a try."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnef_hw.devices import Device, Target
from nnef_hw.protocol import MAX_BEAT
from nnef_hw.streaming.block import Block
from nnef_hw.streaming.knapsack import undominated
from nnef_hw.streaming.layer import Layer
from nnef_hw.streaming.plan import LayerGraph

__all__ = ["alternatives", "layer_options", "useful_options", "whole_pixels"]


class Wide(NamedTuple):
    """A network with the ports for its beats, and the options of its layers."""

    network: LayerGraph
    options: list[list[Block]]


def layer_options(layer: Layer[Any], device: Device) -> list[Block]:
    """List the blocks that could run a layer: one for every folding."""
    return [Block.of(layer, folding, device) for folding in layer.foldings(device)]


def useful_options(layer: Layer[Any], device: Device) -> list[Block]:
    """List those blocks that no other one beats in everything."""
    options = layer_options(layer, device)
    amounts = np.array([_amounts(block) for block in options], np.int64)
    return [options[n] for n in undominated(amounts)]


def whole_pixels(network: LayerGraph, target: Target) -> Wide | None:
    """Return a network whose streams carry whole pixels; None if a layer or the host link cannot.

    A beat is one item to the host link, which says its bytes in one byte.
    """
    options: list[list[Block]] = []
    for layer in network.layers:
        foldings = layer.whole_foldings(target.device)
        if not foldings:
            return None
        options.append([Block.of(layer, folding, target.device) for folding in foldings])
    wide = network.folded([blocks[0] for blocks in options])
    ports = (*wide.inputs, *wide.outputs)
    if target.link_lut and any(port.lanes * -(-port.bits // 8) > MAX_BEAT for port in ports):
        return None
    return Wide(wide, options)


def alternatives(block: Block, device: Device) -> list[Block]:
    """List the blocks that could stand in the place of one: with the same beats."""
    if block.folding.takes_pixels:
        foldings = block.layer.whole_foldings(device)
        return [Block.of(block.layer, folding, device) for folding in foldings]
    return useful_options(block.layer, device)


def _amounts(block: Block) -> tuple[int, ...]:
    """All figures in which another block can be better."""
    used = block.resources
    return (
        block.cycles, block.missing_words,
        used.lut, used.dsp, used.bram, used.spram, block.multipliers,
    )  # fmt: skip
