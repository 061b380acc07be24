"""Comparing and moving the quantization that a model's author gave to a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir.graph import Quantization

__all__ = ["negated", "rearranged", "same_quantization"]


def same_quantization(one: Quantization | None, other: Quantization | None) -> bool:
    """Whether both say the same; None says nothing."""
    if one is None or other is None:
        return one is other
    return (
        one.op == other.op
        and one.ties_to_even == other.ties_to_even
        and one.args.keys() == other.args.keys()
        and all(np.array_equal(value, other.args[key]) for key, value in one.args.items())
    )


def rearranged(
    quant: Quantization,
    shape: tuple[int, ...],
    function: Callable[[Array], Array],
) -> Quantization:
    """Return the quantization of ``function(data)``, which only moves elements.

    Parameters
    ----------
    shape
        Shape of ``data``, to which arrays of several ranges broadcast.
    """
    args = dict(quant.args)
    for key, value in args.items():
        array = np.asarray(value)
        if array.size > 1:
            array = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
            args[key] = function(np.broadcast_to(array, shape))
        elif array.ndim:
            args[key] = array.reshape(-1)[0].item()
    return replace(quant, args=args)


def negated(quant: Quantization) -> Quantization | None:
    """Return the quantization of the negative, whose codes are the same in the other order.

    None for logarithmic steps, which have no sign.
    """
    args = dict(quant.args)
    if quant.op == "zero_point_linear_quantize":
        signed, bits = args.get("signed", False), args["bits"]
        ends = int(bool(args.get("symmetric", False))) - 1 if signed else (1 << bits) - 1
        args["zero_point"] = ends - np.asarray(args["zero_point"])
    elif "min" in args:
        args["min"], args["max"] = (-np.asarray(args[key]) for key in ("max", "min"))
    else:
        return None
    return replace(quant, args=args)
