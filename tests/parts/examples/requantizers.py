"""Examples of requantizers: with our rounding, with TensorFlow Lite's, and of averages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.example import Example, Marks, Measured, Proof, swept
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant

__all__ = ["MEASURED", "REQUANTIZERS", "TYPICAL"]

VERILATED = ("verilator",)


def requantizer(
    requant, bias=(0,), in_bits=20, acc_bits=21, digit_bits=1, stages=1, bits=8, signed=False,
    verilog=(), noise=8, factor_bits=None, **more,
):  # fmt: skip
    """Sums of ``in_bits``: around those where the output changes, then noise of every magnitude."""
    is_tflite = isinstance(requant, TfliteRequant)
    kind = parts.TfliteRequantizer if is_tflite else parts.Requantizer
    largest = max(*requant.factors, 1) if is_tflite else max(requant.mult)
    begun = () if is_tflite else requant.offset
    part = kind(
        channels=len(bias), acc_bits=acc_bits, factor_bits=factor_bits or largest.bit_length(),
        digit_bits=digit_bits, stages=stages, bits=bits, signed=signed,
        offset_bits=max(begun, default=0).bit_length(),
    )  # fmt: skip
    limit = 1 << in_bits - 1

    def boundaries(channel):
        middles = {requant.lo, (requant.lo + requant.hi) // 2, requant.zero_point, requant.hi}
        halves = {code - requant.zero_point + side for code in middles for side in (-0.5, 0.5)}
        place = channel % len(requant.mult)
        shift = requant.shift[place] - 31 if is_tflite else -requant.shift
        factor = requant.mult[place] * 2.0**shift
        added = begun[channel % len(begun)] * 2.0**shift if begun else 0.0
        sums = {-limit, limit - 1, *(n - bias[channel] * k for n in (-1, 0, 1) for k in (0, 1))}
        for half in halves if factor else ():
            sums |= {round((half - added) / factor) - bias[channel] + step for step in (-1, 0, 1)}
        return sorted(total for total in sums if -limit <= total < limit)

    def stimulus(rng):
        columns = [boundaries(channel) for channel in range(len(bias))]
        rows = -(-(max(map(len, columns)) + noise) // 4) * 4
        drawn = [
            [int(rng.integers(-(1 << n), 1 << n)) for n in rng.integers(0, in_bits, rows)]
            for _ in columns
        ]
        full = [[*column, *more][:rows] for column, more in zip(columns, drawn, strict=True)]
        # each channel begins elsewhere, and the first turn with sums that are not clipped
        turned = [np.roll(column, -9 - n) for n, column in enumerate(full)]
        rows = max(4, min(rows, 1500 // len(bias) // 4 * 4))
        return [np.array(turned).T[:rows].reshape(-1, 1)]

    contents = {"requant": requant, "bias": bias}
    return Example(
        part=part, contents=contents, stimulus=stimulus, frames=4, verilog=verilog, **more
    )


TYPICAL = Requant((40503, 65535, 1), 23, 7, 0, 255), (100, -3000, 0)
BEYOND = Requant((65535, 9), 3, 0, 0, 255), (2, -2)
BEGUN = Requant((500, 77, 65535), 16, 5, 0, 255, offset=(499, 0, 65535)), (7, -9, 0)
SIGNED = {"signed": True}
PLAIN = {
    "typical": requantizer(*TYPICAL, noise=40, verilog=VERILATED),
    "signed": requantizer(Requant((30011,), 24, -5, -128, 127), digit_bits=4, **SIGNED),
    "one mult, many biases": requantizer(Requant((51,), 14, 0, 0, 255, 6), (5, -6, 7, 8)),
    "relu": requantizer(Requant((20000, 47), 22, 100, 100, 255), (-1000, 1000), digit_bits=3),
    "highest code is zero": requantizer(
        Requant((40000,), 20, -128, -128, 0), in_bits=4, acc_bits=5, **SIGNED
    ),
    "shift only": requantizer(Requant((1,), 6, 0, -128, 127, 1), **SIGNED),
    "least shift": requantizer(Requant((1,), 1, 3, 0, 255, 1), in_bits=9, acc_bits=10),
    "mult beyond shift": requantizer(*BEYOND, digit_bits=16),
    "halves": requantizer(Requant((1 << 15,), 16, 0, -128, 127), digit_bits=6, **SIGNED),
    "halves of small mult": requantizer(Requant((12,), 5, -1, -8, 7, 4), bits=4, **SIGNED),
    "digits divide badly": requantizer(Requant((40503,), 20, 0, 0, 255), digit_bits=5),
    "wide sum": requantizer(
        Requant((65535, 40000), 36, 0, 0, 255), (1 << 30, -7), 34, 36, 8, verilog=("cocotb",)
    ),
    "greatest shift": requantizer(Requant((32768, 1), 46, 12, 0, 255), (0, 0), 36, 37, 4),
    "many channels": requantizer(
        Requant(tuple(range(1, 40)), 14, 9, 0, 200), tuple(range(-20, 19))
    ),
    **{
        f"split table of {channels}": requantizer(
            Requant(tuple(1100 + 7919 * n % 900 for n in range(channels)), 14, 9, 0, 255),
            tuple(37 * n % 2001 - 1000 for n in range(channels)), digit_bits=2, stages=stages,
            verilog=VERILATED * (channels == 131), nightly=channels in {65, 256},
        )
        for channels, stages in ((64, 6), (65, 6), (128, 3), (131, 6), (256, 1))
    },
    "sum per cycle": requantizer(*TYPICAL, digit_bits=2, stages=8, noise=40, verilog=VERILATED),
    "sum in three cycles": requantizer(
        Requant((30011,), 24, -5, -128, 127), digit_bits=2, stages=3, **SIGNED,
        verilog=("cocotb",),
    ),
    "sum in two cycles": requantizer(Requant((9000, 47), 22, 100, 100, 255), (-7, 9), stages=7),
    "two bits": requantizer(Requant((700,), 18, 1, 0, 3, 10), digit_bits=2, bits=2),
    "sixteen bits": requantizer(Requant((50000, 3), 16, 30000, 0, 65535), (9, 9), bits=16),
    "wide mult": requantizer(
        Requant(((1 << 24) - 1,), 30, 0, -128, 127, 24), digit_bits=8, **SIGNED
    ),
    "offset beyond the sum": requantizer(
        Requant((255,), 8, 200, 0, 255, 8), (0,), 8, 8, digit_bits=2
    ),
    "narrow range": requantizer(Requant((999,), 16, 5, 5, 6, 10)),
    "offset of products": requantizer(
        Requant((515,), 14, 0, -128, 127, offset=(514,)), (-33930,), digit_bits=2, **SIGNED
    ),
    "offset of products per channel": requantizer(*BEGUN, stages=4, verilog=VERILATED),
    "offset of products beyond sums": requantizer(
        Requant((3,), 18, 0, -128, 127, offset=((1 << 18) - 1,)), (0,), 8, 9, **SIGNED
    ),
    "offset of products, small shift": requantizer(
        Requant((65535, 9), 3, 0, 0, 255, offset=(7,)), (2, -2), digit_bits=4, stages=4
    ),
    **swept(
        lambda requant, bias, digit_bits: requantizer(requant, bias, digit_bits=digit_bits),
        {"typical": TYPICAL, "beyond": BEYOND, "begun": BEGUN}, [1, 2, 3, 4, 6, 8, 11, 16],
        prefix="digits of ",
    ),
    **swept(
        lambda requant, bias, digit_bits, stages: requantizer(
            requant, bias, digit_bits=digit_bits, stages=stages
        ),
        {"typical": TYPICAL, "beyond": BEYOND, "begun": BEGUN},
        {f"{n} x {k}": (n, k) for n, k in
         [(1, 2), (1, 5), (1, 16), (2, 3), (2, 4), (2, 8), (3, 6), (4, 2), (4, 4), (8, 2)]},
        prefix="stages of ",
    ),
}  # fmt: skip


def proved_requantizer(stages, digit_bits, channels=2):
    part = parts.Requantizer(
        channels=channels, acc_bits=4, factor_bits=3, digit_bits=digit_bits, stages=stages, bits=3,
        signed=False,
    )  # fmt: skip
    contents = {
        "requant": Requant((5, 3)[:channels], 2, 1, 0, 7, mult_bits=3), "bias": [1, -1][:channels],
    }  # fmt: skip
    return Example(
        part=part, contents=contents, sizes=[2], stimulus=small_sums(2),
        proof=Proof(marks=[Marks(base=1, mark=-2)], frame_bits=3, patience=part.latency + 3),
    )  # fmt: skip


def small_sums(count):
    return lambda rng: [rng.integers(-6, 7, (5 * count, 1))]


PROVED = {
    "a sum per cycle": proved_requantizer(1, 3), "one stage": proved_requantizer(1, 1),
    "two stages": proved_requantizer(2, 1),
    "two stages, a sum per cycle": proved_requantizer(2, 2),
    "one channel": proved_requantizer(3, 1, 1),
}  # fmt: skip
BORDERS = [[0, 1, 1, 0], [2, 3, 3, 2], [2, 3, 3, 2], [0, 1, 1, 0]]
PLACES = {
    "border": BORDERS, "one row": [[0, 1, 2, 1, 0]], "one column": [[1], [0], [0]],
    "one place": [[0]], "all differ": [[0, 1], [2, 3]],
}  # fmt: skip


def average(positions, channels, digit_bits=4, stages=1, verilog=(), offset=()):
    """Every place takes its own mult."""
    part = parts.AverageRequantizer(
        channels=channels, acc_bits=13, factor_bits=15, digit_bits=digit_bits, stages=stages,
        bits=8, signed=True, offset_bits=max(offset, default=0).bit_length(),
    )  # fmt: skip
    requant = Requant((16384, 10923, 8192, 7282), 17, -3, -128, 127, offset=offset)
    size = channels * sum(map(len, positions))
    return Example(
        part=part, contents={"requant": requant, "bias": [-77], "positions": positions}, frames=4,
        stimulus=lambda rng: [rng.integers(-1500, 1500, (4 * size, 1))], verilog=verilog,
    )  # fmt: skip


AVERAGES = {
    **swept(lambda of, n: average(of["rows"], n), {x: {"rows": PLACES[x]} for x in PLACES},
            [1, 2, 5]),
    "digits of 1": average(BORDERS, 3, 1), "2 x 8": average(BORDERS, 3, 2, 8),
    "4 x 2": average(BORDERS, 3, 4, 2), "verilog": average(BORDERS, 3, 2, verilog=VERILATED),
    "offset of products": average(BORDERS, 3, offset=(50000,)),
    "borders": Example(
        part=parts.AverageRequantizer(
            channels=1, acc_bits=4, factor_bits=3, digit_bits=3, stages=1, bits=3, signed=False
        ),
        contents={"requant": Requant((5, 3), 2, 1, 0, 7, mult_bits=3), "bias": [1],
                  "positions": [[0, 1], [1, 1]]},
        sizes=[4], stimulus=small_sums(4),
        proof=Proof(marks=[Marks(base=1, mark=-2)], frame_bits=3, patience=8),
    ),
}  # fmt: skip
MULTS = (1518500250, 1 << 30, (1 << 31) - 1, 1234567891)


def tflite(mult, shift, zero_point=0, lo=-128, hi=127, *, rounds_once=False, **fields):
    requant = TfliteRequant(mult, shift, zero_point, lo, hi, rounds_once=rounds_once)
    return requantizer(requant, **{"digit_bits": 2, "signed": True, "noise": 12, **fields})


USUAL = {"mult": MULTS, "shift": (-9, -7, -12, -8), "zero_point": -5}
TFLITE = {
    "typical": tflite(**USUAL, bias=(100, -3000, 0, 7), verilog=VERILATED),
    "relu": tflite(MULTS[:2], (-11, -10), -128, bias=(-1000, 1000), digit_bits=3),
    "one shift": tflite(MULTS, (-9,) * 4, bias=(1, -2, 3, -4)),
    "one mult, many biases": tflite(MULTS[:1], (-10,), 3, bias=(5, -6, 7)),
    "some channels have no shift": tflite(
        MULTS, (0, -3, 0, -14), 4, bias=(0, 1, -1, 2), in_bits=9, acc_bits=10
    ),
    "no shift": tflite(MULTS[:1], (0,), in_bits=8, acc_bits=9),
    "shifts to the left": tflite(MULTS, (3, -2, 0, 1), bias=(0, 0, 1, -1), in_bits=8, acc_bits=9),
    "a channel that is nothing": tflite((0, MULTS[0]), (0, -9), 11, bias=(9, 9)),
    "nothing at all": tflite((0,), (0,), -7, digit_bits=1),
    "halves": tflite((1 << 30, 1 << 30), (-2, 0), bias=(0, 0), in_bits=10, acc_bits=11),
    "sum per cycle": tflite(**USUAL, bias=(0, -30, 2, 7), stages=16, verilog=("cocotb",)),
    "sum in three cycles": tflite(
        MULTS, (-9, -10, -9, -11), -5, bias=(0, -30, 2, 7), stages=6
    ),
    "wide sum": tflite(
        MULTS[:2], (-22, -23), bias=(1 << 30, -7), in_bits=31, acc_bits=32, digit_bits=8
    ),
    "greatest shift": tflite(
        MULTS[:2], (-31, -20), 5, bias=(0, 0), in_bits=31, acc_bits=32, digit_bits=4
    ),
    "offset beyond the sum": tflite(MULTS[:1], (-3,), 127, in_bits=4, acc_bits=4),
    "rounded once": tflite(MULTS[:1], (-8,), 9, rounds_once=True, bias=(3,)),
    "rounded once by channel": tflite(
        MULTS, (-8, 0, -11, 2), 9, rounds_once=True, bias=(3, -4, 5, -6)
    ),
    "four bits": tflite(MULTS[:2], (-12, -13), 1, -8, 7, bias=(0, 77), bits=4),
    **{
        name: Example(
            part=parts.TfliteRequantizer(
                channels=2, acc_bits=4, factor_bits=31, digit_bits=digit_bits, stages=1, bits=4,
                signed=True,
            ),
            contents={"requant": TfliteRequant(MULTS[:2], (-1, 0), 1, -8, 7), "bias": [1, -1]},
            sizes=[2], stimulus=small_sums(2),
            proof=Proof(marks=[Marks(base=1, mark=-2)], frame_bits=3, patience=latency + 3),
        )
        for name, digit_bits, latency in (("proof, a sum per cycle", 31, 6), ("two cycles", 16, 7))
    },
}  # fmt: skip
REQUANTIZERS: Mapping[str, Mapping[str, Example]] = {
    "Requantizer": {**PLAIN, **PROVED}, "AverageRequantizer": AVERAGES,
    "TfliteRequantizer": TFLITE,
}  # fmt: skip


SPREAD = [
    *((1, 1, bits, (1, 1), 0, 16) for bits in (12, 18, 24)),
    *((8, 8, 20, folding, 0, 16) for folding in ((1, 1), (2, 1), (2, 2), (2, 3))),
    *((8, 8, bits, (2, stages), 0, 16) for bits in (14, 20, 26) for stages in (1, 4, 8)),
    *((n, n, 22, (1, 1), 0, 16) for n in (2, 4, 10, 16, 24, 32, 48, 64, 96, 128, 256)),
    (64, 64, 24, (2, 8), -128, 16), (16, 16, 22, (2, 4), -128, 16),
    *((count, 1, 22, (1, 1), 0, 16) for count in (4, 16, 64)),
    (8, 8, 20, (2, 1), 128, 16), (16, 16, 22, (2, 1), 0, 8),
]  # fmt: skip
"""Channels, mults, bits of sums, (digit bits, stages), low end of the clip, bits of mults."""
TFLITE_SPREAD = [
    (16, 20, 2, 1), (64, 22, 2, 1), (64, 22, 2, 4), (16, 20, 2, 8), (64, 22, 2, 16), (10, 18, 1, 1),
    (1, 30, 2, 8), (1, 30, 2, 1),
]  # fmt: skip
"""Channels, bits of sums, digit bits, stages."""


def measured_requantizers(device):
    del device
    rng = np.random.default_rng(0)
    for channels, mults, acc_bits, (digit_bits, stages), lowest, mult_bits in SPREAD:
        mult = rng.integers(1 << (mult_bits - 2), 1 << mult_bits, mults)
        mult[0] |= 1 << (mult_bits - 1)
        spread_bits = min(acc_bits - 3, 15)
        bias = np.round(rng.normal(0, 1 << (spread_bits - 1), channels)).astype(np.int64)
        signed = lowest < 0
        requant = Requant(
            tuple(mult.tolist()), acc_bits + mult_bits - 11, 0, lowest, 127 if signed else 255,
            mult_bits,
        )  # fmt: skip
        yield requantizer(
            requant, bias.tolist(), acc_bits, acc_bits, digit_bits, stages, signed=signed,
            factor_bits=mult_bits, note={"mults": mults, "mult_bits": mult_bits},
            typical=mults == channels and mult_bits == 16,
        )  # fmt: skip
    rng = np.random.default_rng(0)
    for channels, acc_bits, digit_bits, stages in TFLITE_SPREAD:
        mult, bias = rng.integers(1 << 30, 1 << 31, channels), rng.integers(-9999, 9999, channels)
        shifts = tuple(rng.integers(-10, -6, channels).tolist())
        requant = TfliteRequant(tuple(mult.tolist()), shifts, -5, -128, 127)
        yield requantizer(
            requant, bias.tolist(), acc_bits, acc_bits, digit_bits, stages, signed=True,
            factor_bits=31, typical=channels > 1,
        )  # fmt: skip


MEASURED: Measured = {"requantizer": measured_requantizers}
