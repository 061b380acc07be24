"""Integer codes of a variable that its author quantized: what its tensor file holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Quantization
from nnef_hw.reference.real.quantize import decode, encode

__all__ = ["quantized_codes"]

_TOLERANCE = 1e-3


def quantized_codes(
    values: Array, quantization: Quantization
) -> tuple[NDArray[np.int64], bool] | None:
    """Return the codes of real numbers and whether they are signed (spec chapter 5).

    None if some number is further from its code's value than a thousandth of a step, or if the
    scheme is not linear: such a variable is stored as real numbers.
    """
    if quantization.op == "logarithmic_quantize":
        return None
    codes = encode(values, quantization)
    meant = decode(codes, quantization)
    step = decode(codes + 1, quantization) - meant
    if not np.all(np.abs(meant - values) <= _TOLERANCE * step):
        return None
    return codes, bool(quantization.args.get("signed", False))
