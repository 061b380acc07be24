"""Values of a TensorFlow Lite graph, and the order in which the Graph keeps their axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.tflite.file.model import COMPLEX64, ElementType
from nnef_hw.ir import Quantization, Tensor

__all__ = ["Complex", "Value", "channels_first", "channels_last", "moved_quantization"]


def channels_first(rank: int) -> list[int]:
    """Return the axes of an image [N, spatial..., C] as NNEF has them: [N, C, spatial...]."""
    return [0, rank - 1, *range(1, rank - 1)]


def channels_last(rank: int) -> list[int]:
    """Inverse of :func:`channels_first`."""
    return [0, *range(2, rank), 1]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of the graph, and what TensorFlow Lite takes it for.

    Parameters
    ----------
    tensor
        The tensor that holds it: real numbers, where the model has quantized integers.
    type
        TensorFlow Lite's type, of the codes if they are quantized.
    is_image
        Whether the tensor is [N, C, spatial...], where TensorFlow Lite has [N, spatial..., C].
    blocks
        Steps along the spatial axes, if TensorFlow Lite has the elements so many apart in images of
        their own (``SPACE_TO_BATCH_ND``); the tensor has them in one.
    """

    tensor: Tensor
    type: ElementType
    is_image: bool = False
    blocks: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents as TensorFlow Lite has them."""
        stored = self.tensor.shape
        shape = (stored[0], *stored[2:], stored[1]) if self.is_image else stored
        if not self.blocks:
            return shape
        spatial = zip(shape[1:-1], self.blocks, strict=True)
        return (shape[0] * math.prod(self.blocks), *(n // step for n, step in spatial), shape[-1])

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.tensor.shape)

    @property
    def volume(self) -> int:
        """Number of elements."""
        return math.prod(self.tensor.shape)

    @property
    def data(self) -> Array | None:
        """The real numbers of a constant, in the tensor's order."""
        return self.tensor.data

    def stored_axis(self, axis: int) -> int:
        """Return where the tensor has an axis."""
        return channels_first(self.rank).index(axis) if self.is_image else axis


@dataclass(frozen=True, slots=True, eq=False)
class Complex(Value):
    """Complex numbers, of which the tensor has the real parts.

    Parameters
    ----------
    imaginary
        The imaginary parts; only what :meth:`of` makes is complete.
    """

    imaginary: Value | None = None

    @classmethod
    def of(cls, real: Value, imaginary: Value) -> Complex:
        """Return complex numbers of their parts, whose axes are in one order."""
        assert (real.shape, real.is_image) == (imaginary.shape, imaginary.is_image)
        return cls(real.tensor, COMPLEX64, real.is_image, imaginary=imaginary)

    @property
    def parts(self) -> tuple[Value, Value]:
        """The real and the imaginary parts."""
        assert self.imaginary is not None
        return Value(self.tensor, self.imaginary.type, self.is_image), self.imaginary


def moved_quantization(quant: Quantization | None, axes: list[int]) -> Quantization | None:
    """Return the quantization of a tensor whose axes are permuted."""
    if quant is None:
        return None
    args = {
        key: value.transpose(axes) if np.ndim(value) == len(axes) > 0 else value
        for key, value in quant.args.items()
    }
    return Quantization(quant.op, args)
