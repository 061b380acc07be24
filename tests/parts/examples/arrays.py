"""Examples of arrays of multipliers, of constant matrices and of requantizers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.example import RAM, Example, Proof, ends, swept
from nnef_hw import parts
from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.arithmetic.numerics import Requant

__all__ = ["ARRAYS"]

VERILATED = ("verilator",)
FORMAT = {"x_bits": 8, "x_signed": False, "w_bits": 8, "in_dsp": 0}


def weights_of(rng, shape, bits):
    """Noise between a channel of greatest weights and one of least ones; of one bit, signs."""
    top = (1 << bits - 1) - 1
    weights = rng.integers(-top - 1, top + 1, shape)
    weights[0], weights[-1] = top, -top - 1
    return weights if bits > 1 else 2 * weights + 1


def pixels_of(rng, shape, bits, signed):
    """Noise behind a pixel of highest codes and one of lowest ones."""
    lo, hi = ends(bits, signed)
    codes = rng.integers(lo, hi + 1, shape)
    codes[0], codes[1] = hi, lo
    return codes


def systolic(
    channels, words, kind=parts.SystolicArray, style="block", verilog=(), **fields
):  # fmt: skip
    fields = {
        "lanes": 1, "rows": 1, "group_rows": 1, "kept_passes": 1, "weight_delay": 0,
        "acc_bits": 24, **FORMAT, **fields,
    }  # fmt: skip
    part = kind(
        channels=channels, words=words, weights=parts.WeightRom(ram=RAM, style=style), **fields
    )
    shape = channels, words, part.lanes
    weights = weights_of(np.random.default_rng(shape), shape, part.w_bits)

    def stimulus(rng):
        pixels = pixels_of(rng, (6, words, part.lanes), part.x_bits, part.x_signed)
        return [pixels.repeat(part.passes, axis=0)]

    return Example(
        part=part, contents={"weights": weights}, stimulus=stimulus, frames=3, verilog=verilog
    )


SHAPES = {
    "one row": ((5, 9), {}),
    "one group": ((5, 9), {"rows": 2, "group_rows": 2}),
    "partial pass and group": (
        (8, 6), {"lanes": 2, "rows": 5, "group_rows": 2, "x_signed": True},
    ),
    "groups of one": ((7, 3), {"lanes": 3, "rows": 3}),
    "linear at once": ((4, 1), {"rows": 4, "group_rows": 2}),
    "linear, one weight": ((1, 1), {}),
    "wide tree": ((3, 2), {"lanes": 5, "rows": 3, "group_rows": 2, "w_bits": 3}),
    "uneven tree": ((2, 3), {"lanes": 7, "rows": 2, "x_signed": True, "w_bits": 5}),
    "narrow": ((4, 4), {"rows": 2, "group_rows": 2, "x_bits": 2, "w_bits": 2, "acc_bits": 7}),
    "wide codes": (
        (3, 5), {"lanes": 2, "rows": 3, "group_rows": 3, "x_bits": 16, "acc_bits": 30},
    ),
    "binary codes": ((6, 4), {"rows": 3, "x_bits": 1, "w_bits": 4, "acc_bits": 9}),
    "wrapping sums": ((6, 20), {"rows": 3, "group_rows": 2, "acc_bits": 12}),
    "weights in logic": ((6, 5), {"lanes": 2, "rows": 3, "group_rows": 2, "style": "logic"}),
    "weights far away": ((8, 6), {"lanes": 2, "rows": 5, "group_rows": 2, "weight_delay": 1}),
    "weights very far away": ((5, 9), {"rows": 2, "group_rows": 2, "weight_delay": 3}),
    "weights over several RAMs": ((9, 11), {"rows": 2, "group_rows": 2}),
    "pairs of sums": (
        (8, 6), {"lanes": 2, "rows": 6, "group_rows": 2, "x_signed": True, "out_lanes": 2},
    ),
    "sums of a pass at once": (
        (6, 4), {"lanes": 2, "rows": 3, "group_rows": 3, "out_lanes": 3},
    ),
    "groups of several beats": (
        (14, 9), {"lanes": 3, "rows": 10, "group_rows": 4, "weight_delay": 1, "out_lanes": 2},
    ),
}  # fmt: skip
FAST = {
    name: shape for name, shape in SHAPES.items()
    if shape[1].get("lanes", 1) > 1 and shape[1].get("x_bits", 8) <= 8
} | {
    "pairs": ((7, 5), {"lanes": 2, "rows": 3, "group_rows": 3}),
    "odd lanes, signed": (
        (5, 4), {"lanes": 3, "rows": 5, "group_rows": 2, "x_signed": True, "weight_delay": 1},
    ),
    "signs": ((6, 3), {"lanes": 5, "rows": 3, "w_bits": 1, "acc_bits": 14}),
    "wrapping pairs": ((6, 20), {"lanes": 4, "rows": 3, "group_rows": 2, "acc_bits": 10}),
    "bits": (
        (4, 3), {"lanes": 6, "rows": 2, "group_rows": 2, "x_bits": 1, "w_bits": 4, "acc_bits": 9},
    ),
}  # fmt: skip
MARKED = {
    "x_bits": 1, "x_signed": False, "w_bits": 2, "acc_bits": 3, "in_dsp": False,
    "weights": parts.WeightRom(ram=RAM, style="logic"),
}  # fmt: skip


def neighbours(shape):
    """Return weights of which neighbours differ."""
    return np.array([1, -1, -2, 1, 0])[np.arange(np.prod(shape)) % 5].reshape(shape)


def proved_systolic(
    channels, words, lanes, rows, group_rows, kept_passes, weight_delay=0, out_lanes=1
):
    part = parts.SystolicArray(
        channels=channels, words=words, lanes=lanes, rows=rows, group_rows=group_rows,
        kept_passes=kept_passes, weight_delay=weight_delay, out_lanes=out_lanes, **MARKED,
    )  # fmt: skip
    needs = [(channel // rows + 1) * words - 1 for channel in range(0, channels, out_lanes)]
    return Example(
        part=part, contents={"weights": neighbours((channels, words, lanes))},
        sizes=[(part.passes, words)],
        proof=Proof(patience=part.latency + 3, frame_bits=3, needs=needs),
    )  # fmt: skip


def depthwise(channels, positions, style="block", verilog=(), **fields):
    fields = {
        "lanes": 1, "taps": 1, "kept_passes": 2, "weight_delay": 0, "lut_ram": False,
        "acc_bits": 22, **FORMAT, **fields,
    }  # fmt: skip
    part = parts.DepthwiseArray(
        channels=channels, positions=positions, weights=parts.WeightRom(ram=RAM, style=style),
        **fields,
    )  # fmt: skip
    shape = channels, positions
    weights = weights_of(np.random.default_rng(shape), shape, part.w_bits)

    def stimulus(rng):
        """Absent channels and positions have codes, too."""
        shape = 6 * part.blocks, part.words, part.word_codes
        return [pixels_of(rng, shape, part.x_bits, part.x_signed)]

    return Example(
        part=part, contents={"weights": weights}, stimulus=stimulus, frames=3, verilog=verilog
    )


TAPS = {
    "one lane": ((5, 9), {}), "one channel": ((1, 4), {}),
    "several lanes": ((6, 9), {"lanes": 3, "x_signed": True}),
    "absent lanes": ((7, 4), {"lanes": 3}), "one block": ((4, 9), {"lanes": 4, "w_bits": 5}),
    "parallel taps": ((4, 9), {"lanes": 2, "taps": 3}),
    "absent taps": ((5, 9), {"lanes": 2, "taps": 4, "x_signed": True}),
    "whole window": ((6, 9), {"taps": 9, "kept_passes": 12}),
    "whole window of all lanes": ((3, 4), {"lanes": 3, "taps": 4, "kept_passes": 9}),
    "shared codes": (
        (6, 9), {"lanes": 2, "taps": 9, "kept_passes": 9, "out_lanes": 2, "shared": True},
    ),
    "shared codes word by word": (
        (6, 5), {"lanes": 3, "taps": 2, "x_signed": True, "shared": True},
    ),
    "point": ((5, 1), {"lanes": 2}), "two blocks": ((8, 3), {"lanes": 4, "kept_passes": 4}),
    "one kept pass": ((6, 3), {"lanes": 2, "kept_passes": 1}),
    "narrow": ((4, 4), {"lanes": 2, "x_bits": 2, "w_bits": 2, "acc_bits": 7}),
    "wide codes": ((3, 5), {"lanes": 3, "x_bits": 16, "acc_bits": 30}),
    "wrapping sums": ((4, 20), {"lanes": 2, "acc_bits": 12}),
    "weights in logic": ((6, 5), {"lanes": 2, "style": "logic"}),
    "weights over several RAMs": ((12, 11), {"lanes": 3}),
    "delayed weights": ((5, 4), {"lanes": 2, "taps": 2, "weight_delay": 1}),
    "pairs of sums": ((10, 9), {"lanes": 4, "x_signed": True, "out_lanes": 2}),
    "sums of a pass at once": (
        (6, 9), {"lanes": 3, "taps": 9, "kept_passes": 9, "out_lanes": 3},
    ),
    "twice delayed weights": ((6, 9), {"taps": 9, "kept_passes": 12, "weight_delay": 2}),
}  # fmt: skip


def proved_depthwise(
    channels, positions, lanes, taps, kept_passes, weight_delay=0, out_lanes=1, shared=False
):
    part = parts.DepthwiseArray(
        channels=channels, positions=positions, lanes=lanes, taps=taps, lut_ram=False,
        kept_passes=kept_passes, weight_delay=weight_delay, out_lanes=out_lanes, shared=shared,
        **MARKED,
    )  # fmt: skip
    needs = [(channel // lanes + 1) * part.words - 1 for channel in range(0, channels, out_lanes)]
    return Example(
        part=part, contents={"weights": neighbours((channels, positions))},
        sizes=[(part.blocks, part.words)],
        proof=Proof(patience=part.latency + 3, frame_bits=3, needs=needs),
    )  # fmt: skip


REQUANTS = {
    "one mult": (lambda n: Requant((1,), 3, 0, 0, 15), 4, False),
    "a mult each": (lambda n: Requant(tuple(range(3, 3 + n)), 5, 3, 3, 200), 8, False),
    "signed": (lambda n: Requant((5,), 4, -7, -128, 127), 8, True),
    "clamped": (lambda n: Requant((77,), 9, -1, -5, 6), 4, True),
}


def matrix(outputs, inputs, chained, bits, signed, requant, out_bits, out_signed):
    rng, requant = np.random.default_rng([outputs, inputs]), requant(outputs)
    weights = rng.integers(-31, 32, (outputs, inputs)) * (rng.random((outputs, inputs)) < 0.8)
    mult = np.broadcast_to(requant.mult, outputs)
    offsets = rng.integers(-300, 300, outputs) * mult + (1 << requant.shift - 1)
    offsets += (requant.zero_point - requant.lo) << requant.shift
    graph = multiply_matrix(
        weights, factors=mult.tolist(), offsets=offsets.tolist(), bits=bits, signed=signed
    )
    part = parts.MatrixProduct(
        graph=graph, products=int(np.count_nonzero(weights)), shift=requant.shift, lo=requant.lo,
        hi=requant.hi, chained=chained, in_lanes=inputs, in_bits=bits, in_signed=signed,
        out_lanes=outputs, out_bits=out_bits, out_signed=out_signed, lut_ram=True,
    )  # fmt: skip
    return Example(part=part, sizes=[12])


def proved_matrix(lut_ram, chained=1):
    # three sums of a code, one of which is an adder longer
    graph = multiply_matrix(
        np.array([[1], [-1], [3]]), factors=[1, 1, 1], offsets=[2, 3, 1], bits=1, signed=False
    )
    part = parts.MatrixProduct(
        graph=graph, products=3, shift=1, lo=0, hi=1, chained=chained, in_lanes=1, in_bits=1,
        in_signed=False, out_lanes=3, out_bits=1, out_signed=False, lut_ram=lut_ram,
    )  # fmt: skip
    return Example(part=part, sizes=[1], proof=Proof(patience=part.latency + 3, frame_bits=4))


ARRAYS: Mapping[str, Mapping[str, Example]] = {
    "SystolicArray": {
        **swept(
            lambda of, fields, kept: systolic(*of, **fields, kept_passes=kept), SHAPES, [1, 2]
        ),
        "one row proved": proved_systolic(2, 2, 1, 1, 1, 1),
        "one row, two passes kept": proved_systolic(2, 2, 1, 1, 1, 2),
        "rows": proved_systolic(3, 2, 1, 2, 1, 1),
        "rows, two passes kept": proved_systolic(3, 1, 1, 2, 2, 2),
        "lanes": proved_systolic(2, 2, 2, 2, 1, 2),
        "weights far away": proved_systolic(2, 1, 1, 2, 1, 2, 1),
        "two sums in a beat": proved_systolic(4, 1, 1, 4, 2, 2, out_lanes=2),
        **{
            f"verilog, {name}": systolic(
                *SHAPES[name][0], **SHAPES[name][1], in_dsp=in_dsp, kept_passes=kept,
                verilog=engines,
            )
            for name, in_dsp, kept, engines in [
                ("partial pass and group", 3, 2, VERILATED), ("wide tree", 15, 1, VERILATED),
                ("wide codes", 0, 2, VERILATED),
            ]
        },
        "cocotb": systolic(8, 6, **SHAPES["partial pass and group"][1], in_dsp=10,
                           verilog=("cocotb",)),
    },
    "FastArray": {
        **swept(
            lambda of, fields, kept: systolic(
                *of, parts.FastArray, **fields, kept_passes=kept, in_dsp=of[0] % 4
            ),
            FAST, [1, 2],
        ),
        **{
            f"verilog, {name}": systolic(
                *FAST[name][0], parts.FastArray, **FAST[name][1], in_dsp=in_dsp,
                kept_passes=kept, verilog=VERILATED,
            )
            for name, in_dsp, kept in [
                ("odd lanes, signed", 11, 1), ("wrapping pairs", 7, 2), ("signs", 0, 1),
            ]
        },
    },
    "DepthwiseArray": {
        **{name: depthwise(*of, **fields) for name, (of, fields) in TAPS.items()},
        **swept(
            lambda of, fields, kept: depthwise(*of, **{**fields, "kept_passes": kept}), TAPS,
            [1, 2, 3, 12], prefix="kept ",
        ),
        **{
            f"verilog, {name}": depthwise(
                *TAPS[name][0], **TAPS[name][1], in_dsp=in_dsp, verilog=engines
            )
            for name, in_dsp, engines in [
                ("absent taps", 1, ("cocotb",)), ("absent lanes", 0, VERILATED),
                ("whole window", 1, VERILATED), ("delayed weights", 8, VERILATED),
            ]
        },
        "one lane proved": proved_depthwise(2, 2, 1, 1, 1),
        "two passes kept": proved_depthwise(2, 2, 1, 1, 2),
        "many passes kept": proved_depthwise(2, 1, 1, 1, 3),
        "lanes": proved_depthwise(3, 2, 2, 1, 2),
        "weights far away": proved_depthwise(2, 1, 2, 1, 2, 1),
        "two sums in a beat": proved_depthwise(4, 1, 4, 1, 2, out_lanes=2),
        "shared codes proved": proved_depthwise(4, 2, 2, 2, 2, out_lanes=2, shared=True),
    },
    "MatrixProduct": {
        **swept(
            lambda of, chained, *formats: matrix(*of["of"], chained, *formats),
            {str(x): {"of": x} for x in [(1, 1), (3, 5), (16, 4), (7, 2)]},
            {f"{chained} chained": chained for chained in (1, 2, 3, 20)},
            {"u4": (4, False), "s8": (8, True), "u2": (2, False)}, REQUANTS,
        ),
        "LUT RAM": proved_matrix(True), "registers": proved_matrix(False),
        "chained": proved_matrix(True, 2),
    },
}  # fmt: skip
