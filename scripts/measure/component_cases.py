"""Parts to measure: every component over its parameters, one or two of them varied at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import CODES, Case
from matrix_cases import matrix_cases
from memory_cases import memory_cases
from stream_cases import stream_cases
from tap_cases import tap_cases
from weight_cases import weight_cases

from nnef_hw.arithmetic.audio.log_mel import LogMel as LogMelFront
from nnef_hw.arithmetic.audio.log_mel import choose_log_mel
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend as MicroFront
from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import QType, Requant, choose_requant, signed_bits
from nnef_hw.arithmetic.tables import unary_table
from nnef_hw.arithmetic.tflite.division import tflite_quotient
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant, tflite_exp_table
from nnef_hw.arithmetic.tflite.short_functions import short_tanh
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.arrays.array import SystolicArray
from nnef_hw.parts.arrays.fast_array import FastArray
from nnef_hw.parts.arrays.requantizer import Requantizer, TfliteRequantizer
from nnef_hw.parts.arrays.weights import WeightRom
from nnef_hw.parts.audio.micro_frontend import MicroFrontend
from nnef_hw.parts.functions.argmax import Argmax
from nnef_hw.parts.functions.corrected_table import corrected_table
from nnef_hw.parts.functions.integer_normalize import IntegerNormalize
from nnef_hw.parts.functions.interpolated_table import InterpolatedTable
from nnef_hw.parts.functions.log_mel import LogMel
from nnef_hw.parts.functions.normalize import Normalize
from nnef_hw.parts.functions.pipelined_softmax import PipelinedSoftmax
from nnef_hw.parts.functions.quotient import Quotient
from nnef_hw.parts.functions.softmax import Softmax
from nnef_hw.parts.functions.table import Table
from nnef_hw.parts.functions.tablesum import TableSum
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax
from nnef_hw.parts.images.pool import MaxPool, SumPool
from nnef_hw.parts.images.runningpool import RunningMax, RunningSum
from nnef_hw.parts.streams.width import Pack
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.parts.windows.parallel import ParallelLineBuffer
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.hardware.layer_module import build_parts

__all__ = ["Case", "component_cases", "network_cases"]


def component_cases(device: Device) -> Iterator[Case]:
    """Every component over its parameters, one or two of them varied at a time."""
    yield from _line_buffers(device)
    yield from _parallel_line_buffers(device)
    yield from _arrays(device)
    yield from _narrow_arrays(device)
    yield from _fast_arrays(device)
    yield from weight_cases(device)
    yield from _requantizers()
    yield from _tflite_components(device)
    for bits in (4, 8, 16):
        yield Case(MaxPool(bits=bits, signed=True))
        yield Case(SumPool(bits=8, signed=False, acc_bits={4: 11}.get(bits, bits)))
    yield from _running_pools(device)
    full = [(4, 2), (4, 4), (6, 3), (8, 8), (30, 5), (64, 16), (120, 2)]
    for channels, lanes in (*full, (10, 4), (30, 8)):
        yield Case(Pack(channels=channels, lanes=lanes, **CODES))
    for bits in (4, 8):
        entries = np.random.default_rng(bits).integers(0, 1 << bits, 1 << bits).tolist()
        formats = {"in_bits": bits, "out_bits": bits, "in_signed": False, "out_signed": False}
        yield Case(Table(ram=device.ram, **formats), {"entries": entries})
    yield from _interpolated_tables(device)
    yield from _corrected_tables(device)
    for channels in (2, 9, 10, 100):
        for bits in (4, 8):
            yield Case(Argmax(channels=channels, bits=bits, signed=True))
    for channels in (2, 10, 100):
        exponentials = np.random.default_rng(1).integers(0, 1 << 16, 256).tolist()
        softmax = Softmax(channels=channels, bits=8, signed=True, ram=device.ram)
        yield Case(softmax, {"table": exponentials})
        for stages in (1, 2, 3, 5, 9) if channels == 10 else (1, 3, 9):
            pipelined = PipelinedSoftmax(
                channels=channels, bits=8, signed=True, ram=device.ram, stages=stages
            )
            # Of two channels an ECP5's subtractors become LUTs without carry chains.
            yield Case(pipelined, {"table": exponentials}, typical=channels > 2)
    finer = Softmax(channels=64, bits=8, signed=True, ram=device.ram, places=13)
    yield Case(finer, {"table": exponentials})
    for stages in (1, 4):
        pipelined = PipelinedSoftmax(
            channels=64, bits=8, signed=True, ram=device.ram, stages=stages, out_bits=12, places=15
        )
        yield Case(pipelined, {"table": exponentials})
    yield from _normalizations(device)
    yield from _integer_normalizations(device)
    yield from _log_mels(device)
    yield from _micro_frontends(device)
    yield from stream_cases(device)
    yield from tap_cases(device)
    yield from matrix_cases(device)
    yield from memory_cases(device)


def network_cases(plan: StreamingPlan) -> Iterator[Case]:
    """Every component of a network's blocks."""
    for block in plan.blocks:
        for part, component in zip(block.parts, build_parts(block), strict=True):
            note = {"network": plan.model, "component": f"{block.name}_{part.label}"}
            yield Case(part, note=note, built=component)


