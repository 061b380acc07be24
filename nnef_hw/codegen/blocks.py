"""Block and layer -> the components of ``rtl/`` that run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from amaranth import Cat, Module
from amaranth.lib import wiring
from numpy.typing import NDArray

from nnef_hw.codegen.moves import mover
from nnef_hw.devices import Device
from nnef_hw.numerics import AddRequant
from nnef_hw.rtl.argmax import Argmax
from nnef_hw.rtl.array import SystolicArray
from nnef_hw.rtl.average_requantizer import AverageRequantizer
from nnef_hw.rtl.banked import BankedLineBuffer
from nnef_hw.rtl.concat import Concat, Split
from nnef_hw.rtl.constant import Constant
from nnef_hw.rtl.depthwise import DepthwiseArray
from nnef_hw.rtl.eltwise import EltwiseExtremum, EltwiseProduct, EltwiseSum
from nnef_hw.rtl.interpolated_table import InterpolatedTable
from nnef_hw.rtl.linebuffer import LineBuffer
from nnef_hw.rtl.parallel import ParallelLineBuffer
from nnef_hw.rtl.pool import MaxPool, SumPool
from nnef_hw.rtl.requantizer import Requantizer
from nnef_hw.rtl.runningpool import RunningMax, RunningSum
from nnef_hw.rtl.softmax import Softmax
from nnef_hw.rtl.stream import Fifo
from nnef_hw.rtl.table import Table
from nnef_hw.rtl.tablesum import TableSum
from nnef_hw.rtl.tflite_requantizer import TfliteRequantizer
from nnef_hw.rtl.tflite_softmax import TfliteSoftmax
from nnef_hw.rtl.width import Pack
from nnef_hw.schedule import Block
from nnef_hw.schedule.layers import (
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
from nnef_hw.tflite_numerics import TfliteRequant

__all__ = ["Connected", "connect_block", "stream_components", "window_weights"]


def window_weights(layer: ConvLayer, lanes: int, *, parallel: bool = False) -> NDArray[np.int64]:
    """Weights in window order, shape [out channels, words, lanes]; absent lanes are 0."""
    out_channels, taps, channels = layer.weights.shape
    if parallel:
        return layer.weights.reshape(out_channels, 1, taps * channels)
    blocks = -(-channels // lanes)
    padded = np.zeros((out_channels, taps, blocks * lanes), np.int64)
    padded[:, :, :channels] = layer.weights
    return padded.reshape(out_channels, taps * blocks, lanes)


class Connected(NamedTuple):
    """A block's result, and what happens where it works in each cycle.

    ``busy``: it takes a word; ``waiting``: one is there and is not taken
    (:class:`~nnef_hw.schedule.activity.Activity`).
    """

    result: Any
    busy: Any
    waiting: Any


def connect_block(
    m: Module,
    name: str,
    block: Block,
    layer: Layer,
    device: Device,
    operands: Sequence[Any],
    insert: Callable[[str, Any], None],
) -> Connected:
    """Connect a block's components, fed by the streams of its operands.

    ``insert`` adds a component to the module; their names begin with ``name``.
    """
    if isinstance(layer, EltwiseLayer):
        source, components, entrance = _eltwise(m, name, block, layer, device, operands, insert)
    elif isinstance(layer, ConcatLayer):
        concat = Concat(runs=layer.runs, bits=block.x_bits, signed=block.x_signed)
        for n, operand in enumerate(operands):
            wiring.connect(m, operand, getattr(concat, f"i{n}"))
        insert(f"{name}_concat", concat)
        return Connected(concat.o, concat.came & concat.free, concat.came & ~concat.free)
    elif isinstance(layer, MoveLayer):
        components = [(block.kind, mover(block, layer, device))]
        [source] = entrance = operands
    else:
        components = stream_components(block, layer, device)
        [source] = entrance = operands
    for suffix, component in components:
        insert(f"{name}_{suffix}", component)
        wiring.connect(m, source, component.i)
        source = _result(component)
        if suffix == "window":
            entrance = [source]
    came, taken = Cat(stream.valid for stream in entrance).all(), entrance[0].ready
    return Connected(source, came & taken, came & ~taken)


def _result(component: Any) -> Any:
    if isinstance(component, DepthwiseArray):
        return component.o0
    if isinstance(component, Split):
        return getattr(component, f"o{component.kept.index(True)}")
    return component.o


def _eltwise(
    m: Module,
    name: str,
    block: Block,
    layer: EltwiseLayer,
    device: Device,
    operands: Sequence[Any],
    insert: Callable[[str, Any], None],
) -> tuple[Any, list[tuple[str, Any]], Sequence[Any]]:
    """Add an element-wise operator; return its result, what follows in its block, its operands."""
    first, second = layer.formats
    zero_points = (first.zero_point, second.zero_point)
    formats = {
        "in_bits": (first.bits, second.bits), "in_signed": (first.signed, second.signed),
    }  # fmt: skip
    components = []
    operator: Any
    if block.kind == "sum":
        assert isinstance(layer.requant, AddRequant)
        operator = EltwiseSum(
            requant=layer.requant, in_zero_points=zero_points, **formats,
            out_bits=block.out_bits, out_signed=block.out_signed, lanes=1,
        )  # fmt: skip
    elif block.kind == "table_sum":
        operator = TableSum(
            entries=[table.tolist() for table in layer.tables], **formats, acc_bits=block.acc_bits,
            ram=device.ram,
        )  # fmt: skip
        components.append(("requantize", _requantizer(block, layer, [0])))
    elif block.kind == "product":
        operator = EltwiseProduct(in_zero_points=zero_points, **formats)
        components.append(("requantize", _requantizer(block, layer, [0])))
    else:
        operator = EltwiseExtremum(
            greatest=block.op == "max", bits=block.x_bits, signed=block.x_signed, lanes=1
        )
    insert(f"{name}_{block.kind}", operator)
    if layer.constant:
        constant = Constant(
            codes=layer.constant, repeats=layer.pixels * layer.channels // len(layer.constant),
            bits=second.bits, signed=second.signed, ram=device.ram, style="logic",
        )  # fmt: skip
        insert(f"{name}_constant", constant)
        operands = (*operands, constant.o)
    for operand, port in zip(operands, (operator.a, operator.b), strict=True):
        wiring.connect(m, operand, port)
    return operator.o, components, operands


def stream_components(block: Block, layer: Layer, device: Device) -> list[tuple[str, Any]]:
    """Return the named components of a block that computes on one operand, in stream order."""
    codes = {"bits": block.x_bits, "signed": block.x_signed}
    components: list[tuple[str, Any]] = []
    if block.beat_lanes > 1:
        components.append(("pack", Pack(channels=block.channels, lanes=block.beat_lanes, **codes)))
    if block.lines:
        assert isinstance(layer, ConvLayer | DepthwiseLayer)
        banked = BankedLineBuffer(
            window=block.window, lanes=block.beat_lanes, pad_code=layer.source.zero_point,
            lines=block.lines, ram=device.ram, **codes,
        )  # fmt: skip
        components.append(("window", banked))
    elif block.parallel:
        components.append(("window", _parallel_buffer(block, layer, device)))
    elif block.has_windows:
        assert isinstance(layer, ConvLayer | DepthwiseLayer | PoolLayer)
        pad = layer.pad_code if isinstance(layer, PoolLayer) else layer.source.zero_point
        buffer = LineBuffer(
            window=block.window, lanes=block.lanes, pad_code=pad, depth=block.depth,
            ram=device.ram, **codes,
        )  # fmt: skip
        components.append(("window", buffer))
    if isinstance(layer, ConvLayer | DepthwiseLayer):
        components.append(("array", array := _array(block, layer, device)))
        if block.queued_sums:
            components.append(("sums", Fifo(_result(array).payload.shape())))
        components.append(("requantize", _requantizer(block, layer, layer.bias.tolist())))
    elif isinstance(layer, PoolLayer) and block.is_running:
        shape = {"window": block.window, "single_port": block.single_port, "ram": device.ram}
        if layer.requant is None:
            components.append(("maximum", RunningMax(**shape, **codes)))
        else:
            components.append(("sum", RunningSum(acc_bits=block.acc_bits, **shape, **codes)))
            components.append(("requantize", _requantizer(block, layer, [layer.bias])))
    elif isinstance(layer, PoolLayer) and layer.requant is None:
        components.append(("maximum", MaxPool(lanes=1, **codes)))
    elif isinstance(layer, PoolLayer):
        components.append(("sum", SumPool(acc_bits=block.acc_bits, **codes)))
        components.append(("requantize", _requantizer(block, layer, [layer.bias])))
    elif isinstance(layer, TableLayer):
        components.append(("table", _table(block, layer, device)))
    elif isinstance(layer, SoftmaxLayer):
        softmax = TfliteSoftmax if block.kind == "tflite_softmax" else Softmax
        table = layer.table.tolist()
        components.append((
            "softmax", softmax(channels=block.channels, table=table, ram=device.ram, **codes),
        ))  # fmt: skip
    else:
        components.append(("argmax", Argmax(channels=block.channels, **codes)))
    return components


def _table(block: Block, layer: TableLayer, device: Device) -> Table | InterpolatedTable:
    entries = layer.entries.tolist()
    known = {
        "in_bits": block.x_bits, "in_signed": block.x_signed, "out_bits": block.out_bits,
        "out_signed": block.out_signed, "lanes": 1, "ram": device.ram,
    }  # fmt: skip
    if block.kind == "interpolated_table":
        return InterpolatedTable(knots=entries, **known)
    return Table(entries=entries, **known)


def _parallel_buffer(block: Block, layer: Layer, device: Device) -> ParallelLineBuffer:
    return ParallelLineBuffer(
        window=block.window, bits=block.x_bits, signed=block.x_signed, lanes=block.beat_lanes,
        pad_code=layer.source.zero_point, ram=device.ram,
    )  # fmt: skip


def _array(block: Block, layer: ConvLayer | DepthwiseLayer, device: Device) -> Any:
    known = {
        "kept_passes": block.kept_passes, "x_bits": block.x_bits, "x_signed": block.x_signed,
        "w_bits": block.weight_bits, "acc_bits": block.acc_bits, "in_dsp": block.in_dsp,
        "ram": device.ram, "weight_style": block.weight_style,
        "weight_delay": block.weight_delay,
    }  # fmt: skip
    if block.sums_taps:
        weights = layer.weights.reshape(block.out_channels, -1)
        return DepthwiseArray(weights=weights, lanes=block.lanes, taps=block.taps, **known)
    assert isinstance(layer, ConvLayer)
    return SystolicArray(
        weights=window_weights(layer, block.lanes, parallel=block.parallel),
        rows=block.rows, group_rows=block.group_rows, **known,
    )  # fmt: skip


def _requantizer(
    block: Block,
    layer: ConvLayer | DepthwiseLayer | EltwiseLayer | PoolLayer,
    bias: list[int],
) -> Requantizer:
    known = {
        "requant": layer.requant, "bias": bias, "in_bits": block.acc_bits,
        "acc_bits": block.acc_bits, "digit_bits": block.digit_bits, "stages": block.digit_stages,
        "bits": block.out_bits, "signed": block.out_signed,
    }  # fmt: skip
    if isinstance(layer, PoolLayer) and layer.positions is not None:
        places = layer.positions.tolist()
        return AverageRequantizer(positions=places, channels=block.channels, **known)
    if isinstance(layer.requant, TfliteRequant):
        return TfliteRequantizer(**known)
    return Requantizer(**known)
