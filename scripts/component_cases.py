"""Components to measure, and the blocks of a plan that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nnef_hw.codegen.blocks import stream_components
from nnef_hw.devices import Device
from nnef_hw.numerics import QType, Requant, signed_bits
from nnef_hw.rtl.argmax import Argmax
from nnef_hw.rtl.array import SystolicArray, sum_layout
from nnef_hw.rtl.interpolated_table import InterpolatedTable
from nnef_hw.rtl.linebuffer import LineBuffer
from nnef_hw.rtl.parallel import ParallelLineBuffer
from nnef_hw.rtl.pool import MaxPool, SumPool
from nnef_hw.rtl.requantizer import Requantizer
from nnef_hw.rtl.runningpool import RunningMax, RunningSum
from nnef_hw.rtl.softmax import Softmax
from nnef_hw.rtl.stream import Fifo, beat_layout
from nnef_hw.rtl.table import Table
from nnef_hw.rtl.tablesum import TableSum
from nnef_hw.rtl.tflite_requantizer import TfliteRequantizer
from nnef_hw.rtl.tflite_softmax import TfliteSoftmax
from nnef_hw.rtl.width import Pack
from nnef_hw.schedule import Block, Plan, lower
from nnef_hw.schedule.layers import ConcatLayer, EltwiseLayer, MoveLayer
from nnef_hw.schedule.plan import Resources
from nnef_hw.schedule.resources import (
    block_parts,
)
from nnef_hw.tables import unary_table
from nnef_hw.tflite_numerics import TfliteRequant, tflite_exp_table
from nnef_hw.window import Window

__all__ = ["BLOCK", "Case", "component_cases", "network_cases"]


@dataclass(frozen=True, slots=True)
class Case:
    """A component, and the block and part of the plan that it stands for.

    A Block does not say everything: cases that differ from others in what it leaves out are not
    ``typical`` and not fitted.
    """

    part: str
    block: Block
    build: Callable[[], Any]
    note: dict[str, int | str] = field(default_factory=dict)
    typical: bool = True


BLOCK = Block(
    name="case", op="conv", kind="conv", sources=(), tensor="y", channels=1, out_channels=1,
    x_bits=8, x_signed=False, out_bits=8, out_signed=False, cycles=1, resources=Resources(),
)  # fmt: skip


def component_cases(device: Device) -> Iterator[Case]:
    """Every component over its parameters, one or two of them varied at a time."""
    yield from _line_buffers(device)
    yield from _parallel_line_buffers(device)
    yield from _arrays(device)
    yield from _requantizers()
    yield from _tflite_components(device)
    yield from _pools()
    yield from _running_pools(device)
    full = [(4, 2), (4, 4), (6, 3), (8, 8), (30, 5), (64, 16), (120, 2)]
    for channels, lanes in (*full, (10, 4), (30, 8)):
        block = replace(BLOCK, channels=channels, lanes=lanes)
        yield Case(
            "pack", block, partial(Pack, channels=channels, lanes=lanes, bits=8, signed=False)
        )
    for bits in (4, 8):
        block = replace(BLOCK, kind="table", x_bits=bits, out_bits=bits)
        entries = np.random.default_rng(bits).integers(0, 1 << bits, 1 << bits).tolist()
        table = partial(
            Table, entries=entries, in_bits=bits, in_signed=False, out_bits=bits, out_signed=False,
            lanes=1, ram=device.ram,
        )  # fmt: skip
        yield Case("table", block, table)
    yield from _interpolated_tables(device)
    for channels in (2, 9, 10, 100):
        for bits in (4, 8):
            block = replace(BLOCK, kind="argmax", channels=channels, x_bits=bits)
            yield Case("argmax", block, partial(Argmax, channels=channels, bits=bits, signed=True))
    for channels in (2, 10, 100):
        block = replace(BLOCK, kind="softmax", channels=channels, x_signed=True)
        exponentials = np.random.default_rng(1).integers(0, 1 << 16, 256).tolist()
        softmax = partial(
            Softmax, channels=channels, bits=8, signed=True, table=exponentials, ram=device.ram
        )
        yield Case("softmax", block, softmax)
    for bits in (14, 20, 28) if device.long_wires else ():
        block = replace(BLOCK, acc_bits=bits, queued_sums=True)
        yield Case("sum queue", block, partial(Fifo, sum_layout(bits)))
    for bits in (4, 8, 16):
        fifo = partial(Fifo, beat_layout(bits=bits, signed=False, lanes=1))
        yield Case("port", replace(BLOCK, x_bits=bits), fifo)


def network_cases(plan: Plan, graph: Any, device: Device) -> Iterator[Case]:
    """Every component of a network's blocks that compute on one operand."""
    for block, layer in zip(plan.blocks, lower(graph).layers, strict=True):
        if isinstance(layer, ConcatLayer | EltwiseLayer | MoveLayer):
            continue
        components = stream_components(block, layer, device)
        for part, (suffix, component) in zip(block_parts(block), components, strict=True):
            note = {"network": plan.model, "component": f"{block.name}_{suffix}"}
            yield Case(part, block, partial(_same, component), note)


