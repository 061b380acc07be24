"""Fourier transforms and filter banks, by constant matrices."""

from __future__ import annotations

import string

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.onnx.file.model import ELEMENT_TYPES, FLOAT32
from nnef_hw.frontend.onnx.file.tensors import is_possible
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__: list[str] = []


def _transform(count: int, points: int, bins: int, sign: int) -> Array:
    """Return ``exp(sign * 2j * pi * n * k / points)`` as [n, re/im, k, re/im], not normalized."""
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(bins)) / points
    cos, sin = np.cos(angles), sign * np.sin(angles)
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)


def _one_sided(count: int, points: int) -> Array:
    """Return the inverse of a one-sided transform as [k, re/im, n, 1], not normalized.

    Each bin stands for its mirror image too; bin 0, and the middle one of an even transform, have
    none.
    """
    matrix = _transform(count, points, points, 1)[..., :1] * 2
    matrix[0] /= 2
    if points % 2 == 0 and count > points // 2:
        matrix[points // 2] /= 2
    return matrix


def _parts(call: OnnxCall, x: Value) -> int:
    """Return 1 for real numbers, 2 for real and imaginary parts."""
    if x.rank < 2 or x.shape[-1] not in {1, 2}:
        raise call.error(
            f"{x.tensor.name!r} of shape {list(x.shape)} has no numbers to transform",
            "its last dimension is 1, or 2 for real and imaginary part",
        )
    return x.shape[-1]


def _points(call: OnnxCall, points: int) -> int:
    if not is_possible([points, points]):
        raise call.error(f"a transform of {points} points is not possible")
    return points


@lowers("DFT", 17, 20)
def dft(call: OnnxCall) -> Value:
    x = call.required(0)
    parts = _parts(call, x)
    axis = call.attr("axis", 1) if call.since < 20 else call.optional_number(2, "the axis")
    axis = call.axis(-2 if axis is None else axis, x.rank)
    if axis == x.rank - 1:
        raise call.error(f"axis {axis} holds the parts of a number")
    inverse, one_sided = call.attr("inverse"), call.attr("onesided")
    whole = 2 * (x.shape[axis] - 1) if inverse and one_sided else x.shape[axis]
    given = call.optional_number(1, "dft_length")
    points = _points(call, whole if given is None else int(given))
    most = points // 2 + 1 if inverse and one_sided else points
    count = min(x.shape[axis], most)
    if inverse and one_sided:
        matrix = _one_sided(count, points) / points
    elif inverse:
        matrix = _transform(count, points, points, 1) / points
    else:
        matrix = _transform(count, points, points // 2 + 1 if one_sided else points, -1)
    if count < x.shape[axis]:
        x = call.emit("slice", x, axes=[axis], begin=[0], end=[count], stride=[1])
    letters = list(string.ascii_lowercase[: x.rank])
    result = [*letters]
    result[axis], result[-1] = "y", "z"
    expression = f"{''.join(letters)},{letters[axis]}{letters[-1]}yz->{''.join(result)}"
    constant = call.constant(matrix[:, :parts], x.type)
    return call.emit("einsum", x, constant, expr=expression)


@lowers("STFT", 17)
def stft(call: OnnxCall) -> Value:
    """Transform frames [B, frames, bins, re/im] of a signal [B, L, parts]: a strided filter."""
    signal, step = call.required(0), call.integer(1, "frame_step")
    parts = _parts(call, signal)
    if signal.rank != 3:
        raise call.error(f"the signal {list(signal.shape)} is not [batch, samples, 1 or 2]")
    window = call.constant_value(2, "the window")
    given = call.optional_number(3, "frame_length")
    if window is None:
        if given is None:
            raise call.error("it has neither a window nor a frame_length")
        window = np.ones(_points(call, int(given)))
    points = _points(call, window.size if given is None else int(given))
    batch, length, _ = signal.shape
    if window.shape != (points,) or not 1 <= points <= length or step < 1:
        raise call.error(
            f"a window of {list(window.shape)} and frames of {points} samples, {step} from one to "
            f"the next, do not fit {length} samples"
        )
    one_sided = call.attr("onesided")
    if one_sided and parts == 2:
        raise call.error("complex numbers have no one-sided transform", "set onesided to 0")
    bins = points // 2 + 1 if one_sided else points
    matrix = _transform(points, points, bins, -1)[:, :parts] * window[:, None, None, None]
    filters = call.constant(matrix.transpose(2, 3, 1, 0).reshape(2 * bins, parts, points),
                            signal.type)  # fmt: skip
    found = call.emit(
        "conv", call.transposed(signal, (0, 2, 1)), filters, 0.0, border="constant",
        padding=[(0, 0)], stride=[step], dilation=[1], groups=1,
    )  # fmt: skip
    frames = found.shape[2]
    return call.transposed(call.reshaped(found, (batch, bins, 2, frames)), (0, 3, 1, 2))


@lowers("MelWeightMatrix", 17)
def mel_weight_matrix(call: OnnxCall) -> Value:
    """Return triangles between whole bins, [bins, bands]."""
    names = ("num_mel_bins", "dft_length", "sample_rate")
    bands, points, rate = (call.integer(n, name) for n, name in enumerate(names))
    low, high = (call.number(n, "an edge") for n in (3, 4))
    bins = points // 2 + 1
    if bands < 1 or not is_possible([bins, bands]) or not 0 <= low < high <= rate / 2:
        raise call.error(
            f"{bands} bands from {low:g} to {high:g} Hz, {points} points at {rate} Hz: not possible"
        )
    first, last = (2595 * np.log10(1 + edge / 700) for edge in (low, high))
    # the step that the standard's reference takes: a band more than there are
    places = first + np.arange(bands + 2) * (last - first) / (bands + 2)
    edges = ((points + 1) * 700 * (10 ** (places / 2595) - 1) // rate).astype(int)
    weights = np.zeros((bins, bands))
    for band in range(bands):
        begin, middle, end = edges[band : band + 3]
        rise, fall = np.arange(begin, middle + 1), np.arange(middle, end)
        weights[rise, band] = 1 if middle == begin else (rise - begin) / (middle - begin)
        weights[fall, band] = (end - fall) / max(end - middle, 1)
    element = ELEMENT_TYPES.get(call.attr("output_datatype"), FLOAT32)
    return call.constant(weights, element)
