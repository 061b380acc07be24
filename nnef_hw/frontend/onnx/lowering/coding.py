"""Scales and zero points: the real numbers that the codes of quantized values represent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.frontend.onnx.file.model import Constant, ElementType
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall
from nnef_hw.ir import Quantization

__all__ = ["Coding", "read_coding"]


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """A coding gives integers a meaning as real numbers: ``scale * (code - zero_point)``.

    Parameters
    ----------
    scale, zero_point
        float64 and int64, of one shape that broadcasts from the tensor's first dimension.
    element
        ONNX's type of the codes.
    limits
        Least and greatest code.
    ties_to_even
        Whether numbers halfway between two codes take the even one, as ONNX says; else the upper.
    """

    scale: NDArray[np.float64]
    zero_point: NDArray[np.int64]
    element: ElementType
    limits: tuple[int, int]
    ties_to_even: bool = True

    @property
    def quantization(self) -> Quantization | None:
        """Return a line of ``graph.quant``; None if no number of bits has these limits."""
        lo, hi = self.limits
        bits = max((hi - lo).bit_length(), 1)
        signed = lo < 0
        ranges = {
            (0, (1 << bits) - 1): False,
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1): False,
            (1 - (1 << (bits - 1)), (1 << (bits - 1)) - 1): True,
        }
        if (lo, hi) not in ranges:
            return None
        return Quantization(
            "zero_point_linear_quantize",
            {
                "zero_point": _plain(self.zero_point),
                "scale": _plain(self.scale),
                "bits": bits,
                "signed": signed,
                "symmetric": ranges[lo, hi],
            },
            self.ties_to_even,
        )

    def same_steps(self, other: Coding) -> bool:
        """Whether both map a code to the same number."""
        return np.array_equal(self.scale, other.scale) and np.array_equal(
            self.zero_point, other.zero_point
        )

    def aligned(self, rank: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return scale and zero point with as many dimensions as a tensor."""
        shape = self.scale.shape + (1,) * (rank - self.scale.ndim)
        return self.scale.reshape(shape), self.zero_point.reshape(shape)

    def real(self, code: int) -> float:
        """Return the number that a code stands for; there is one scale."""
        return float((code - self.zero_point.item()) * self.scale.item())


def read_coding(
    call: OnnxCall,
    shape: Sequence[int],
    element: ElementType,
    scale: int,
    zero_point: int,
    axis: int | None = None,
    *,
    block: int = 0,
    whole: bool = False,
) -> Coding:
    """Return the coding that a scale and a zero point among a node's arguments define.

    Parameters
    ----------
    shape
        Shape of the tensor to which they belong.
    element
        Element type of the tensor's codes.
    scale, zero_point
        Indices of the arguments; a zero point that is not given is 0.
    axis
        Which dimension a vector belongs to; any other form is an error if it is None.
    block
        How many neighbours along the axis share a scale; 0: all that a vector's item belongs to.
    whole
        Whether scales may have the tensor's rank, with extent 1 where they are shared.

    Raises
    ------
    UnsupportedError
        If they are computed when the network runs.
    ModelError
        If they do not fit the tensor or each other.
    """
    steps = _constant(call, scale, "scale")
    zeros = _constant(call, zero_point, "zero point")
    if steps is None:
        raise call.error(f"input {scale}, the scale, is missing")
    scales = steps.data.astype(np.float64)
    if not scales.size:
        raise call.error("there is no scale")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        wrong = scales[~(np.isfinite(scales) & (scales > 0))].flat[0]
        raise call.error(f"a scale is {wrong:g}", "scales must be positive and finite")
    if zeros is None:
        zeros = Constant(np.zeros(scales.shape, np.int64), element)
    if zeros.type != element:
        raise call.error(f"the zero point is {zeros.type.name}, but the codes are {element.name}")
    if zeros.data.size != scales.size:
        raise call.error(f"there are {scales.size} scales, but {zeros.data.size} zero points")
    fits = len(scales.shape) == len(shape) > 1 and all(
        s in {1, n} for s, n in zip(scales.shape, shape, strict=True)
    )
    zero_points = zeros.data.reshape(scales.shape)
    if not (whole and fits):
        place = _placing(call, scales.shape, shape, axis, block)
        scales, zero_points = place(scales), place(zero_points)
    return Coding(scales, zero_points, element, element.limits)


def _placing(
    call: OnnxCall, scale_shape: tuple[int, ...], shape: Sequence[int], axis: int | None, block: int
) -> Callable[[Array], Array]:
    """Return a function that lays scales out so that they broadcast from the first dimension."""
    if int(np.prod(scale_shape)) == 1 and not block:
        return lambda array: array.reshape(())
    if axis is None:
        raise call.error(f"there are scales of shape {list(scale_shape)}, not one")
    axis = call.axis(axis, len(shape))
    if block:
        expected = [-(-n // block) if k == axis else n for k, n in enumerate(shape)]
        if list(scale_shape) != expected:
            raise call.error(
                f"scales of shape {list(scale_shape)} do not fit blocks of {block} along "
                f"axis {axis} of the shape {list(shape)}",
                f"the scales must have shape {expected}",
            )
        indices = np.arange(shape[axis]) // block
        return lambda array: array.take(indices, axis)
    if scale_shape != (shape[axis],):
        raise call.error(
            f"scales of shape {list(scale_shape)} do not fit axis {axis} "
            f"of the shape {list(shape)}",
            f"give one scale, or {shape[axis]}",
        )
    return lambda array: array.reshape((1,) * axis + scale_shape)


def _constant(call: OnnxCall, index: int, what: str) -> Constant | None:
    value = call.input(index)
    if value is None:
        return None
    if value.data is None:
        raise call.unsupported(
            f"the {what} {value.tensor.name!r} is computed when the network runs",
            "quantize the network statically, as onnxruntime's quantize_static does",
        )
    return Constant(value.data, value.type)


def _plain(array: Array) -> AttributeValue:
    """Return an array all of whose items are the same as a number."""
    first = array.flat[0]
    return first.item() if (array == first).all() else array
