"""Constant matrices to measure: sizes, widths of weights and codes, requantizers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cases import Case

from nnef_hw.arithmetic.adders import multiply_matrix
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.matrix import MatrixProduct

__all__ = ["matrix_cases"]


def matrix_cases(device: Device) -> Iterator[Case]:
    """Yield matrices of random weights, as linear layers have them, that fit the device well."""
    # inputs, results, bits of weights, of codes and of mult; adders between registers
    spread = [
        (8, 16, 6, 8, 1, 3), (16, 16, 6, 6, 1, 4), (32, 5, 6, 8, 1, 1), (16, 8, 6, 6, 1, 1),
        (8, 8, 8, 8, 1, 1), (16, 16, 4, 4, 1, 2), (16, 16, 2, 8, 1, 1), (8, 8, 8, 8, 16, 2),
        (16, 5, 6, 8, 16, 3), (8, 16, 6, 6, 3, 8), (4, 4, 8, 8, 16, 1), (32, 8, 3, 4, 1, 4),
    ]  # fmt: skip
    for inputs, results, w_bits, bits, mult_bits, chained in spread:
        rng = np.random.default_rng([inputs, results, w_bits, bits, mult_bits])
        highest = (1 << w_bits - 1) - 1
        weights = np.round(rng.normal(0, 0.4 * highest, (results, inputs)))
        matrix = weights.clip(-highest, highest).astype(np.int64)
        factors = rng.integers(1 << mult_bits - 1, 1 << mult_bits, results)
        shift = w_bits - 2 + mult_bits
        offsets = rng.integers(-(1 << bits), 1 << bits, results) * factors + (1 << shift - 1)
        graph = multiply_matrix(
            matrix, factors=factors.tolist(), offsets=offsets.tolist(), bits=bits, signed=False
        )
        if sum(graph.adder_bits) > device.lut / 2:
            continue
        part = MatrixProduct(
            graph=graph, products=int(np.count_nonzero(matrix)), shift=shift, lo=0,
            hi=(1 << bits) - 1, chained=chained, in_lanes=inputs, in_bits=bits, in_signed=False,
            out_lanes=results, out_bits=bits, out_signed=False, lut_ram=device.family.has_lut_ram,
        )  # fmt: skip
        yield Case(part, note={"weight bits": w_bits, "mult bits": mult_bits})