def _same(component: Any) -> Any:
    return component


def _running_pools(device: Device) -> Iterator[Case]:
    images = [(28, 8, 2), (14, 16, 2), (7, 32, 2), (9, 4, 3), (8, 64, 8), (5, 12, 5)]
    for size, channels, kernel in images:
        window = Window(
            size, size, channels, kernel=(kernel, kernel), stride=(kernel, kernel),
            passes=channels, by_channel=True,
        )  # fmt: skip
        for single_port in (False, True) if device.spram else (False,):
            block = replace(
                BLOCK, kind="running_max", channels=channels, window=window,
                depth=channels * window.out_width, single_port=single_port,
            )  # fmt: skip
            shape = {"window": window, "ram": device.ram, "single_port": single_port, "bits": 8}
            yield Case("running pool", block, partial(RunningMax, signed=False, **shape))
            if single_port == bool(device.spram):
                block = replace(block, kind="running_sum", acc_bits=14)
                pool = partial(RunningSum, signed=False, acc_bits=14, **shape)
                yield Case("running pool", block, pool)


def _line_buffers(device: Device) -> Iterator[Case]:
    same = ((1, 1), (1, 1))
    windows = [
        Window(28, 28, 1, kernel=(3, 3), passes=2),
        Window(28, 28, 1, kernel=(3, 3), padding=same, passes=4),
        Window(28, 28, 1, kernel=(5, 5), padding=((2, 2), (2, 2)), passes=1),
        Window(32, 32, 3, kernel=(3, 3), padding=same, passes=16),
        Window(14, 14, 8, kernel=(3, 3), padding=same, passes=4),
        Window(14, 14, 6, kernel=(5, 5), passes=16),
        Window(13, 13, 16, kernel=(3, 3), stride=(2, 2), passes=8),
        Window(26, 1, 12, kernel=(5, 1), passes=6),
        Window(29, 1, 12, kernel=(3, 1), padding=((1, 1), (0, 0)), passes=24),
        Window(10, 10, 16, passes=32),
        Window(1, 1, 1, passes=1),
        Window(1, 1, 16, passes=16),
        Window(1, 1, 64, passes=10),
        Window(1, 1, 200, passes=10),
        Window(1, 1, 784, passes=8),
        Window(28, 28, 4, kernel=(2, 2), stride=(2, 2), passes=4, by_channel=True),
        Window(24, 24, 6, kernel=(2, 2), stride=(2, 2), passes=6, by_channel=True),
        Window(8, 8, 64, kernel=(8, 8), passes=64, by_channel=True),
        Window(15, 15, 16, kernel=(3, 3), stride=(2, 2), padding=same, passes=16, by_channel=True),
    ]
    for n, window in enumerate(windows):
        shallow = max(2, 1 << (window.min_depth - 1).bit_length())
        lanes = (1,) if window.by_channel or n % 2 else (1, 4)
        for depth in (shallow, 4 * shallow):
            for width in lanes:
                block = replace(BLOCK, window=window, depth=depth, lanes=width)
                buffer = partial(
                    LineBuffer, window=window, bits=8, signed=False, lanes=width, pad_code=0,
                    depth=depth, ram=device.ram,
                )  # fmt: skip
                yield Case("line buffer", block, buffer)


