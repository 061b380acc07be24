"""Plan and fixed graph -> the accelerator as one Amaranth component."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from nnef_hw.ir import Graph
from nnef_hw.rtl.argmax import Argmax
from nnef_hw.rtl.array import SystolicArray
from nnef_hw.rtl.linebuffer import LineBuffer
from nnef_hw.rtl.parallel import ParallelLineBuffer
from nnef_hw.rtl.pool import MaxPool, SumPool
from nnef_hw.rtl.requantizer import Requantizer
from nnef_hw.rtl.softmax import Softmax
from nnef_hw.rtl.stream import Fifo, beat_layout
from nnef_hw.rtl.table import Table
from nnef_hw.rtl.width import Pack
from nnef_hw.schedule import Block, Plan, lower
from nnef_hw.schedule.layers import ConvLayer, Layer, PoolLayer, SoftmaxLayer, TableLayer
from nnef_hw.schedule.targets import Device, find_target

__all__ = ["Accelerator", "module_name", "window_weights"]


def module_name(layer: str) -> str:
    """Verilog identifier for a layer's name."""
    name = re.sub(r"\W", "_", layer)
    return name if re.match(r"[A-Za-z_]", name) else f"layer_{name}"


def window_weights(layer: ConvLayer, lanes: int, *, parallel: bool = False) -> NDArray[np.int64]:
    """Weights in window order, shape [out channels, words, lanes]; absent lanes are 0."""
    out_channels, taps, channels = layer.weights.shape
    if parallel:
        return layer.weights.reshape(out_channels, 1, taps * channels)
    blocks = -(-channels // lanes)
    padded = np.zeros((out_channels, taps, blocks * lanes), np.int64)
    padded[:, :, :channels] = layer.weights
    return padded.reshape(out_channels, taps * blocks, lanes)


class Accelerator(wiring.Component):  # type: ignore[misc]
    """All blocks of a Plan in a row, between two skid buffers.

    Golden model: :func:`nnef_hw.reference.run_fixed`.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        The input image: row, column, channel.
    o : Out(stream.Signature(beat_layout))
        The output image.
    """

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan = plan
        self.chain = lower(graph)
        self.device = find_target(plan.board).device
        ports = {}
        for name, flow, port in (("i", In, plan.input), ("o", Out, plan.output)):
            layout = beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes)
            ports[name] = flow(stream.Signature(layout))
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate and connect the blocks."""
        m = Module()
        m.submodules.input_skid = skid = Fifo(self.i.payload.shape())
        wiring.connect(m, wiring.flipped(self.i), skid.i)
        source = skid.o
        for block, layer in zip(self.plan.blocks, self.chain.layers, strict=True):
            for suffix, component in _components(block, layer, self.device):
                m.submodules[f"{module_name(block.name)}_{suffix}"] = component
                wiring.connect(m, source, component.i)
                source = component.o
        m.submodules.output_skid = skid = Fifo(self.o.payload.shape())
        wiring.connect(m, source, skid.i)
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        return m


def _components(block: Block, layer: Layer, device: Device) -> list[tuple[str, Any]]:
    """Return the named stream components of one block, in order."""
    codes = {"bits": block.x_bits, "signed": block.x_signed}
    components: list[tuple[str, Any]] = []
    if block.beat_lanes > 1:
        components.append(("pack", Pack(channels=block.channels, lanes=block.beat_lanes, **codes)))
    if block.parallel:
        components.append(("window", _parallel_buffer(block, layer, device)))
    elif block.window is not None:
        assert isinstance(layer, ConvLayer | PoolLayer)
        pad = layer.pad_code if isinstance(layer, PoolLayer) else layer.source.zero_point
        buffer = LineBuffer(
            window=block.window, lanes=block.lanes, pad_code=pad, depth=block.depth,
            ram=device.ram, **codes,
        )  # fmt: skip
        components.append(("window", buffer))
    if isinstance(layer, ConvLayer):
        components += _conv_components(block, layer, device)
    elif isinstance(layer, PoolLayer) and layer.requant is None:
        components.append(("maximum", MaxPool(lanes=1, **codes)))
    elif isinstance(layer, PoolLayer):
        components.append(("sum", SumPool(acc_bits=block.acc_bits, **codes)))
        components.append(("requantize", _requantizer(block, layer, [layer.bias])))
    elif isinstance(layer, TableLayer):
        table = Table(
            entries=layer.entries.tolist(), in_bits=block.x_bits, in_signed=block.x_signed,
            out_bits=block.out_bits, out_signed=block.out_signed, lanes=1, ram=device.ram,
        )  # fmt: skip
        components.append(("table", table))
    elif isinstance(layer, SoftmaxLayer):
        softmax = Softmax(
            channels=block.channels, table=layer.table.tolist(), ram=device.ram, **codes
        )
        components.append(("softmax", softmax))
    else:
        components.append(("argmax", Argmax(channels=block.channels, **codes)))
    return components


def _parallel_buffer(block: Block, layer: Layer, device: Device) -> ParallelLineBuffer:
    return ParallelLineBuffer(
        window=block.window, bits=block.x_bits, signed=block.x_signed, lanes=block.beat_lanes,
        pad_code=layer.source.zero_point, ram=device.ram,
    )  # fmt: skip


def _conv_components(block: Block, layer: ConvLayer, device: Device) -> list[tuple[str, Any]]:
    array = SystolicArray(
        weights=window_weights(layer, block.lanes, parallel=block.parallel),
        rows=block.rows, group_rows=block.group_rows,
        x_bits=block.x_bits, x_signed=block.x_signed, w_bits=block.weight_bits,
        acc_bits=block.acc_bits, in_dsp=block.in_dsp, ram=device.ram,
        weight_style=block.weight_style, kept_passes=block.kept_passes,
        weight_delay=block.weight_delay,
    )  # fmt: skip
    return [("array", array), ("requantize", _requantizer(block, layer, layer.bias.tolist()))]


def _requantizer(block: Block, layer: ConvLayer | PoolLayer, bias: list[int]) -> Requantizer:
    return Requantizer(
        requant=layer.requant, bias=bias, in_bits=block.acc_bits, acc_bits=block.acc_bits,
        digit_bits=block.digit_bits, bits=block.out_bits, signed=block.out_signed,
    )  # fmt: skip