def _log_mels(device: Device) -> Iterator[Case]:
    """Of short and of long transforms; of a clip, and of a stream."""
    codes = QType(8, signed=True, scale=1 / 255, zero_point=-128)
    # points, bands, frames, emphasis
    spread = [(32, 4, 1, 0.5), (256, 20, 0, 0.96875), (1024, 40, 0, 0.96875)]
    for points, bands, frames, emphasis in spread:
        front = LogMelFront(
            window=points, hop=points // 2, points=points, bands=bands, emphasis=emphasis
        )
        requant = choose_log_mel(front, codes)
        part = LogMel(
            window=points, hop=points // 2, points=points, lengths=requant.bank.lengths,
            frames=frames, out_bits=8, out_signed=True, in_dsp=device.family.has_wide_products,
            ram=device.ram,
        )  # fmt: skip
        yield Case(part, {"requant": requant})


def _micro_frontends(device: Device) -> Iterator[Case]:
    """Of a stream and of clips, with codes of 8 and of 16 bits."""
    codes = QType(8, signed=True, scale=26 / 255, zero_point=-128)
    features = QType(16, signed=False, scale=1.0)
    for hop, frames, target, factor in [(160, 0, codes, 256 / 666), (320, 4, features, 1.0)]:
        part = MicroFrontend(
            hop=hop, frames=frames, out_bits=target.bits, out_signed=target.signed,
            in_dsp=device.family.has_wide_products, ram=device.ram,
        )  # fmt: skip
        requant = choose_requant([factor], target, mult_bits=24)
        yield Case(part, {"front": MicroFront(hop), "requant": requant})


def _normalizations(device: Device) -> Iterator[Case]:
    """Of few and many channels, with one scale and with one for each, slow and fast."""
    rng = np.random.default_rng(1)
    # channels, bits, cycles per code, number of scales, whether there is a mean
    spread = [
        (8, 8, 16, 1, True), (16, 8, 8, 16, True), (64, 8, 8, 64, True), (64, 8, 4, 1, True),
        (64, 8, 1, 64, False), (128, 8, 2, 128, True), (192, 8, 16, 1, False),
        (32, 16, 4, 32, True),
    ]  # fmt: skip
    for channels, bits, spacing, count, centered in spread:
        requant = NormalizeRequant(
            channels=channels, centered=centered, epsilon=channels, shift=21, fraction=10,
            zero_point=-3, lo=-128, hi=127,
        )  # fmt: skip
        mult = rng.integers(1 << 14, 1 << 16, count) * rng.choice([-1, 1], count)
        offset = rng.integers(-1 << 16, 1 << 16, count)
        part = Normalize(
            channels=channels, bits=bits, signed=True, out_bits=8, out_signed=True,
            centered=centered, epsilon_bits=channels.bit_length(), fraction=10, offset_bits=18,
            scales=count, offsets=count, spacing=spacing, ram=device.ram,
        )  # fmt: skip
        contents = {"mult": mult.tolist(), "offset": offset.tolist(), "zero_point": 5}
        yield Case(part, {"requant": requant, **contents})