def _parallel_line_buffers(device: Device) -> Iterator[Case]:
    same = ((1, 1), (1, 1))
    spread = [
        (1, Window(28, 28, 1, kernel=(3, 3))),
        (1, Window(28, 28, 1, kernel=(3, 3), passes=4)),
        (1, Window(28, 28, 1, kernel=(3, 3), stride=(2, 2))),
        (1, Window(28, 28, 1, kernel=(5, 5), padding=((2, 2), (2, 2)), passes=2)),
        (1, Window(8, 8, 1, kernel=(3, 3), padding=same, passes=4)),
        (3, Window(32, 32, 1, kernel=(3, 3), padding=same, passes=16)),
        (4, Window(14, 14, 1, kernel=(2, 2), passes=8)),
    ]
    for channels, window in spread:
        lanes = channels * window.taps
        block = replace(
            BLOCK, window=window, channels=channels, lanes=lanes, depth=window.padded_width,
            parallel=True,
        )  # fmt: skip
        buffer = partial(
            ParallelLineBuffer, window=window, bits=8, signed=False, lanes=channels, pad_code=0,
            ram=device.ram,
        )  # fmt: skip
        yield Case("parallel line buffer", block, buffer)


def _arrays(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, words, rows, lanes, group_rows, acc_bits, in_dsp, style, kept_passes, code bits
    spread: list[tuple[int, int, int, int, int, int, bool, str, int, int]] = [
        (8, 72, 1, 1, 1, 20, True, "block", 1, 8),
        (8, 72, 2, 1, 2, 20, True, "block", 1, 8),
        (8, 72, 4, 1, 4, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 8, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 8, 26, True, "block", 1, 8),
        (8, 72, 8, 1, 2, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 1, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 8, 20, True, "block", 2, 8),
        (8, 72, 8, 1, 2, 20, True, "block", 2, 8),
        (8, 72, 1, 2, 1, 20, True, "block", 1, 8),
        (8, 72, 2, 4, 2, 20, True, "block", 1, 8),
        (8, 72, 4, 4, 2, 20, True, "block", 1, 8),
        (8, 72, 1, 8, 1, 22, True, "block", 1, 8),
        (8, 72, 2, 8, 2, 22, True, "block", 1, 8),
        (8, 9, 4, 1, 4, 20, True, "logic", 1, 8),
        (8, 16, 4, 1, 4, 20, True, "logic", 1, 8),
        (16, 9, 2, 1, 2, 20, True, "logic", 1, 8),
        (10, 64, 10, 1, 10, 22, True, "logic", 1, 8),
        (64, 64, 4, 1, 4, 20, True, "block", 1, 8),
        (64, 200, 2, 1, 2, 24, True, "block", 1, 8),
        (64, 64, 4, 1, 2, 20, True, "block", 1, 8),
        (8, 72, 1, 1, 1, 20, False, "block", 1, 8),
        (8, 72, 2, 1, 2, 20, False, "block", 1, 8),
        (8, 72, 4, 1, 4, 20, False, "block", 1, 8),
        (8, 72, 8, 1, 8, 20, False, "block", 1, 8),
        (8, 72, 2, 4, 2, 20, False, "block", 1, 8),
        (8, 9, 4, 1, 4, 20, False, "logic", 1, 8),
        (8, 72, 4, 1, 4, 14, False, "block", 1, 4),
        (8, 72, 2, 2, 2, 16, False, "block", 1, 5),
    ]
    for channels, words, rows, lanes, group_rows, acc_bits, in_dsp, style, kept, bits in spread:
        highest = (1 << (bits - 1)) - 1
        values = np.round(rng.normal(0, 0.3 * highest, (channels, words, lanes)))
        weights = np.clip(values, -highest, highest)
        passes = -(-channels // rows)
        block = replace(
            BLOCK, channels=words * lanes, out_channels=channels, lanes=lanes, rows=rows,
            group_rows=group_rows, acc_bits=acc_bits, in_dsp=in_dsp, weight_style=style,
            kept_passes=kept, multipliers=rows * lanes, x_bits=bits, weight_bits=bits,
            weight_delay=device.weight_delay,
            window=Window(1, 1, words, passes=passes),
        )  # fmt: skip
        array = partial(
            SystolicArray, weights=weights.astype(np.int64), rows=rows, group_rows=group_rows,
            x_bits=bits, x_signed=False, w_bits=bits, acc_bits=acc_bits, in_dsp=in_dsp,
            ram=device.ram, weight_style=style, kept_passes=kept,
            weight_delay=device.weight_delay,
        )  # fmt: skip
        yield Case("array", block, array)


def _requantizers() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, mults, acc_bits, (digit_bits, stages), low end of the clip, mult_bits
    spread = [(1, 1, bits, (1, 1), 0, 16) for bits in (12, 18, 24)]
    spread += [(8, 8, 20, folding, 0, 16) for folding in ((1, 1), (2, 1), (2, 2), (2, 3))]
    spread += [(8, 8, bits, (2, stages), 0, 16) for bits in (14, 20, 26) for stages in (1, 4, 8)]
    counts = (2, 4, 10, 16, 24, 32, 48, 64, 96, 128)
    spread += [(count, count, 22, (1, 1), 0, 16) for count in counts]
    spread += [(64, 64, 24, (2, 8), -128, 16), (16, 16, 22, (2, 4), -128, 16)]
    spread += [(count, 1, 22, (1, 1), 0, 16) for count in (4, 16, 64)]
    spread += [(8, 8, 20, (2, 1), 128, 16), (16, 16, 22, (2, 1), 0, 8)]
    for channels, mults, acc_bits, (digit_bits, stages), lowest, mult_bits in spread:
        mult = rng.integers(1 << (mult_bits - 2), 1 << mult_bits, mults)
        mult[0] |= 1 << (mult_bits - 1)
        spread_bits = min(acc_bits - 3, 15)
        bias = np.round(rng.normal(0, 1 << (spread_bits - 1), channels)).astype(np.int64)
        signed = lowest < 0
        block = replace(
            BLOCK, out_channels=channels, acc_bits=acc_bits, digit_bits=digit_bits,
            digit_stages=stages, interval=-(-mult_bits // (digit_bits * stages)),
            out_signed=signed,
        )  # fmt: skip
        requant = Requant(
            tuple(mult.tolist()), acc_bits + mult_bits - 11, 0, lowest,
            127 if signed else 255, mult_bits,
        )  # fmt: skip
        requantizer = partial(
            Requantizer, requant=requant, bias=bias.tolist(), in_bits=acc_bits, acc_bits=acc_bits,
            digit_bits=digit_bits, stages=stages, bits=8, signed=signed,
        )  # fmt: skip
        note: dict[str, int | str] = {"mults": mults, "mult_bits": mult_bits}
        typical = mults == channels and mult_bits == 16
        yield Case("requantizer", block, requantizer, note, typical)


def _tflite_components(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, acc_bits, digit_bits, stages
    spread = [(16, 20, 2, 1), (64, 22, 2, 1), (64, 22, 2, 4), (16, 20, 2, 8), (64, 22, 2, 16)]
    spread += [(10, 18, 1, 1), (1, 30, 2, 8), (1, 30, 2, 1)]
    for channels, acc_bits, digit_bits, stages in spread:
        mult, bias = rng.integers(1 << 30, 1 << 31, channels), rng.integers(-9999, 9999, channels)
        requant = TfliteRequant(
            tuple(mult.tolist()), tuple(rng.integers(-10, -6, channels).tolist()), -5, -128, 127
        )
        block = replace(
            BLOCK, out_channels=channels, acc_bits=acc_bits, digit_bits=digit_bits,
            digit_stages=stages, interval=-(-31 // (digit_bits * stages)), round_stages=3,
            out_signed=True,
        )  # fmt: skip
        requantizer = partial(
            TfliteRequantizer, requant=requant, bias=bias.tolist(), in_bits=acc_bits,
            acc_bits=acc_bits, digit_bits=digit_bits, stages=stages, bits=8, signed=True,
        )  # fmt: skip
        yield Case("requantizer", block, requantizer, typical=channels > 1)
    exponentials = tflite_exp_table(0.1).tolist()
    for channels in (2, 10, 100):
        softmax = partial(
            TfliteSoftmax, channels=channels, bits=8, signed=True, table=exponentials,
            ram=device.ram,
        )  # fmt: skip
        block = replace(BLOCK, kind="tflite_softmax", channels=channels, x_signed=True)
        yield Case("tflite_softmax", block, softmax)
    tables = rng.integers(-1 << 28, 1 << 28, (2, 256)).tolist()
    total = partial(
        TableSum, entries=tables, in_bits=(8, 8), in_signed=(True, True), acc_bits=30,
        ram=device.ram,
    )  # fmt: skip
    block = replace(BLOCK, kind="table_sum", x_signed=True, y_bits=8, acc_bits=30)
    yield Case("table_sum", block, total)


def _interpolated_tables(device: Device) -> Iterator[Case]:
    # function, its range, bits in and out
    spread: list[tuple[Any, float, int, int]] = [
        (np.tanh, 4.0, 16, 16),
        (np.tanh, 1.0, 16, 16),
        (np.tanh, 4.0, 14, 14),
        (np.tanh, 4.0, 12, 12),
        (np.tanh, 4.0, 10, 10),
        (np.tanh, 4.0, 9, 16),
        (np.tanh, 8.0, 16, 8),
        (np.exp, 8.0, 16, 16),
        (np.sin, 300.0, 16, 16),
        (np.sin, 300.0, 12, 16),
    ]
    for function, reach, in_bits, out_bits in spread:
        source = QType(in_bits, True, 2 * reach / (1 << in_bits))
        top = float(function(reach)) if function is np.exp else 1.0
        knots = unary_table(function, source, QType(out_bits, True, 2 * top / (1 << out_bits)))
        rises = np.diff(knots)
        block = replace(
            BLOCK, kind="interpolated_table", x_bits=in_bits, x_signed=True, out_bits=out_bits,
            out_signed=True, y_bits=signed_bits(int(rises.min()), int(rises.max())),
        )  # fmt: skip
        table = partial(
            InterpolatedTable, knots=knots.tolist(), in_bits=in_bits, in_signed=True,
            out_bits=out_bits, out_signed=True, lanes=1, ram=device.ram,
        )  # fmt: skip
        yield Case("interpolated_table", block, table)


def _pools() -> Iterator[Case]:
    for bits in (4, 8, 16):
        block = replace(BLOCK, kind="max_pool", x_bits=bits)
        yield Case("pool", block, partial(MaxPool, bits=bits, signed=True, lanes=1))
    for bits in (8, 11, 16):
        block = replace(BLOCK, kind="avg_pool", acc_bits=bits)
        yield Case("pool", block, partial(SumPool, bits=8, signed=False, acc_bits=bits))
