"""A front end of pictures in front of a network that sees: its input becomes a camera's bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.errors import UsageError
from nnef_hw.frontend.front import Front, chosen_input, unused_name, with_tensors
from nnef_hw.frontend.pixels import PIXEL_FORMATS, PictureBuilder
from nnef_hw.ir import Graph, Quantization, Tensor

__all__ = ["ImageFront", "Region"]

PICTURE = "picture"
"""Name of the input of bytes."""
_CHANNELS = (1, 3)
_RESIZES = ("area", "bilinear")
_BYTE_BITS = 8


@dataclass(frozen=True)
class Region:
    """A part of a picture: rows from ``top`` on, columns from ``left`` on."""

    top: int
    left: int
    rows: int
    columns: int

    @property
    def text(self) -> str:
        """The extents of the part: ``96x96``."""
        return f"{self.rows}x{self.columns}"


@dataclass(frozen=True, kw_only=True)
class ImageFront(Front):
    """Cropping, colours and resizing of a camera's pictures.

    The lowest byte is the lowest code of the network's 8-bit input, and so on: 0 to 255 are what
    the network's author has quantized 0 to 255 to. A network that is not quantized gets real
    numbers from ``lowest`` to ``highest``; its zero is a whole byte.

    Parameters
    ----------
    size
        Rows and columns of the camera's pictures.
    pixels
        What a pixel's bytes are: ``grey``, ``rgb888``, ``rgb565`` (the byte with red first),
        ``yuv422`` (Y, U, Y, V).
    crop
        Top, left, rows and columns of the part that is seen; None is the largest one in the middle
        that fits.
    resize
        How it becomes as large as the network's input: ``area``, means of whole blocks of pixels,
        or ``bilinear`` between the four pixels around the centre of a result.
    lowest, highest
        What bytes of 0 and 255 mean to a network that is not quantized: 0 and 1 by default.

    Raises
    ------
    ValueError
        If a value does not fit.
    """

    op: ClassVar[str] = "image"
    size: tuple[int, int]
    pixels: str = "grey"
    crop: tuple[int, int, int, int] | None = None
    resize: str = "area"
    lowest: float | None = None
    highest: float | None = None

    def __post_init__(self) -> None:
        if len(list(self.size)) != 2 or min(self.size) < 1:
            raise ValueError(f"size = {list(self.size)} is not rows and columns of a picture")
        if self.pixels not in PIXEL_FORMATS:
            raise ValueError(f"there are no pixels {self.pixels!r}: use {_or(PIXEL_FORMATS)}")
        if self.resize not in _RESIZES:
            raise ValueError(f"there is no resize {self.resize!r}: use {_or(_RESIZES)}")
        if self.size[1] % self._step:
            raise ValueError(
                f"pictures of {self.pixels} have an even number of columns, not {self.size[1]}"
            )
        low, high = self._span
        if not low < high:
            raise ValueError(f"highest = {high:g} is not above lowest = {low:g}")
        if self.crop is not None:
            self._check_crop(self.crop)

    def _check_crop(self, crop: Sequence[int]) -> None:
        rows, columns = self.size
        if len(crop) != 4 or min(crop[:2]) < 0 or min(crop[2:]) < 1:
            raise ValueError(f"crop = {list(crop)} is not top, left, rows and columns")
        region = Region(*crop)
        if region.top + region.rows > rows or region.left + region.columns > columns:
            raise ValueError(f"crop = {list(crop)} is not within pictures of {rows}x{columns}")
        if region.left % self._step or region.columns % self._step:
            raise ValueError(
                f"two pixels of {self.pixels} share their colour: crop = {list(crop)} begins or "
                "ends between them"
            )

    @property
    def _step(self) -> int:
        """Columns that share bytes."""
        return PIXEL_FORMATS[self.pixels].columns

    @property
    def _span(self) -> tuple[float, float]:
        low = 0.0 if self.lowest is None else self.lowest
        return low, 1.0 if self.highest is None else self.highest

    def put(self, graph: Graph) -> Graph:
        """Return a network whose input is ``[1, bytes of a pixel, rows, columns]``.

        Raises
        ------
        UsageError
            If the network has no such input, or no picture of 8 bits; if the part that is seen does
            not divide into its pixels; if its integers are fixed already.
        """
        name = chosen_input(graph, self)
        old = graph.tensor(name)
        wanted, is_last = self._picture(old)
        quant = self._quantization(old)
        region = self._region(wanted[1:])
        pixel = PIXEL_FORMATS[self.pixels]
        picture = unused_name(graph, PICTURE)
        builder = PictureBuilder(graph, name, quant, old.location)
        x = builder.input(picture, (1, pixel.bytes, *self.size))
        x = pixel.narrow(builder, x, wanted[0])
        x = builder.crop(x, (region.top, region.left), (region.rows, region.columns))
        x = pixel.decode(builder, x, wanted[0])
        x = builder.resize(x, wanted[1:], self.resize)
        builder.give(x, name, is_last)
        inputs = tuple(picture if other == name else other for other in graph.inputs)
        given = replace(old, quant=quant)
        tensors = {**graph.tensors, name: given}
        whole = replace(graph, inputs=inputs, nodes=(*builder.nodes, *graph.nodes), tensors=tensors)
        return with_tensors(whole, builder.tensors)

    def _picture(self, tensor: Tensor) -> tuple[tuple[int, int, int], bool]:
        """Return channels, rows and columns of an input, and whether channels are its last axis."""
        shape = tensor.shape
        for is_last, places in ((False, (1, 2, 3)), (True, (3, 1, 2))):
            if len(shape) == 4 and shape[0] == 1 and shape[places[0]] in _CHANNELS:
                channels, rows, columns = (shape[place] for place in places)
                return (channels, rows, columns), is_last
        raise UsageError(
            f"{self.op} gives a picture of 1 or 3 channels, but input {tensor.name!r} of the "
            f"network has the shape {list(shape)}",
            remedy="put it in front of a network that takes [1, channels, rows, columns] or "
            "[1, rows, columns, channels]",
        )

    def _quantization(self, tensor: Tensor) -> Quantization:
        """Return the format in which bytes are codes."""
        low, high = self._span
        if tensor.quant is None:
            scale = (high - low) / ((1 << _BYTE_BITS) - 1)
            return _format(round(-low / scale), scale)
        args: Mapping[str, object] = tensor.quant.args
        is_linear = tensor.quant.op == "zero_point_linear_quantize"
        if not is_linear or args.get("bits") != _BYTE_BITS or args.get("symmetric"):
            raise UsageError(
                f"bytes are no codes of input {tensor.name!r}, whose format is {tensor.quant.op} "
                f"with {args.get('bits')} bits",
                remedy="quantize the model to int8 or uint8",
            )
        if self.lowest is not None or self.highest is not None:
            raise UsageError(
                f"lowest and highest say nothing of input {tensor.name!r}: its author has "
                "quantized it, and bytes are its codes",
                remedy="omit them",
            )
        return tensor.quant

    def _region(self, wanted: tuple[int, int]) -> Region:
        """Return the part of a picture that becomes an image of so many rows and columns."""
        if self.crop is not None:
            found = Region(*self.crop)
            self._check_factors(found, wanted)
            return found
        rows, columns = self.size
        factor = min(rows / wanted[0], columns / wanted[1])
        if self.resize == "area":
            factor = int(factor)
            if not factor:
                raise UsageError(
                    f"pictures of {rows}x{columns} are smaller than the network's input of "
                    f"{wanted[0]}x{wanted[1]}",
                    remedy='take larger ones, or resize = "bilinear"',
                )
        extents = [max(1, int(n * factor)) for n in wanted]
        extents[1] -= extents[1] % self._step
        top, left = ((n - m) // 2 for n, m in zip(self.size, extents, strict=True))
        return Region(top, left - left % self._step, extents[0], extents[1])

    def _check_factors(self, region: Region, wanted: tuple[int, int]) -> None:
        divides = region.rows % wanted[0] == 0 and region.columns % wanted[1] == 0
        if self.resize != "area" or divides:
            return
        rows, columns = (
            max(1, n // m) * m for n, m in zip((region.rows, region.columns), wanted, strict=True)
        )
        raise UsageError(
            f"a part of {region.text} pixels does not divide into the {wanted[0]}x{wanted[1]} of "
            "the network's input",
            remedy=f'crop {rows}x{columns} pixels, or take resize = "bilinear"',
        )


def _format(zero_point: int, scale: float) -> Quantization:
    args = {"zero_point": zero_point, "scale": scale, "bits": _BYTE_BITS, "signed": False,
            "symmetric": False}  # fmt: skip
    return Quantization("zero_point_linear_quantize", args)


def _or(names: Sequence[str] | Mapping[str, object]) -> str:
    return " or ".join(names)