def _integer_normalizations(device: Device) -> Iterator[Case]:
    """Of few and many channels, with narrow and wide constants."""
    rng = np.random.default_rng(1)
    # channels, bits, bits of scales and offsets, number of scales, whether there is a mean
    spread = [
        (8, 8, 24, 1, True), (16, 8, 20, 16, True), (64, 8, 22, 64, False), (64, 8, 22, 1, False),
        (64, 4, 18, 64, True), (128, 8, 22, 128, True), (192, 8, 24, 1, True),
        (32, 12, 28, 32, True),
    ]  # fmt: skip
    for channels, bits, wide, count, centered in spread:
        requant = IntegerNormalizeRequant(
            channels=channels, centered=centered, shift=14, lo=-128, hi=127
        )
        scale, offset = (rng.integers(-1 << wide - 1, 1 << wide - 1, count) for _ in range(2))
        part = IntegerNormalize(
            channels=channels, bits=bits, signed=True, out_bits=8, out_signed=True,
            centered=centered, scale_bits=wide, offset_bits=wide, scales=count, offsets=count,
            ram=device.ram,
        )  # fmt: skip
        contents = {"scale": scale.tolist(), "offset": offset.tolist()}
        yield Case(part, {"requant": requant, **contents})


def _running_pools(device: Device) -> Iterator[Case]:
    images = [(28, 8, 2), (14, 16, 2), (7, 32, 2), (9, 4, 3), (8, 64, 8), (5, 12, 5)]
    for size, channels, kernel in images:
        window = Window(
            size, size, channels, kernel=(kernel, kernel), stride=(kernel, kernel),
            passes=channels, by_channel=True,
        )  # fmt: skip
        for single_port in dict.fromkeys((None, device.single_port)):
            shape = {"window": window, "ram": device.ram, "single_port": single_port, **CODES}
            yield Case(RunningMax(**shape))
            if single_port == device.single_port:
                yield Case(RunningSum(acc_bits=14, **shape))


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
        Window(1, 1, 12, kernel=(3, 1), dilation=(4, 1), passes=8, history=8),
        Window(1, 1, 40, kernel=(10, 1), passes=40, by_channel=True, history=9),
        Window(2, 5, 8, (10, 4), (2, 2), padding=((0, 0), (1, 1)), passes=4, history=8),
    ]
    for n, window in enumerate(windows):
        shallow = max(2, 1 << (window.min_depth - 1).bit_length())
        lanes = (1,) if window.by_channel or n % 2 else (1, 4)
        for depth in (shallow, 4 * shallow):
            for width in lanes:
                yield Case(
                    LineBuffer(
                        window=window, lanes=width, pad_code=0, depth=depth, ram=device.ram,
                        **CODES,
                    )
                )  # fmt: skip


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
        yield Case(
            ParallelLineBuffer(window=window, lanes=channels, pad_code=0, ram=device.ram, **CODES)
        )


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
        array = SystolicArray(
            channels=channels, words=words, rows=rows, lanes=lanes, group_rows=group_rows,
            kept_passes=kept, x_bits=bits, x_signed=False, w_bits=bits, acc_bits=acc_bits,
            in_dsp=rows * lanes if in_dsp else 0, weights=WeightRom(ram=device.ram, style=style),
            weight_delay=device.weight_delay,
        )  # fmt: skip
        yield Case(array, {"weights": weights.astype(np.int64)})


def _narrow_arrays(device: Device) -> Iterator[Case]:
    """Multipliers in logic of codes and narrower weights."""
    rng = np.random.default_rng(0)
    for w_bits in (4, 3, 2):
        array = SystolicArray(
            channels=16, words=72, rows=4, lanes=4, group_rows=2, kept_passes=2, x_bits=8,
            x_signed=False, w_bits=w_bits, acc_bits=12 + w_bits, in_dsp=0,
            weights=WeightRom(ram=device.ram), weight_delay=device.weight_delay,
        )  # fmt: skip
        highest = (1 << (w_bits - 1)) - 1
        weights = np.round(rng.normal(0, 0.5 * highest, (16, 72, 4)))
        yield Case(array, {"weights": np.clip(weights, -highest, highest).astype(np.int64)})


