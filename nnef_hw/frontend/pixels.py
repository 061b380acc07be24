"""Formats of a camera's pixels, and the operators that make pictures of them.

All are operators that networks have, too: slices, tables, sums with weights that are integers over
a power of two, means, interpolation. So integers are exact, and every check covers them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import Location
from nnef_hw.ir import Graph, Node, Quantization, Tensor

__all__ = ["PIXEL_FORMATS", "PictureBuilder", "PixelFormat"]

_GREY = (38, 75, 15)
"""Weights of red, green and blue in grey, of 128: those of BT.601."""
_GREY_BITS = 7
_NEUTRAL = 128
"""Byte of a difference of colours that is none."""
_COLOURS = ((64, 0, 90), (64, -22, -46), (64, 113, 0))
"""Weights of Y, U and V in red, green and blue, of 64: those of BT.601 with all 256 levels."""
_COLOUR_BITS = 6


class PictureBuilder:
    """Emits the operators of a picture's way, all of whose results have one format of bytes.

    Parameters
    ----------
    graph
        The network, for names that it does not have.
    name
        Prefix of the names.
    quant
        Format of all pictures.
    location
        Where they come from.

    Attributes
    ----------
    nodes
        Operators, in their order.
    tensors
        Their results and constants.
    """

    def __init__(
        self, graph: Graph, name: str, quant: Quantization, location: Location | None
    ) -> None:
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        self._taken = set(graph.tensors)
        self._name, self._quant, self._location = name, quant, location
        args = quant.args
        self._scale = float(args["scale"])
        lowest = -128 if args["signed"] else 0
        self._shift = lowest - int(args["zero_point"])
        """Value of a byte of 0, in steps."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a picture's shape."""
        [found] = [tensor.shape for tensor in self.tensors if tensor.name == name]
        return found

    def input(self, name: str, shape: Sequence[int]) -> str:
        """Add the input of bytes."""
        self._taken.add(name)
        self.tensors.append(Tensor(name, tuple(shape), location=self._location, quant=self._quant))
        return name

    def crop(self, x: str, begin: Sequence[int], extents: Sequence[int]) -> str:
        """Take a part of rows and columns."""
        if tuple(extents) == self.shape(x)[2:]:
            return x
        end = [n + m for n, m in zip(begin, extents, strict=True)]
        return self.slice(x, {2: (begin[0], end[0], 1), 3: (begin[1], end[1], 1)})

    def slice(self, x: str, parts: Mapping[int, tuple[int, int, int]]) -> str:
        """Take the elements of (begin, end, stride) along some axes."""
        shape = list(self.shape(x))
        for axis, (begin, end, stride) in parts.items():
            shape[axis] = -(-(end - begin) // stride)
        attrs = {
            "axes": list(parts),
            **{key: [part[n] for part in parts.values()]
               for n, key in enumerate(("begin", "end", "stride"))},
        }  # fmt: skip
        return self._emit("slice", (x,), shape, attrs)

    def channel(self, x: str, number: int) -> str:
        """Take one channel."""
        return self.slice(x, {1: (number, number + 1, 1)})

    def join(self, *parts: str) -> str:
        """Join channels."""
        shape = list(self.shape(parts[0]))
        shape[1] = sum(self.shape(part)[1] for part in parts)
        return self._emit("concat", parts, shape, {"axis": 1})

    def wider(self, x: str, factor: int) -> str:
        """Repeat each column."""
        shape = [*self.shape(x)]
        shape[3] *= factor
        return self._emit("nearest_upsample", (x,), shape, {"factor": [1, factor]})

    def sums(
        self, x: str, weights: Sequence[Sequence[int]], bits: int, offsets: Sequence[int]
    ) -> str:
        """Make channels that are sums of bytes of all channels, rounded and cut to a byte.

        Parameters
        ----------
        weights
            For each result the weight of each channel, over ``2**bits``: at most 127 and at least
            -127.
        offsets
            What is added to the bytes' sum, in the same steps.
        """
        shape = list(self.shape(x))
        shape[1] = len(weights)
        unit = 1 / (1 << bits)
        filters = np.asarray(weights, np.float64)[:, :, None, None] * unit
        # of codes that stand for a byte and a shift each
        moved = [
            offset * unit + self._shift * (1 - sum(row) * unit)
            for row, offset in zip(weights, offsets, strict=True)
        ]
        bias = np.asarray([moved]) * self._scale
        inputs = (
            x,
            self._constant("weights", filters, _integers(unit, 8)),
            self._constant("offsets", bias, _integers(unit * self._scale, 32)),
        )
        attrs = {"border": "constant", "padding": [(0, 0), (0, 0)], "stride": [1, 1],
                 "dilation": [1, 1], "groups": 1}  # fmt: skip
        return self._emit("conv", inputs, shape, attrs)

    def table(self, x: str, parts: Sequence[tuple[float, int]]) -> str:
        """Make each byte b the sum of ``factor * (b // divisor)``, for factors and divisors."""
        shape = self.shape(x)
        byte = self._number("mul", x, 1 / self._scale)
        # halfway to the next byte, so that no rounding matters
        byte = self._number("add", byte, 0.5 - self._shift)
        total = ""
        for factor, divisor in parts:
            part = self._number("mul", byte, 1 / divisor)
            part = self._emit("floor", (part,), shape, {}, is_byte=False)
            part = self._number("mul", part, factor)
            total = (
                part if not total else self._emit("add", (total, part), shape, {}, is_byte=False)
            )
        total = self._number("add", total, self._shift)
        scale = self._constant("number", np.asarray(self._scale))
        return self._emit("mul", (total, scale), shape, {})

    def resize(self, x: str, wanted: Sequence[int], method: str) -> str:
        """Make a picture as large as is wanted: means of whole blocks, or ``bilinear``."""
        shape = self.shape(x)
        if shape[2:] == tuple(wanted):
            return x
        new = (*shape[:2], *wanted)
        if method == "area":
            block = [1, 1, *(n // m for n, m in zip(shape[2:], wanted, strict=True))]
            attrs: dict[str, object] = {
                "size": block, "stride": block, "border": "constant", "padding": [(0, 0)] * 4,
                "dilation": [1] * 4,
            }  # fmt: skip
            return self._emit("avg_pool", (x,), new, attrs)
        attrs = {"size": list(wanted), "coordinates": "half_pixel"}
        return self._emit("interpolate", (x,), new, attrs)

    def give(self, x: str, name: str, is_last: bool) -> None:
        """Give the picture a name that the network has; its channels may come last."""
        op, attrs = ("transpose", {"axes": [0, 2, 3, 1]}) if is_last else ("copy", {})
        self.nodes.append(Node(op, (x,), (name,), attrs, self._location))

    def _number(self, op: str, x: str, number: float) -> str:
        constant = self._constant("number", np.asarray(number))
        return self._emit(op, (x, constant), self.shape(x), {}, is_byte=False)

    def _emit(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        attrs: Mapping[str, object],
        *,
        is_byte: bool = True,
    ) -> str:
        name = self._unused(op)
        quant = self._quant if is_byte else None
        self.tensors.append(Tensor(name, tuple(shape), location=self._location, quant=quant))
        self.nodes.append(Node(op, tuple(inputs), (name,), attrs, self._location))
        return name

    def _constant(
        self, name: str, data: NDArray[np.float64], quant: Quantization | None = None
    ) -> str:
        name = self._unused(name)
        label = name if data.ndim else None
        made = Tensor(name, data.shape, data=data, label=label, quant=quant)
        self.tensors.append(made)
        return name

    def _unused(self, what: str) -> str:
        count = 1
        while (name := f"{self._name}_{what}{count}") in self._taken:
            count += 1
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class PixelFormat(ABC):
    """A format of pixels.

    Parameters
    ----------
    name
        Its name for users.
    bytes
        Bytes of a pixel.
    columns
        Columns that share bytes.
    """

    name: ClassVar[str]
    bytes: ClassVar[int]
    columns: ClassVar[int] = 1

    def narrow(self, builder: PictureBuilder, x: str, channels: int) -> str:
        """Emit what leaves out bytes that nobody reads, before anything else; return its name."""
        del builder, channels
        return x

    @abstractmethod
    def decode(self, builder: PictureBuilder, x: str, channels: int) -> str:
        """Emit what makes grey (one channel) or red, green and blue of bytes; return its name."""


class Grey(PixelFormat):
    """A byte per pixel."""

    name = "grey"
    bytes = 1

    def decode(self, builder: PictureBuilder, x: str, channels: int) -> str:
        return x if channels == 1 else builder.join(*[x] * channels)


class Rgb888(PixelFormat):
    """Red, green and blue, a byte each."""

    name = "rgb888"
    bytes = 3

    def decode(self, builder: PictureBuilder, x: str, channels: int) -> str:
        return x if channels != 1 else builder.sums(x, [_GREY], _GREY_BITS, [0])


class Rgb565(PixelFormat):
    """Two bytes: 5 bits of red, 6 of green, 5 of blue; upper bits fill lower ones."""

    name = "rgb565"
    bytes = 2

    def decode(self, builder: PictureBuilder, x: str, channels: int) -> str:
        first, second = builder.channel(x, 0), builder.channel(x, 1)
        # rrrrrggg: rrrrrrrr (its lowest three bits are the upper three), and ggg000gg without
        # those that come from the other byte
        red = builder.table(first, [(8, 8), (1, 32)])
        upper = builder.table(first, [(32, 1), (-256, 8), (1, 2), (-4, 8)])
        lower = builder.table(second, [(4, 32)])
        blue = builder.table(second, [(8, 1), (-256, 32), (1, 4), (-8, 32)])
        parts = builder.join(red, upper, lower, blue)
        if channels == 1:
            red_part, green, blue_part = _GREY
            return builder.sums(parts, [[red_part, green, green, blue_part]], _GREY_BITS, [0])
        rows = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
        return builder.sums(parts, rows, 0, [0] * 3)


class Yuv422(PixelFormat):
    """Brightness, and differences of colours by turns: Y, U, Y, V are two pixels."""

    name = "yuv422"
    bytes = 2
    columns = 2

    def narrow(self, builder: PictureBuilder, x: str, channels: int) -> str:
        return builder.channel(x, 0) if channels == 1 else x

    def decode(self, builder: PictureBuilder, x: str, channels: int) -> str:
        if channels == 1:
            return x
        bright = builder.channel(x, 0)
        columns = builder.shape(x)[3]
        parts = [bright]
        for place in range(2):
            half = builder.slice(x, {1: (1, 2, 1), 3: (place, columns, 2)})
            parts.append(builder.wider(half, 2))
        offsets = [-_NEUTRAL * (blue + red) for _, blue, red in _COLOURS]
        return builder.sums(builder.join(*parts), _COLOURS, _COLOUR_BITS, offsets)


PIXEL_FORMATS: Mapping[str, PixelFormat] = {
    kind.name: kind() for kind in (Grey, Rgb888, Rgb565, Yuv422)
}
"""Every format, by name."""


def _integers(unit: float, bits: int) -> Quantization:
    args = {"zero_point": 0, "scale": unit, "bits": bits, "signed": True, "symmetric": bits == 8}
    return Quantization("zero_point_linear_quantize", args)
