"""Every way to fold a layer onto a device: the candidates the solver chooses from."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from nnef_hw.blockram import SPRAM_SHAPE
from nnef_hw.devices import Device
from nnef_hw.numerics import Requant, signed_bits
from nnef_hw.schedule.beats import SHARED_CYCLES
from nnef_hw.schedule.conv_options import conv_options
from nnef_hw.schedule.depthwise_options import depthwise_options, dot_options
from nnef_hw.schedule.folding import new_block, requantizers, with_depths
from nnef_hw.schedule.layers import (
    ArgmaxLayer,
    ConcatLayer,
    ConvLayer,
    DepthwiseLayer,
    EltwiseLayer,
    Layer,
    MoveLayer,
    PoolLayer,
    SoftmaxLayer,
    TableLayer,
)
from nnef_hw.schedule.move_options import move_block
from nnef_hw.schedule.plan import Block
from nnef_hw.schedule.resources import block_resources
from nnef_hw.tables import TABLE_BITS
from nnef_hw.tflite_numerics import TFLITE_SOFTMAX_QTYPE, TfliteRequant

__all__ = ["layer_options"]

RUNNING_CHANNELS = 3
"""Fewest channels of pixels that follow each other in a window of a running pool."""


def layer_options(layer: Layer, device: Device) -> list[Block]:
    """List the blocks that could run a layer; ``cycles`` is their cost per frame."""
    if isinstance(layer, ConvLayer):
        return conv_options(layer, device) + dot_options(layer, device)
    if isinstance(layer, DepthwiseLayer):
        return depthwise_options(layer, device)
    if isinstance(layer, PoolLayer):
        return _pool_options(layer, device)
    if isinstance(layer, EltwiseLayer):
        blocks = _eltwise_options(layer, device)
    elif isinstance(layer, ConcatLayer):
        blocks = [
            new_block(
                layer, "concat", channels=layer.channels, out_channels=layer.channels,
                runs=layer.runs, cycles=layer.pixels * layer.channels,
            )
        ]  # fmt: skip
    elif isinstance(layer, MoveLayer):
        blocks = [move_block(layer)]
    else:
        blocks = [_plain_block(layer)]
    return [replace(block, resources=block_resources(block, device)) for block in blocks]


def _plain_block(layer: TableLayer | SoftmaxLayer | ArgmaxLayer) -> Block:
    kind = {TableLayer: "table", SoftmaxLayer: "softmax", ArgmaxLayer: "argmax"}[type(layer)]
    if layer.target == TFLITE_SOFTMAX_QTYPE and kind == "softmax":
        kind = "tflite_softmax"
    block = new_block(
        layer, kind, channels=layer.channels,
        out_channels=1 if isinstance(layer, ArgmaxLayer) else layer.channels,
        cycles=layer.pixels * layer.channels,
    )  # fmt: skip
    if isinstance(layer, TableLayer) and layer.source.bits > TABLE_BITS:
        rises = np.diff(layer.entries)
        rise_bits = signed_bits(int(rises.min()), int(rises.max()))
        block = replace(block, kind="interpolated_table", stages=4, y_bits=rise_bits)
    if isinstance(layer, SoftmaxLayer):
        latency, spacing = block.softmax_cycles
        pixel = layer.channels + latency + (layer.channels - 1) * spacing
        block = replace(block, cycles=layer.pixels * pixel)
    return block


_ELTWISE_KINDS = {
    "add": "sum", "max": "extremum", "min": "extremum", "mul": "product", "sub": "sum",
}  # fmt: skip


def _eltwise_options(layer: EltwiseLayer, device: Device) -> list[Block]:
    first, second = layer.formats
    beats = layer.pixels * layer.channels
    block = new_block(
        layer, "table_sum" if layer.tables else _ELTWISE_KINDS[layer.node.op],
        channels=layer.channels,
        out_channels=layer.channels, y_bits=second.bits, constants=len(layer.constant),
        cycles=beats,
    )  # fmt: skip
    if block.kind == "sum":
        tables = -(-(first.bits + second.bits) // 4)
        block = replace(block, stages=2 + (tables - 1).bit_length())
    elif block.kind == "extremum":
        block = replace(block, stages=1)
    else:
        assert isinstance(layer.requant, Requant | TfliteRequant)
        block = replace(block, stages=3, acc_bits=layer.acc_bits)
        return [
            replace(block, **folding, cycles=beats * folding["interval"])
            for folding in requantizers(layer.requant, device)
        ]
    return [block]


def _pool_options(layer: PoolLayer, device: Device) -> list[Block]:
    window = layer.window
    if window.tiles and (window.channel_blocks >= RUNNING_CHANNELS or window.kernel[1] == 1):
        return _running_options(layer, device)
    block = new_block(
        layer, "avg_pool" if layer.requant else "max_pool", channels=window.channel_blocks,
        out_channels=window.channel_blocks,
        window=window, acc_bits=layer.acc_bits,
    )  # fmt: skip
    if layer.requant is None:
        reading = window.out_pixels * window.passes * window.pass_words
        return with_depths(block, window, reading, device)
    options = []
    for folding in requantizers(layer.requant, device):
        folded = replace(block, **folding)
        reading = window.out_pixels * window.passes * max(window.pass_words, folded.interval)
        options += with_depths(folded, window, reading, device)
    return options


def _running_options(layer: PoolLayer, device: Device) -> list[Block]:
    """List the ways to reduce windows that do not overlap, as their pixels come."""
    window = layer.window
    channels = window.channel_blocks
    slots = channels * (window.out_width if window.kernel[0] > 1 else 1)
    block = new_block(
        layer, "running_sum" if layer.requant else "running_max", channels=channels,
        out_channels=channels, window=window, acc_bits=layer.acc_bits, depth=slots,
    )  # fmt: skip
    words, width = SPRAM_SHAPE
    shares = [False]
    if device.spram and slots <= words and (layer.acc_bits or layer.source.bits) <= width:
        shares.append(True)
    options = []
    for folding, single_port in product(
        requantizers(layer.requant, device) if layer.requant else [{}], shares
    ):
        option = replace(block, **folding, single_port=single_port)
        spacing = SHARED_CYCLES if single_port else 1
        waits = max(0, option.interval - spacing) * channels * window.out_pixels
        cycles = window.beats * spacing + waits
        option = replace(option, cycles=cycles)
        options.append(replace(option, resources=block_resources(option, device)))
    return options
