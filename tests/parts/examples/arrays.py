"""Examples of arrays of multipliers, whose rows are summed at once or in turn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.example import RAM, Example, Measured, Proof, ends, swept
from nnef_hw import parts

__all__ = [
    "ARRAYS", "FORMAT", "MARKED", "MEASURED", "VERILATED", "neighbours", "noise_of", "pixels_of",
    "weights_of",
]  # fmt: skip

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


def noise_of(rng, shape, bits, deviation):
    """Weights as they are trained: normal, of both signs alike."""
    highest = (1 << bits - 1) - 1
    weights = np.round(rng.normal(0, deviation * highest, shape))
    return weights.clip(-highest, highest).astype(np.int64)


def systolic(
    channels, words, kind=parts.SystolicArray, style="block", verilog=(), ram=RAM, weights=None,
    **fields,
):  # fmt: skip
    fields = {
        "lanes": 1, "rows": 1, "group_rows": 1, "kept_passes": 1, "weight_delay": 0,
        "acc_bits": 24, **FORMAT, **fields,
    }  # fmt: skip
    part = kind(
        channels=channels, words=words, weights=parts.WeightRom(ram=ram, style=style), **fields
    )
    shape = channels, words, part.lanes
    if weights is None:
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
PACKED = {
    "a unit": ((4, 5), {"rows": 2, "group_rows": 2}),
    "odd lanes, odd channels": (
        (7, 4), {"lanes": 5, "rows": 4, "group_rows": 2, "x_signed": True, "weight_delay": 1},
    ),
    "a section": ((6, 3), {"lanes": 8, "rows": 4, "group_rows": 4, "weight_delay": 1}),
    "sections": ((4, 3), {"lanes": 10, "rows": 4, "group_rows": 2}),
    "sections, signed": (
        (5, 4), {"lanes": 17, "rows": 2, "group_rows": 2, "x_signed": True, "acc_bits": 17},
    ),
    "many sections": ((4, 2), {"lanes": 36, "rows": 4, "group_rows": 2, "x_bits": 7}),
    "groups, pairs of sums": (
        (14, 5), {"lanes": 4, "rows": 10, "group_rows": 4, "weight_delay": 1, "out_lanes": 2},
    ),
    "narrow weights, wrapping": (
        (6, 20), {"lanes": 4, "rows": 4, "group_rows": 2, "w_bits": 3, "acc_bits": 10},
    ),
    "bits": (
        (4, 3), {"lanes": 6, "rows": 2, "group_rows": 2, "x_bits": 1, "w_bits": 2, "acc_bits": 9},
    ),
    "wide sums": ((4, 3), {"lanes": 3, "rows": 2, "group_rows": 2, "acc_bits": 26}),
    "weights in logic": ((6, 5), {"rows": 4, "group_rows": 2, "style": "logic"}),
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


def packed(channels, words, common_in_dsp=0, **fields):
    """An array whose weights are at both ends, next to each other in rows and lanes."""
    fields = {"w_bits": 4, "lanes": 2, **fields}
    lanes, top = fields["lanes"], (1 << fields["w_bits"] - 1) - 1
    rng = np.random.default_rng((channels, words, lanes))
    weights = rng.integers(-top, top + 1, (channels, words, lanes))
    weights[:2] = rng.choice([-top, top], (2, words, lanes))
    weights[2:4] = [[[-top]], [[top]]]
    units = fields["rows"] // 2 * -(-lanes // 2)
    return systolic(
        channels, words, parts.PackedArray, weights=weights, in_dsp=units + common_in_dsp, **fields
    )


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
    "PackedArray": {
        **swept(
            lambda of, fields, kept: packed(*of, **fields, kept_passes=kept), PACKED, [1, 2],
        ),
        **{
            f"verilog, {name}": packed(
                *PACKED[name][0], **PACKED[name][1], kept_passes=kept, common_in_dsp=in_dsp,
                verilog=VERILATED,
            )
            for name, in_dsp, kept in [
                ("odd lanes, odd channels", 1, 1), ("sections", 5, 2), ("bits", 0, 2),
                ("wide sums", 0, 1),
            ]
        },
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
}  # fmt: skip

LARGE = [
    (8, 72, 1, 1, 1, 20, True, "block", 1, 8), (8, 72, 2, 1, 2, 20, True, "block", 1, 8),
    (8, 72, 4, 1, 4, 20, True, "block", 1, 8), (8, 72, 8, 1, 8, 20, True, "block", 1, 8),
    (8, 72, 8, 1, 8, 26, True, "block", 1, 8), (8, 72, 8, 1, 2, 20, True, "block", 1, 8),
    (8, 72, 8, 1, 1, 20, True, "block", 1, 8), (8, 72, 8, 1, 8, 20, True, "block", 2, 8),
    (8, 72, 8, 1, 2, 20, True, "block", 2, 8), (8, 72, 1, 2, 1, 20, True, "block", 1, 8),
    (8, 72, 2, 4, 2, 20, True, "block", 1, 8), (8, 72, 4, 4, 2, 20, True, "block", 1, 8),
    (8, 72, 1, 8, 1, 22, True, "block", 1, 8), (8, 72, 2, 8, 2, 22, True, "block", 1, 8),
    (8, 9, 4, 1, 4, 20, True, "logic", 1, 8), (8, 16, 4, 1, 4, 20, True, "logic", 1, 8),
    (16, 9, 2, 1, 2, 20, True, "logic", 1, 8), (10, 64, 10, 1, 10, 22, True, "logic", 1, 8),
    (64, 64, 4, 1, 4, 20, True, "block", 1, 8), (64, 200, 2, 1, 2, 24, True, "block", 1, 8),
    (64, 64, 4, 1, 2, 20, True, "block", 1, 8), (8, 72, 1, 1, 1, 20, False, "block", 1, 8),
    (8, 72, 2, 1, 2, 20, False, "block", 1, 8), (8, 72, 4, 1, 4, 20, False, "block", 1, 8),
    (8, 72, 8, 1, 8, 20, False, "block", 1, 8), (8, 72, 2, 4, 2, 20, False, "block", 1, 8),
    (8, 9, 4, 1, 4, 20, False, "logic", 1, 8), (8, 72, 4, 1, 4, 14, False, "block", 1, 4),
    (8, 72, 2, 2, 2, 16, False, "block", 1, 5),
]  # fmt: skip
"""Channels, words, rows, lanes, rows of a group, bits of sums, whether products are in DSP blocks,
style of weights, passes kept, bits of codes and weights."""
LARGE_FAST = [
    (4, 4, 4, True, 1, 8), (4, 8, 2, True, 2, 8), (8, 4, 4, True, 2, 8), (8, 2, 8, True, 1, 8),
    (4, 5, 2, True, 1, 8), (8, 8, 2, True, 2, 8), (4, 4, 4, False, 1, 8), (8, 4, 4, False, 2, 8),
    (8, 2, 8, False, 1, 8), (4, 4, 4, False, 1, 4),
]  # fmt: skip
"""Rows, lanes, rows of a group, whether products are in DSP blocks, passes kept, bits."""


def large_arrays(device):
    near = {"ram": device.ram, "weight_delay": device.weight_delay}
    rng = np.random.default_rng(0)
    for channels, words, rows, lanes, group_rows, acc_bits, in_dsp, style, kept, bits in LARGE:
        weights = noise_of(rng, (channels, words, lanes), bits, 0.3)
        yield systolic(
            channels, words, style=style, weights=weights, rows=rows, lanes=lanes,
            group_rows=group_rows, kept_passes=kept, x_bits=bits, w_bits=bits, acc_bits=acc_bits,
            in_dsp=rows * lanes * in_dsp, **near,
        )  # fmt: skip
    # multipliers in logic of codes and narrower weights
    rng = np.random.default_rng(0)
    for w_bits in (4, 3, 2):
        yield systolic(
            16, 72, rows=4, lanes=4, group_rows=2, kept_passes=2, w_bits=w_bits,
            acc_bits=12 + w_bits, weights=noise_of(rng, (16, 72, 4), w_bits, 0.5), **near,
        )  # fmt: skip


def large_fast_arrays(device):
    rng = np.random.default_rng(0)
    for rows, lanes, group_rows, in_dsp, kept, bits in LARGE_FAST:
        if in_dsp and not device.sums_per_dsp:
            continue
        multipliers = rows * -(-lanes // 2) + lanes // 2
        yield systolic(
            8, 72, parts.FastArray, weights=noise_of(rng, (8, 72, lanes), bits, 0.3), rows=rows,
            lanes=lanes, group_rows=group_rows, kept_passes=kept, x_bits=bits, w_bits=bits,
            acc_bits=2 * bits + 4, in_dsp=multipliers * in_dsp, ram=device.ram,
            weight_delay=device.weight_delay,
        )  # fmt: skip


LARGE_PACKED = [
    (16, 72, 2, 2, 2, 1, 18), (16, 72, 4, 4, 2, 1, 18), (16, 72, 4, 8, 2, 2, 20),
    (16, 72, 8, 8, 2, 1, 20), (16, 72, 8, 8, 8, 2, 18), (16, 72, 8, 4, 4, 2, 18),
    (16, 72, 4, 6, 2, 1, 20), (16, 72, 16, 8, 2, 2, 20), (16, 72, 4, 16, 2, 1, 20),
    (16, 72, 8, 2, 8, 2, 16), (64, 144, 2, 4, 2, 1, 20), (8, 8, 4, 4, 2, 1, 18, "logic"),
    (8, 16, 4, 4, 4, 1, 18, "logic"), (32, 12, 8, 4, 4, 2, 18, "logic"),
]  # fmt: skip
"""Channels, words, rows, lanes, rows of a group, passes kept, bits of sums, style of weights."""


def large_packed_arrays(device):
    if not parts.PackedArray.is_made_for(device.family):
        return
    rng = np.random.default_rng(0)
    for channels, words, rows, lanes, group_rows, kept, acc_bits, *style in LARGE_PACKED:
        yield systolic(
            channels, words, parts.PackedArray, *style, rows=rows, lanes=lanes,
            weights=noise_of(rng, (channels, words, lanes), 4, 0.5), group_rows=group_rows,
            kept_passes=kept, w_bits=4, acc_bits=acc_bits, ram=device.ram,
            in_dsp=parts.PackedArray.multipliers_of(rows, lanes), weight_delay=device.weight_delay,
        )  # fmt: skip


MEASURED: Measured = {
    "array": large_arrays, "fast array": large_fast_arrays, "packed array": large_packed_arrays
}  # fmt: skip
