"""Integer codes of a variable that its author quantized: what its tensor file holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Quantization

__all__ = ["quantized_codes"]

_TOLERANCE = 1e-3


def quantized_codes(
    values: NDArray[Any], quantization: Quantization
) -> tuple[NDArray[np.int64], bool] | None:
    """Return the codes of real numbers and whether they are signed (spec chapter 5).

    None if some number is further from its code's value than a thousandth of a step, or if the
    scheme is not linear: such a variable is stored as real numbers.
    """
    args = {key: _aligned(value, values.ndim) for key, value in quantization.args.items()}
    bits, signed = int(args["bits"]), bool(args.get("signed", False))
    symmetric = bool(args.get("symmetric", False))
    if quantization.op == "zero_point_linear_quantize":
        highest = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
        lowest = -highest - (not symmetric) if signed else 0
        exact = values / args["scale"] + args["zero_point"]
    elif quantization.op in {"min_max_linear_quantize", "linear_quantize"}:
        steps = (1 << bits) - 1 - (signed and symmetric)
        lowest = -(1 << (bits - 1)) + symmetric if signed else 0
        highest = lowest + steps
        exact = (values - args["min"]) / (args["max"] - args["min"]) * steps + lowest
    else:
        return None
    codes = np.floor(exact + 0.5)
    is_exact = np.abs(exact - codes) <= _TOLERANCE
    if not np.all(is_exact & (lowest <= codes) & (codes <= highest)):
        return None
    return codes.astype(np.int64), signed


def _aligned(value: Any, rank: int) -> NDArray[Any]:
    array = np.asarray(value)
    return array.reshape(array.shape + (1,) * (rank - array.ndim)) if array.ndim else array
