"""Operators on codes: element by element, reductions of windows, the largest of a pixel."""

from __future__ import annotations

from functools import partial

import numpy as np
from prover import Claim

from claims.frames import RAM, beats, claim, marked, payloads
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import AddRequant, argmax_codes, argmin_codes
from nnef_hw.hardware.geometry.window import Window

__all__ = ["OPERATORS"]


def argmax(channels, greatest):
    part = parts.Argmax(channels=channels, bits=2, signed=False, greatest=greatest)

    def golden(codes):
        pixels = codes.reshape(-1, channels)
        return beats((argmax_codes if greatest else argmin_codes)(pixels))

    frames = marked(2 * channels, base=1, mark=2 if greatest else 0)
    return claim(part.build(), frames, golden, needs=[channels - 1, 2 * channels - 1])


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


def two_operands(part, golden, make=beats, *, count=2, marks=(0, 1), **contents):
    """The mark stands in one operand while the other one's codes are equal, and then in that."""
    component = part.build(**contents)
    frames = marked(count, base=marks[0], mark=marks[1])
    a = [*frames, *[frames[0]] * count]
    b = [frames[0], *[frames[0]] * count, *frames[1:]]
    return Claim(
        component=component,
        inputs={"a": payloads(component.a, map(beats, a)),
                "b": payloads(component.b, map(beats, b))},
        outputs={"o": payloads(component.o, [make(golden(*x)) for x in zip(a, b, strict=True)])},
        frame_bits=4, patience=8,
    )  # fmt: skip


TWO = {"in_bits": (2, 2), "in_signed": (False, False)}


def eltwise_sum():
    requant = AddRequant((3, -5), 2, 4, 0, 7, mult_bits=4)
    part = parts.EltwiseSum(**TWO, out_bits=3, out_signed=False)
    return two_operands(part, lambda a, b: requant.apply(a - 1, b), requant=requant,
                        in_zero_points=(1, 0))  # fmt: skip


def eltwise_product():
    part = parts.EltwiseProduct(**TWO)
    return two_operands(part, lambda a, b: (a - 2) * (b - 1), sum_items, in_zero_points=(2, 1))


def eltwise_extremum(greatest):
    part = parts.EltwiseExtremum(bits=2, signed=False, greatest=greatest)
    return two_operands(part, np.maximum if greatest else np.minimum,
                        marks=(1, 2) if greatest else (2, 1))  # fmt: skip


def table_sum():
    part = parts.TableSum(**TWO, acc_bits=5, ram=RAM)
    entries = [1, 3, 5, 7], [-2, 2, 4, 0]
    return two_operands(
        part, lambda a, b: np.take(entries[0], a) + np.take(entries[1], b), sum_items,
        entries=entries,
    )  # fmt: skip


OPERATORS = {
    "Argmax": {
        "largest": partial(argmax, 3, True), "smallest": partial(argmax, 2, False),
        "one channel": partial(argmax, 1, True),
    },
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
    "EltwiseSum": {"sum": eltwise_sum},
    "EltwiseProduct": {"product": eltwise_product},
    "EltwiseExtremum": {
        "maximum": partial(eltwise_extremum, True), "minimum": partial(eltwise_extremum, False),
    },
    "TableSum": {"sum": table_sum},
}  # fmt: skip