def _fast_arrays(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # rows, lanes, group_rows, in_dsp, kept_passes, code bits
    spread: list[tuple[int, int, int, bool, int, int]] = [
        (4, 4, 4, True, 1, 8),
        (4, 8, 2, True, 2, 8),
        (8, 4, 4, True, 2, 8),
        (8, 2, 8, True, 1, 8),
        (4, 5, 2, True, 1, 8),
        (8, 8, 2, True, 2, 8),
        (4, 4, 4, False, 1, 8),
        (8, 4, 4, False, 2, 8),
        (8, 2, 8, False, 1, 8),
        (4, 4, 4, False, 1, 4),
    ]
    for rows, lanes, group_rows, in_dsp, kept, bits in spread:
        if in_dsp and not device.sums_per_dsp:
            continue
        highest = (1 << (bits - 1)) - 1
        values = np.round(rng.normal(0, 0.3 * highest, (8, 72, lanes)))
        multipliers = rows * -(-lanes // 2) + lanes // 2
        array = FastArray(
            channels=8, words=72, rows=rows, lanes=lanes, group_rows=group_rows,
            kept_passes=kept, x_bits=bits, x_signed=False, w_bits=bits, acc_bits=2 * bits + 4,
            in_dsp=multipliers if in_dsp else 0, weights=WeightRom(ram=device.ram),
            weight_delay=device.weight_delay,
        )  # fmt: skip
        yield Case(array, {"weights": np.clip(values, -highest, highest).astype(np.int64)})


def _requantizers() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, mults, acc_bits, (digit_bits, stages), low end of the clip, mult_bits
    spread = [(1, 1, bits, (1, 1), 0, 16) for bits in (12, 18, 24)]
    spread += [(8, 8, 20, folding, 0, 16) for folding in ((1, 1), (2, 1), (2, 2), (2, 3))]
    spread += [(8, 8, bits, (2, stages), 0, 16) for bits in (14, 20, 26) for stages in (1, 4, 8)]
    counts = (2, 4, 10, 16, 24, 32, 48, 64, 96, 128, 256)
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
        requant = Requant(
            tuple(mult.tolist()), acc_bits + mult_bits - 11, 0, lowest,
            127 if signed else 255, mult_bits,
        )  # fmt: skip
        requantizer = Requantizer(
            channels=channels, acc_bits=acc_bits, factor_bits=mult_bits, digit_bits=digit_bits,
            stages=stages, bits=8, signed=signed,
        )  # fmt: skip
        contents = {"requant": requant, "bias": bias.tolist()}
        note: dict[str, int | str] = {"mults": mults, "mult_bits": mult_bits}
        yield Case(requantizer, contents, note, mults == channels and mult_bits == 16)


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
        requantizer = TfliteRequantizer(
            channels=channels, acc_bits=acc_bits, factor_bits=31, digit_bits=digit_bits,
            stages=stages, bits=8, signed=True,
        )  # fmt: skip
        contents = {"requant": requant, "bias": bias.tolist()}
        yield Case(requantizer, contents, typical=channels > 1)
    exponentials = tflite_exp_table(0.1).tolist()
    for channels in (2, 10, 100):
        softmax = TfliteSoftmax(channels=channels, bits=8, signed=True, ram=device.ram)
        yield Case(softmax, {"table": exponentials})
    tables = rng.integers(-1 << 28, 1 << 28, (2, 256)).tolist()
    total = TableSum(in_bits=(8, 8), in_signed=(True, True), acc_bits=30, ram=device.ram)
    yield Case(total, {"entries": tables})
    requant = tflite_quotient((0.05, 0.04), QType(8, True, 0.07, -20))
    for digit_bits in (1, 2, 4):
        quotient = Quotient(
            in_bits=(8, 8), in_signed=(True, True), out_bits=8, out_signed=True,
            digit_bits=digit_bits, ram=device.ram,
        )  # fmt: skip
        yield Case(quotient, {"requant": requant, "in_zero_points": (3, -20)})


def _corrected_tables(device: Device) -> Iterator[Case]:
    for bits in (12, 14, 15):
        qtype = QType(bits, True, 1.0)
        codes = np.arange(qtype.lo, qtype.hi + 1) << (16 - bits)
        for integer_bits in (3, 4):
            entries = short_tanh(codes, integer_bits) >> (16 - bits)
            part = corrected_table(entries, qtype, qtype, device.ram)
            yield Case(part, {"entries": entries.tolist()}, note={"integer_bits": integer_bits})


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
        table = InterpolatedTable(
            in_bits=in_bits, in_signed=True, out_bits=out_bits, out_signed=True, ram=device.ram,
            rise_bits=signed_bits(int(rises.min()), int(rises.max())),
        )  # fmt: skip
        yield Case(table, {"knots": knots.tolist()})
