"""Parts to measure that combine streams, move their codes, or let them wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import CODES, Case

from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.arithmetic.numerics import QType, choose_add_requant
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.functions.causal_mask import CausalMask
from nnef_hw.parts.functions.eltwise import EltwiseExtremum, EltwiseProduct, EltwiseSum
from nnef_hw.parts.functions.lookup import Lookup
from nnef_hw.parts.images.depthtospace import DepthToSpace
from nnef_hw.parts.images.interpolate import Interpolate
from nnef_hw.parts.images.pad import Pad
from nnef_hw.parts.images.transpose import Transpose
from nnef_hw.parts.images.upsample import Upsample
from nnef_hw.parts.streams.concat import Concat, Split
from nnef_hw.parts.streams.constant import Constant
from nnef_hw.parts.streams.delay import Delay
from nnef_hw.parts.streams.fifo import BlockFifo
from nnef_hw.parts.streams.state import State
from nnef_hw.parts.streams.stream import Fifo, Skid, SumQueue
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["stream_cases"]

IMAGES = ((8, 8, 4), (28, 28, 1), (14, 14, 16), (5, 7, 12), (49, 1, 64))


def stream_cases(device: Device) -> Iterator[Case]:
    """Return all cases, over their parameters."""
    yield from _sums()
    yield from _products()
    for bits in (4, 8, 16):
        for greatest in (False, True):
            yield Case(EltwiseExtremum(greatest=greatest, bits=bits, signed=greatest))
    for runs in ((4, 4), (16, 16), (3, 5), (64, 32), (8, 8, 8), (4, 12, 16, 32), (784, 784)):
        yield Case(Concat(runs=runs, **CODES))
    yield Case(Concat(runs=(16, 16), bits=16, signed=True))
    yield from _constants(device)
    yield from _places(device)
    yield from _states(device)
    yield from _moves(device)
    yield from _interpolations(device)
    yield from _queues(device)


def _sums() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for bits in ((8, 8), (8, 4), (4, 4), (16, 8), (16, 16), (6, 6)):
        for sign in (1.0, -1.0):
            target = QType(bits[0], True, 1.0)
            factors = (float(rng.uniform(0.3, 0.9)), sign * float(rng.uniform(0.3, 0.9)))
            total = EltwiseSum(
                in_bits=bits, in_signed=(True, True), out_bits=bits[0], out_signed=True
            )
            requant = choose_add_requant(factors, target, operand_bits=max(bits) + 1)
            yield Case(total, {"requant": requant, "in_zero_points": (3, -2)})


def _products() -> Iterator[Case]:
    for bits, zeros in (
        ((8, 8), (0, 0)), ((8, 8), (3, -7)), ((8, 4), (3, 1)), ((4, 4), (1, -2)), ((6, 8), (5, 5)),
        ((16, 8), (100, 3)),
    ):  # fmt: skip
        product = EltwiseProduct(in_bits=bits, in_signed=(True, True))
        # Without zero points nothing is subtracted, which a plan does not know.
        yield Case(product, {"in_zero_points": zeros}, typical=any(zeros))


def _places(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for rows, channels, lanes, style in (
        (16, 16, 1, "block"), (27, 16, 1, "block"), (27, 27, 1, "block"), (200, 12, 4, "block"),
        (64, 64, 2, "block"), (16, 16, 1, "logic"), (27, 16, 1, "logic"), (27, 12, 2, "logic"),
        (8, 4, 1, "logic"),
    ):  # fmt: skip
        lookup = Lookup(
            rows=rows, channels=channels, in_bits=(rows - 1).bit_length(), bits=8, signed=True,
            lanes=lanes, ram=device.ram, style=style,
        )  # fmt: skip
        yield Case(lookup, {"codes": rng.integers(-128, 128, (rows, channels)).tolist()})
    for channels in (8, 16, 50, 256):
        for bits in (4, 8):
            place = (channels - 1).bit_length()
            yield Case(
                CausalMask(channels=channels, pixels=4, bits=bits, signed=True, place_bits=place)
            )


def _constants(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for count, repeats in ((1, 64), (4, 16), (16, 64), (64, 16), (200, 1), (784, 1)):
        constant = Constant(count=count, repeats=repeats, bits=8, signed=True, ram=device.ram)
        codes = rng.integers(-128, 128, count).tolist()
        yield Case(constant, {"codes": codes}, typical=count > 1)


def _states(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for bits in (4, 8, 16):
        for count in (8, 24, 100, 1000):
            state = State(count=count, bits=bits, signed=False, ram=device.ram)
            yield Case(state, {"codes": [5] * count})
    for count, bits in ((8, 8), (24, 8), (64, 8), (100, 8), (24, 16), (64, 4)):
        state = State(count=count, bits=bits, signed=False, ram=device.ram, style="logic")
        yield Case(state, {"codes": rng.integers(0, 1 << bits, count).tolist()})
    for count, bits in ((200, 8), (1000, 8), (500, 16)):
        state = State(count=count, bits=bits, signed=False, ram=device.ram, style="block")
        yield Case(state, {"codes": rng.integers(0, 1 << bits, count).tolist()})
    for count, frame, bits in ((32, 8, 8), (512, 64, 8), (24, 24, 16), (1000, 250, 4)):
        yield Case(Delay(count=count, code=3, frame=frame, bits=bits, signed=False))


def _moves(device: Device) -> Iterator[Case]:
    memory: dict[str, Any] = {"ram": device.ram, **CODES}
    for runs, turns in (
        ((4, 8, 4), 64), ((1, 3), 196), ((16, 16), 49), ((28, 700, 56), 1), ((300, 200, 284), 4),
    ):  # fmt: skip
        kept = tuple(n == 1 for n in range(len(runs)))
        yield Case(Split(runs=runs, turns=turns, kept=kept, **CODES))
    for height, width, channels in IMAGES:
        image = {"height": height, "width": width, "channels": channels}
        for padding in (((1, 1), (1, 1)), ((0, 1), (0, 0)), ((2, 0), (3, 3))):
            yield Case(Pad(**image, padding=padding, pad_code=7, **CODES))
        two_rows = 2 * width * channels
        for factors in ((2, 2), (1, 3)):
            yield Case(Upsample(**image, factors=factors, depth=two_rows, **memory))
            inner = {**image, "channels": max(1, channels // 4)}
            codes = 2 * width * inner["channels"] * factors[0] * factors[1]
            depth = 1 << (codes - 1).bit_length()
            yield Case(DepthToSpace(**inner, factors=factors, depth=depth, **memory))
        for order in ((2, 0, 1), (1, 0, 2)):
            yield Case(Transpose(extents=(height, width, channels), order=order, **memory))
        # Groups of channels that change places in each of so many pixels.
        yield Case(Transpose(extents=(1, 2, 8), order=(0, 2, 1), turns=height * width, **memory))


def _interpolations(device: Device) -> Iterator[Case]:
    for (height, width, channels), (rows, columns), mode, bits in (
        ((8, 8, 4), (24, 24), "half_pixel", 8),
        ((28, 28, 1), (96, 96), "asymmetric", 8),
        ((14, 14, 16), (20, 31), "half_pixel", 8),
        ((5, 7, 12), (13, 22), "align_corners", 8),
        ((49, 40, 3), (10, 9), "half_pixel", 8),
        ((8, 8, 4), (24, 24), "half_pixel", 4),
        ((14, 14, 8), (20, 31), "half_pixel", 16),
    ):
        places = (Places.of(height, rows, mode), Places.of(width, columns, mode))
        yield Case(Interpolate(
            rows=places[0], columns=places[1], channels=channels, bits=bits, signed=True,
            ram=device.ram,
        ))  # fmt: skip


def _queues(device: Device) -> Iterator[Case]:
    for bits in (4, 8, 16):
        shape = beat_layout(bits=bits, signed=False, lanes=1)
        yield Case(Skid(bits=bits + 1), {"shape": shape})
        for depth in (2, 3, 4, 8, 16):
            yield Case(Fifo(bits=bits, depth=depth), {"shape": shape})
        for depth in (20, 100, 600, 3000):
            fifo = BlockFifo(bits=bits, signed=False, frame=depth + 7, depth=depth, ram=device.ram)
            yield Case(fifo, {"shape": shape})
    for bits in (14, 20, 28):
        yield Case(SumQueue(bits=bits + 1), {"shape": sum_layout(bits)})
