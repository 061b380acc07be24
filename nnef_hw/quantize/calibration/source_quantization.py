"""Formats and codes that the model's author chose (``Tensor.quant``), as the hardware has them."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import QType, signed_bits
from nnef_hw.arithmetic.records import AttributeValue, Fields
from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.ir import Graph, Quantization, Tensor, Trait
from nnef_hw.reference.real.quantize import code_range, encode

__all__ = [
    "mere_results",
    "source_activation",
    "source_bias",
    "source_weights",
    "unusable_formats",
]

_log = logging.getLogger(__name__)

_ACTIVATION_BITS = range(2, 17)
_RESULT_BITS = range(2, 33)
"""Of what leaves the network and is read by no layer of it."""
_WEIGHT_BITS = 8
_SAME_SCALE = 1e-5
_WHOLE_CODE = 1e-3


def mere_results(graph: Graph) -> frozenset[str]:
    """Return the tensors that leave the graph, moved at most, and that nothing computes with."""
    kept = {*graph.inputs, *(state.result for state in graph.states.values())}
    found: set[str] = set()
    for node in reversed(graph.nodes):
        for name in node.outputs:
            readers = graph.consumers(name)
            is_read = any(
                not reader.has(Trait.MOVES) or found.isdisjoint(reader.outputs)
                for reader in readers
            )
            if name not in kept and not is_read and (readers or name in graph.outputs):
                found.add(name)
    return frozenset(found)


def source_activation(tensor: Tensor, *, is_result: bool = False) -> QType | None:
    """Return the format of an activation; None if it must come from samples.

    ``zero_point_linear_quantize`` is kept as it is. A range (``min``, ``max``) becomes the format
    with the same steps; if no step is 0, the range is widened until one is, with a warning.
    Logarithmic steps are no format of the hardware: a warning, and None.

    Parameters
    ----------
    is_result
        Whether it is one of :func:`mere_results`, which may have up to 32 bits.

    Raises
    ------
    UnsupportedError
        If the format has several scales, or a width or zero point that no hardware exists for.
    """
    quant = tensor.quant
    if quant is None:
        return None
    if quant.op == "logarithmic_quantize":
        _log.warning(
            "%s is quantized in logarithmic steps, which do not exist in hardware: "
            "linear ones are chosen from samples",
            tensor.name,
        )
        return None
    args, (lo, hi) = _numbers(tensor, quant), code_range(quant)
    if quant.op == "zero_point_linear_quantize":
        zero_point, scale = args["zero_point"], args["scale"]
    else:
        scale, zero_point = _widened(tensor, args["min"], args["max"], lo, hi)
    _check_width(tensor, quant, zero_point, _RESULT_BITS if is_result else _ACTIVATION_BITS)
    signed = bool(args.get("signed", False))
    symmetric = signed and bool(args.get("symmetric"))
    return QType(args["bits"], signed, scale, zero_point, narrow=symmetric)


def unusable_formats(graph: Graph) -> list[NnefHwError]:
    """Return an error for each activation whose author's format no hardware has."""
    errors: list[NnefHwError] = []
    results = mere_results(graph)
    for name in (*graph.inputs, *(name for node in graph.nodes for name in node.outputs)):
        tensor = graph.tensor(name)
        if tensor.quant is None or tensor.quant.op == "logarithmic_quantize":
            continue
        try:
            zero_point = _numbers(tensor, tensor.quant).get("zero_point")
            widths = _RESULT_BITS if name in results else _ACTIVATION_BITS
            _check_width(tensor, tensor.quant, zero_point, widths)
        except UnsupportedError as error:
            errors.append(error)
    return errors


def _numbers(tensor: Tensor, quant: Quantization) -> Fields:
    """Return the arguments of a quantization as numbers; refuse one for each channel."""
    arrays = {key: np.asarray(value) for key, value in quant.args.items()}
    for key, value in arrays.items():
        if value.size > 1:
            raise UnsupportedError(
                f"{tensor.name!r} is quantized with a {key} for each channel",
                remedy="quantize activations with one; only weights may have several",
                location=tensor.location,
            )
    return {key: value.reshape(-1)[0].item() for key, value in arrays.items()}


def _check_width(
    tensor: Tensor, quant: Quantization, zero_point: int | None, widths: range
) -> None:
    """Refuse a width that no such activation has, and a zero point that is no code."""
    bits, (lo, hi) = quant.args["bits"], code_range(quant)
    if bits in widths and (zero_point is None or lo <= zero_point <= hi):
        return
    beside = "" if zero_point is None else f" with zero point {zero_point}"
    raise UnsupportedError(
        f"{tensor.name!r} is quantized to {bits} bits{beside}",
        remedy=f"use {widths[0]} to {widths[-1]} bits, and a zero point in {lo}..{hi}",
        location=tensor.location,
    )


