"""Arrays of multipliers: every sum is that of its own pass, and none is overwritten."""

from __future__ import annotations

from functools import partial

import numpy as np
from prover import Claim

from claims.frames import RAM, beats, claim, marked, payloads
from claims.operators import sum_items
from nnef_hw import parts
from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.hardware.geometry.contraction import Contraction

__all__ = ["ARRAYS"]

FORMAT = {
    "x_bits": 1, "x_signed": False, "w_bits": 2, "acc_bits": 3, "in_dsp": False,
    "weights": parts.WeightRom(ram=RAM, style="logic"),
}  # fmt: skip


def weights_of(shape):
    """Return weights of which neighbours differ."""
    return np.array([1, -1, -2, 1, 0])[np.arange(np.prod(shape)) % 5].reshape(shape)


def window_words(codes, length, lanes):
    """Return the codes as passes of so many words of lanes."""
    rows = codes.reshape(-1, lanes).tolist()
    return [
        {"data": row, "last": n % length == length - 1, "end": n == len(rows) - 1}
        for n, row in enumerate(rows)
    ]


def wrap(sums):
    return (sums + 4) % 8 - 4


def systolic(
    channels, words, lanes, rows, group_rows, kept_passes, weight_delay=0, pixels=1, out_lanes=1
):
    part = parts.SystolicArray(
        channels=channels, words=words, lanes=lanes, rows=rows, group_rows=group_rows,
        kept_passes=kept_passes, weight_delay=weight_delay, out_lanes=out_lanes, **FORMAT,
    )  # fmt: skip
    weights = weights_of((channels, words, lanes))

    def golden(codes):
        passes = codes.reshape(pixels, part.passes, words, lanes)
        sums = [
            (weights[first : first + rows] * passes[pixel, n]).sum(axis=(1, 2))
            for pixel in range(pixels) for n, first in enumerate(range(0, channels, rows))
        ]  # fmt: skip
        return sum_items(wrap(np.concatenate(sums)), out_lanes)

    return claim(
        part.build(weights=weights), marked(pixels * part.passes * words * lanes), golden,
        items=lambda codes: window_words(codes, words, lanes), patience=part.latency + 3,
        frame_bits=3,
        needs=[
            (pixel * part.passes + channel // rows + 1) * words - 1
            for pixel in range(pixels) for channel in range(0, channels, out_lanes)
        ],
    )  # fmt: skip


def depthwise(
    channels, positions, lanes, taps, kept_passes, weight_delay=0, lut_ram=False, out_lanes=1
):
    part = parts.DepthwiseArray(
        channels=channels, positions=positions, lanes=lanes, taps=taps, lut_ram=lut_ram,
        kept_passes=kept_passes, weight_delay=weight_delay, out_lanes=out_lanes, **FORMAT,
    )  # fmt: skip
    weights = weights_of((channels, positions))
    padded = np.zeros((part.blocks * lanes, part.words * taps), int)
    padded[:channels, :positions] = weights
    order = padded.reshape(part.blocks, lanes, part.words, taps).transpose(0, 2, 3, 1)

    def golden(codes):
        products = codes.reshape(order.shape) * order
        return sum_items(wrap(products.sum(axis=(1, 2)).reshape(-1)[:channels]), out_lanes)

    return claim(
        part.build(weights=weights), marked(order.size), golden,
        items=lambda codes: window_words(codes, part.words, lanes * taps),
        patience=part.latency + 3, frame_bits=3,
        needs=[
            (channel // lanes + 1) * part.words - 1 for channel in range(0, channels, out_lanes)
        ],
    )  # fmt: skip


def contraction(inner, columns, rows, lanes, order, *, turns=1, repeats=1, matrices=1, kept=1):
    product = Contraction(
        sets=1, matrices=matrices, repeats=repeats, turns=turns, inner=inner, columns=columns,
        order=order,
    )  # fmt: skip
    memory = parts.WeightMemory(
        ram=RAM, product=product, rows=rows, group_rows=1, lanes=lanes, bits=2
    )
    array = parts.SystolicArray(
        channels=columns, words=memory.words, lanes=lanes, rows=rows, group_rows=1,
        kept_passes=kept, weight_delay=0, x_bits=1, x_signed=False, w_bits=2, acc_bits=3,
        in_dsp=0, weights=memory,
    )  # fmt: skip
    writer = parts.WeightWriter(memory=memory, in_bits=2, in_signed=True, zero_point=0)
    part = parts.ContractionArray(
        array=array, writer=writer, in_bits=1, in_signed=False, zero_point=0
    )
    count = product.rows * inner
    x = np.array(marked(count))
    w = np.array(marked(product.codes, base=-1, mark=-2))
    # a mark in one operand, then one in the other, beside rows that show it
    pairs = [(one, w[0]) for one in x] + [(np.ones_like(x[0]), other) for other in w[1:]]
    padded = memory.words * lanes

    def words(codes):
        lines = np.zeros((product.rows, padded), int)
        lines[:, :inner] = codes.reshape(product.rows, inner)
        passes = np.repeat(lines[:, None], array.passes, axis=1)
        return window_words(passes.reshape(-1), memory.words, lanes)

    def golden(pair):
        one, other = pair
        image = one.reshape(1, product.rows, inner).transpose(0, 2, 1)
        last = product.extents[-1]
        matrix = other.reshape(1, -1, last).transpose(0, 2, 1)
        return sum_items(wrap(product.multiply(image, matrix)[0].T.reshape(-1)), 1)

    component = part.build()
    return Claim(
        component=component,
        inputs={
            "i": payloads(component.i, [words(one) for one, _ in pairs]),
            "w": payloads(component.w, [beats(other) for _, other in pairs]),
        },
        outputs={"o": payloads(component.o, [golden(pair) for pair in pairs])},
        patience=array.latency + product.codes + 4, frame_bits=3,
    )  # fmt: skip


def matrix_product(lut_ram):
    # three sums of a code, one of which is there a cycle later
    matrix, bias = np.array([[1], [-1], [3]]), np.array([1, 2, 0])
    requant = Requant((1,), 1, 0, 0, 1, mult_bits=1)
    graph = multiply_matrix(
        matrix, factors=[1, 1, 1], offsets=(bias + 1).tolist(), bits=1, signed=False
    )
    part = parts.MatrixProduct(
        graph=graph, products=3, shift=1, lo=0, hi=1, in_lanes=1, in_bits=1, in_signed=False,
        out_lanes=3, out_bits=1, out_signed=False, lut_ram=lut_ram,
    )  # fmt: skip

    def golden(codes):
        return beats(requant.apply(codes.reshape(-1, 1) @ matrix.T + bias).reshape(-1), 3)

    return claim(part.build(), marked(1), golden, patience=part.latency + 3, frame_bits=4)


ARRAYS = {
    "SystolicArray": {
        "one row": partial(systolic, 2, 2, 1, 1, 1, 1),
        "one row, two passes kept": partial(systolic, 2, 2, 1, 1, 1, 2),
        "rows": partial(systolic, 3, 2, 1, 2, 1, 1),
        "rows, two passes kept": partial(systolic, 3, 1, 1, 2, 2, 2),
        "lanes": partial(systolic, 2, 2, 2, 2, 1, 2),
        "weights far away": partial(systolic, 2, 1, 1, 2, 1, 2, 1),
        "two sums in a beat": partial(systolic, 4, 1, 1, 4, 2, 2, out_lanes=2),
    },
    "DepthwiseArray": {
        "one lane": partial(depthwise, 2, 2, 1, 1, 1),
        "two passes kept": partial(depthwise, 2, 2, 1, 1, 2),
        "many passes kept": partial(depthwise, 2, 1, 1, 1, 3),
        "lanes": partial(depthwise, 3, 2, 2, 1, 2),
        "weights far away": partial(depthwise, 2, 1, 2, 1, 2, 1),
        "two sums in a beat": partial(depthwise, 4, 1, 4, 1, 2, out_lanes=2),
    },
    "ContractionArray": {
        "a row": partial(contraction, 2, 1, 1, 1, "mkn"),
        "two rows of columns": partial(contraction, 1, 2, 1, 1, "mnk", turns=2),
        "groups": partial(contraction, 1, 2, 2, 1, "mkn", kept=2),
        "lanes": partial(contraction, 2, 1, 1, 2, "nkm", repeats=2),
        "matrices": partial(contraction, 1, 1, 1, 1, "nmk", matrices=2),
    },
    "MatrixProduct": {
        "LUT RAM": partial(matrix_product, True), "registers": partial(matrix_product, False),
    },
}  # fmt: skip
