"""Examples of arrays without weights in memories beside rows: of tap products, of constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from examples.arrays import (
    FORMAT,
    MARKED,
    VERILATED,
    neighbours,
    noise_of,
    pixels_of,
    weights_of,
)
from examples.example import RAM, Example, Measured, Proof, swept
from nnef_hw import parts
from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.arithmetic.numerics import Requant

__all__ = ["MEASURED", "PRODUCTS"]


def depthwise(
    channels, positions, style="block", verilog=(), ram=RAM, weights=None, **fields
):  # fmt: skip
    fields = {
        "lanes": 1, "taps": 1, "kept_passes": 2, "weight_delay": 0, "lut_ram": False,
        "acc_bits": 22, **FORMAT, **fields,
    }  # fmt: skip
    part = parts.DepthwiseArray(
        channels=channels, positions=positions, weights=parts.WeightRom(ram=ram, style=style),
        **fields,
    )  # fmt: skip
    if weights is None:
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
    return matrix_of(
        weights, mult, offsets, requant.shift, (requant.lo, requant.hi), chained, bits, signed,
        out_bits, out_signed,
    )  # fmt: skip


def matrix_of(
    weights, factors, offsets, shift, clip, chained, bits, signed, out_bits, out_signed,
    lut_ram=True, **more,
):  # fmt: skip
    graph = multiply_matrix(
        weights, factors=factors.tolist(), offsets=offsets.tolist(), bits=bits, signed=signed
    )
    outputs, inputs = weights.shape
    part = parts.MatrixProduct(
        graph=graph, products=int(np.count_nonzero(weights)), shift=shift, lo=clip[0], hi=clip[1],
        chained=chained, in_lanes=inputs, in_bits=bits, in_signed=signed, out_lanes=outputs,
        out_bits=out_bits, out_signed=out_signed, lut_ram=lut_ram,
    )  # fmt: skip
    return Example(part=part, sizes=[12], **more)


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


PRODUCTS: Mapping[str, Mapping[str, Example]] = {
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

LARGE_TAPS = [
    (8, 9, 1, 1, 1, 20, True, "block"), (8, 9, 4, 1, 1, 20, True, "block"),
    (64, 9, 1, 9, 1, 20, True, "block"), (64, 9, 2, 9, 2, 20, False, "block"),
    (64, 9, 4, 9, 2, 20, False, "block"), (8, 9, 1, 9, 1, 20, False, "logic"),
    (16, 9, 1, 9, 2, 20, False, "block"), (6, 25, 1, 25, 1, 20, False, "logic"),
    (6, 25, 1, 5, 1, 20, True, "block"), (16, 40, 1, 40, 1, 22, False, "block"),
    (24, 27, 1, 27, 1, 22, False, "block"), (64, 9, 4, 9, 2, 20, True, "block"),
    (8, 25, 1, 25, 1, 20, True, "logic"), (16, 60, 1, 60, 13, 20, True, "logic"),
]  # fmt: skip
"""Channels, positions, lanes, taps, passes kept, bits of sums, whether products are in DSP blocks,
style of weights."""
LARGE_MATRICES = [
    (8, 16, 6, 8, 1, 3), (16, 16, 6, 6, 1, 4), (32, 5, 6, 8, 1, 1), (16, 8, 6, 6, 1, 1),
    (8, 8, 8, 8, 1, 1), (16, 16, 4, 4, 1, 2), (16, 16, 2, 8, 1, 1), (8, 8, 8, 8, 16, 2),
    (16, 5, 6, 8, 16, 3), (8, 16, 6, 6, 3, 8), (4, 4, 8, 8, 16, 1), (32, 8, 3, 4, 1, 4),
]  # fmt: skip
"""Inputs, results, bits of weights, of codes and of mult, adders between registers."""


def large_taps(device):
    rng = np.random.default_rng(0)
    for channels, positions, lanes, taps, kept, acc_bits, in_dsp, style in LARGE_TAPS:
        values = np.clip(np.round(rng.normal(0, 38, (channels, positions))), -127, 127)
        yield depthwise(
            channels, positions, style, ram=device.ram, weights=values.astype(np.int64),
            lanes=lanes, taps=taps, kept_passes=kept, acc_bits=acc_bits,
            in_dsp=lanes * taps * in_dsp, lut_ram=device.family.has_lut_ram,
            weight_delay=device.weight_delay,
        )  # fmt: skip


def large_matrices(device):
    """Yield those that fit the device well, of weights as linear layers have them."""
    for inputs, results, w_bits, bits, mult_bits, chained in LARGE_MATRICES:
        rng = np.random.default_rng([inputs, results, w_bits, bits, mult_bits])
        weights = noise_of(rng, (results, inputs), w_bits, 0.4)
        factors = rng.integers(1 << mult_bits - 1, 1 << mult_bits, results)
        shift = w_bits - 2 + mult_bits
        offsets = rng.integers(-(1 << bits), 1 << bits, results) * factors + (1 << shift - 1)
        example = matrix_of(
            weights, factors, offsets, shift, (0, (1 << bits) - 1), chained, bits, False, bits,
            False, device.family.has_lut_ram, note={"weight bits": w_bits, "mult bits": mult_bits},
        )  # fmt: skip
        if sum(example.part.graph.adder_bits) <= device.lut / 2:
            yield example


MEASURED: Measured = {"tap array": large_taps, "matrix product": large_matrices}