def source_weights(tensor: Tensor) -> tuple[NDArray[np.int64], QType] | None:
    """Return codes [outC, ...] and format of a filter as its author stored them.

    One bit for a number and its opposite gives -1 and +1.
    None if it has no quantization, or one that the hardware has no codes for (a warning says so):
    logarithmic steps, steps none of which is 0, more than 8 bits, scales that vary within an
    output channel. Its real numbers are then quantized anew. Zero points are taken off the codes,
    which then have up to 9 bits.

    Raises
    ------
    UnsupportedError
        If a zero point is so far off that they have more.
    """
    quant = tensor.quant
    if quant is None or tensor.data is None:
        return None
    if quant.op == "linear_quantize" and quant.args["bits"] == 1:
        signs = _signs(tensor.data, quant)
        if signs is not None:
            return signs
    steps = _steps(quant)
    scales = None if steps is None else _per_channel(steps[0], tensor.shape)
    if steps is None or scales is None or quant.args["bits"] > _WEIGHT_BITS:
        _log.warning("the codes of %s have no counterpart in hardware: it is quantized anew",
                     tensor.name)  # fmt: skip
        return None
    codes = encode(tensor.data, quant) - _aligned(steps[1], tensor.data.ndim)
    # Unsigned codes need a sign bit more, unless the highest ones are not used.
    bits = quant.args["bits"]
    used = signed_bits(int(codes.min()), int(codes.max()))
    if used > _WEIGHT_BITS + 1:
        shown = ", ".join(map(str, np.unique(steps[1]).tolist()))
        raise UnsupportedError(
            f"the filter {tensor.name!r} is quantized with zero point {shown}: without it, its "
            f"codes have {used} bits",
            remedy="quantize weights with a zero point that is one of their codes",
            location=tensor.location,
        )
    narrow = quant.args.get("signed") and quant.args.get("symmetric") and not np.any(steps[1])
    return codes, QType(max(bits, used), True, scales, narrow=bool(narrow) and bits > 1)


def _signs(data: Array, quant: Quantization) -> tuple[NDArray[np.int64], QType] | None:
    """Return a filter of one bit as -1 and +1; None if its two numbers are no such pair."""
    low, high = (
        _aligned(np.asarray(quant.args[key], np.float64), data.ndim) for key in ("min", "max")
    )
    scales = _per_channel(high, data.shape)
    if scales is None or not np.array_equal(low, -high):
        return None
    return 2 * encode(data, quant) - 1, QType(1, True, scales, narrow=True)


def source_bias(tensor: Tensor, scale: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Return the codes of a bias [1, outC] that is stored in steps of ``scale`` [outC], or None."""
    quant, data = tensor.quant, tensor.data
    steps = None if quant is None else _steps(quant)
    if quant is None or data is None or steps is None or np.any(steps[1]):
        return None
    stored = np.broadcast_to(_aligned(steps[0], 2), tensor.shape).reshape(-1)
    if not np.allclose(stored, scale, rtol=_SAME_SCALE, atol=0.0):
        return None
    return encode(data, quant)


def _widened(tensor: Tensor, low: float, high: float, lo: int, hi: int) -> tuple[float, int]:
    """Return scale and zero point of a range, such that one code is 0."""
    scale = (high - low) / (hi - lo)
    exact = lo - low / scale
    zero_point = min(max(int(np.floor(exact + 0.5)), lo), hi)
    if abs(exact - zero_point) <= _WHOLE_CODE:
        return scale, zero_point
    below = -low / (zero_point - lo) if zero_point > lo else 0.0
    above = high / (hi - zero_point) if zero_point < hi else 0.0
    scale = max(below, above)
    _log.warning(
        "%s: no code in %g..%g is 0, the range is widened to %g..%g",
        tensor.name, low, high, (lo - zero_point) * scale, (hi - zero_point) * scale,
    )  # fmt: skip
    return scale, zero_point


def _steps(quant: Quantization) -> tuple[NDArray[np.float64], Array] | None:
    """Return scale and zero point of a linear quantization; None if no code is 0."""
    if quant.op == "zero_point_linear_quantize":
        return np.asarray(quant.args["scale"], np.float64), np.asarray(quant.args["zero_point"])
    if quant.op == "logarithmic_quantize":
        return None
    lo, hi = code_range(quant)
    low, high = np.asarray(quant.args["min"]), np.asarray(quant.args["max"])
    rank = max(low.ndim, high.ndim)
    low, high = _aligned(low, rank), _aligned(high, rank)
    scale = (high - low) / (hi - lo)
    exact = lo - low / scale
    zero_point = np.floor(exact + 0.5)
    if not np.allclose(exact, zero_point, rtol=0.0, atol=_WHOLE_CODE):
        return None
    return scale, zero_point.astype(np.int64)


def _aligned(value: AttributeValue, rank: int) -> Array:
    array = np.asarray(value)
    return array.reshape(array.shape + (1,) * (rank - array.ndim))


def _per_channel(
    scale: NDArray[np.float64], shape: tuple[int, ...]
) -> float | tuple[float, ...] | None:
    """Return one scale, or one for each output channel; None if they vary within a channel."""
    if scale.size == 1:
        return float(scale.reshape(-1)[0])
    rows = np.broadcast_to(_aligned(scale, len(shape)), shape).reshape(shape[0], -1)
    if not (rows == rows[:, :1]).all():
        return None
    return tuple(map(float, rows[:, 0]))
