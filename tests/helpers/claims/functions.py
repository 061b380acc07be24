"""Functions of codes: tables, requantizers, softmax, interpolation."""

from __future__ import annotations

from functools import partial

import numpy as np

from claims.frames import beats, claim, marked
from claims.operators import sum_items
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant

__all__ = ["FUNCTIONS"]


def sums(codes):
    return sum_items(codes)


def requantizer(stages, digit_bits, channels=2):
    requant = Requant((5, 3)[:channels], 2, 1, 0, 7, mult_bits=3)
    bias = [1, -1][:channels]
    part = parts.Requantizer(
        channels=channels, acc_bits=4, factor_bits=3, digit_bits=digit_bits, stages=stages, bits=3,
        signed=False,
    )  # fmt: skip
    return claim(
        part.build(requant=requant, bias=bias), marked(2, base=1, mark=-2),
        lambda codes: beats(requant.apply(codes.reshape(-1, channels) + bias)), items=sums,
        frame_bits=3, patience=part.latency + 3,
    )  # fmt: skip


def average_requantizer():
    requant, positions = Requant((5, 3), 2, 1, 0, 7, mult_bits=3), [[0, 1], [1, 1]]
    part = parts.AverageRequantizer(
        channels=1, acc_bits=4, factor_bits=3, digit_bits=3, stages=1, bits=3, signed=False
    )
    mults = np.take(requant.mult, positions).reshape(-1)

    def golden(codes):
        product = (codes + 1) * mults
        return beats((((product + 2) >> 2) + 1).clip(0, 7))

    return claim(
        part.build(requant=requant, bias=[1], positions=positions),
        marked(4, base=1, mark=-2), golden, items=sums, frame_bits=3, patience=8,
    )  # fmt: skip


def tflite_requantizer(digit_bits):
    requant = TfliteRequant((1518500250, 1 << 30), (-1, 0), 1, -8, 7)
    part = parts.TfliteRequantizer(
        channels=2, acc_bits=4, factor_bits=31, digit_bits=digit_bits, stages=1, bits=4,
        signed=True,
    )  # fmt: skip
    bias = [1, -1]
    return claim(
        part.build(requant=requant, bias=bias), marked(2, base=1, mark=-2),
        lambda codes: beats(requant.apply(codes.reshape(-1, 2) + bias)), items=sums,
        frame_bits=3, patience=part.latency + 3,
    )  # fmt: skip


FUNCTIONS = {
    "Requantizer": {
        "a sum per cycle": partial(requantizer, 1, 3),
        "one stage": partial(requantizer, 1, 1),
        "two stages": partial(requantizer, 2, 1),
        "two stages, a sum per cycle": partial(requantizer, 2, 2),
        "one channel": partial(requantizer, 3, 1, 1),
    },
    "AverageRequantizer": {"borders": average_requantizer},
    "TfliteRequantizer": {
        "a sum per cycle": partial(tflite_requantizer, 31),
        "two cycles": partial(tflite_requantizer, 16),
    },
}  # fmt: skip
