"""Operators on codes: element by element, reductions of windows, the largest of a pixel."""

from __future__ import annotations

from functools import partial

import numpy as np

from claims.frames import RAM, beats, claim, marked
from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window

__all__ = ["OPERATORS"]


def words(codes, length):
    """Return the codes as passes of so many window words."""
    count = len(codes)
    return [
        {"data": [code], "last": n % length == length - 1, "end": n == count - 1}
        for n, code in enumerate(codes.tolist())
    ]


def maximum(length, passes):
    part = parts.MaxPool(bits=2, signed=True)
    return claim(
        part.build(), marked(length * passes, base=-1),
        lambda codes: beats(codes.reshape(passes, -1).max(axis=1)),
        items=lambda codes: words(codes, length),
    )  # fmt: skip


def sum_items(sums, lanes=1):
    rows = np.reshape(sums, (-1, lanes)).tolist()
    return [{"acc": row, "last": n == len(rows) - 1} for n, row in enumerate(rows)]


def side_by_side(lanes):
    """Maxima of tiles, of every lane by itself."""
    window = tiling(2, 2, 1, (2, 1))
    copy = parts.RunningMax(window=window, bits=1, signed=False, ram=RAM)

    def golden(codes):
        return beats(codes.reshape(2, 2, lanes).max(axis=0), lanes)

    part = parts.Lanes(part=copy, lanes=lanes)
    return claim(part.build(), marked(4 * lanes), golden, lanes=lanes, patience=8)


def total(length, passes):
    part = parts.SumPool(bits=2, signed=False, acc_bits=5)
    return claim(
        part.build(), marked(length * passes, base=1, mark=3),
        lambda codes: sum_items(codes.reshape(passes, -1).sum(axis=1)),
        items=lambda codes: words(codes, length),
    )  # fmt: skip


def running(part_class, window, single_port=None, **fields):
    part = part_class(
        window=window, bits=2, signed=False, ram=RAM, single_port=single_port, **fields
    )
    is_sum = part_class is parts.RunningSum
    height, width = window.kernel

    def golden(codes):
        image = codes.reshape(window.height, window.width, -1)
        results = [
            (np.sum if is_sum else np.max)(
                image[y * height : (y + 1) * height, x * width : (x + 1) * width], axis=(0, 1))
            for y in range(window.out_height) for x in range(window.out_width)
        ]  # fmt: skip
        flat = np.concatenate(results)
        return sum_items(flat) if is_sum else beats(flat)

    return claim(part.build(), marked(window.beats, base=1, mark=2), golden, patience=8)


def tiling(height, width, channels, kernel):
    return Window(height, width, channels, kernel=kernel, stride=kernel, passes=channels,
                  by_channel=True)  # fmt: skip


OPERATORS = {
    "MaxPool": {"passes": partial(maximum, 3, 2), "words": partial(maximum, 1, 3)},
    "SumPool": {"passes": partial(total, 3, 2), "words": partial(total, 1, 3)},
    "RunningMax": {
        "registers": partial(running, parts.RunningMax, tiling(2, 4, 1, (2, 2))),
        "block RAM": partial(running, parts.RunningMax, tiling(2, 2, 4, (2, 1))),
        "rest": partial(running, parts.RunningMax, tiling(3, 3, 1, (2, 2))),
        "single port": partial(running, parts.RunningMax, tiling(2, 2, 1, (2, 1)), True),
    },
    "RunningSum": {
        "registers": partial(running, parts.RunningSum, tiling(2, 2, 1, (2, 2)), acc_bits=5),
        "block RAM": partial(running, parts.RunningSum, tiling(2, 1, 4, (2, 1)), acc_bits=5),
        "single port": partial(running, parts.RunningSum, tiling(2, 2, 1, (2, 1)), True,
                               acc_bits=5),
    },
    "Lanes": {"two": partial(side_by_side, 2), "three": partial(side_by_side, 3)},
}  # fmt: skip
