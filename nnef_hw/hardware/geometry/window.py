"""Geometry of sliding windows: one definition for the schedule and the hardware.

A line buffer stores the *padded* image in stream order (row, column, channel block), so padding
is written once and windows are read without looking at borders.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property

from nnef_hw.arithmetic.records import JsonObject

__all__ = ["Window", "taps_inside"]


def taps_inside(
    extent: int, padding: tuple[int, int], size: int, stride: int, dilation: int
) -> list[int]:
    """Count for every window along an axis the taps that lie inside of the image, not in padding.

    Parameters
    ----------
    extent
        Extent of the image, in pixels.
    """
    starts = range(-padding[0], extent + padding[1] - (size - 1) * dilation, stride)
    return [
        sum(0 <= place < extent for place in range(start, start + size * dilation, dilation))
        for start in starts
    ]


@dataclass(frozen=True)
class Window:
    """A two-dimensional sliding window over an image of channel blocks.

    Parameters
    ----------
    height, width
        Extents of the image in pixels.
    channel_blocks
        Words per pixel, ``ceil(channels / lanes)``.
    kernel, stride, dilation
        Vertical and horizontal, in pixels.
    padding
        ``((top, bottom), (left, right))`` in pixels.
    passes
        How often the words of one window are read: once per group of output channels; with
        ``by_channel`` it must equal ``channel_blocks``.
    by_channel
        Pass n reads only channel block n of the window (pooling, depthwise); otherwise every pass
        reads all blocks (convolution, linear).
    history, lag
        Of images that are parts of one without an end: rows above the image, kept of the images
        before; and rows at its end that only windows of later images read.

    Raises
    ------
    ValueError
        If the window does not fit the padded image or an extent is not positive.
    """

    height: int
    width: int
    channel_blocks: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    passes: int = 1
    by_channel: bool = False
    history: int = 0
    lag: int = 0

    def __post_init__(self) -> None:
        positive = (self.height, self.width, self.channel_blocks, self.passes)
        if min(*positive, *self.kernel, *self.stride, *self.dilation) < 1:
            raise ValueError("window extents, kernel, stride, dilation and passes must be positive")
        if min(*self.padding[0], *self.padding[1]) < 0:
            raise ValueError("window padding must not be negative")
        if min(self.history, self.lag) < 0:
            raise ValueError("window history and lag must not be negative")
        if self.goes_on and any(self.padding[0]):
            raise ValueError("an image without an end has no rows of padding")
        if self.reach[0] > self._rows or self.reach[1] > self.padded_width:
            raise ValueError(f"window {self.kernel} is larger than the padded image")
        if self.by_channel and self.passes != self.channel_blocks:
            raise ValueError("a window read by channel has one pass per channel block")

    def folded(self, channel_blocks: int, passes: int) -> Window:
        """Return the window read in so many channel blocks and passes; each is made once."""
        return _folded(self, channel_blocks, passes)

    @property
    def goes_on(self) -> bool:
        """Whether images are parts of one without an end."""
        return self.history + self.lag > 0

    @cached_property
    def _rows(self) -> int:
        """Rows that the windows of an image read."""
        return self.history + self.padded_height - self.lag

    @property
    def past_words(self) -> int:
        """Words of the rows above the first image, which nobody sends."""
        return self.history * self.padded_width * self.channel_blocks

    @cached_property
    def padded_height(self) -> int:
        """Rows of the stored image."""
        return self.height + sum(self.padding[0])

    @cached_property
    def padded_width(self) -> int:
        """Columns of the stored image."""
        return self.width + sum(self.padding[1])

    @cached_property
    def reach(self) -> tuple[int, int]:
        """Rows and columns from a window's first to its last tap, inclusive."""
        (rows, columns), (down, across) = self.kernel, self.dilation
        return (rows - 1) * down + 1, (columns - 1) * across + 1

    @cached_property
    def out_height(self) -> int:
        """Window positions down the image."""
        return (self._rows - self.reach[0]) // self.stride[0] + 1

    @cached_property
    def out_width(self) -> int:
        """Window positions along a row."""
        return (self.padded_width - self.reach[1]) // self.stride[1] + 1

    @cached_property
    def out_pixels(self) -> int:
        """Windows per frame."""
        return self.out_height * self.out_width

    @property
    def beats(self) -> int:
        """Input beats per frame."""
        return self.height * self.width * self.channel_blocks

    @cached_property
    def words(self) -> int:
        """Words written per frame: the padded image."""
        return self.padded_height * self.padded_width * self.channel_blocks

    @cached_property
    def taps(self) -> int:
        """Window positions of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def inside(self) -> tuple[tuple[int, ...], ...]:
        """Taps inside of the image, for every window: row by row."""
        rows, columns = (
            taps_inside(*of_axis)
            for of_axis in zip(
                (self._rows - sum(self.padding[0]), self.width), self.padding, self.kernel,
                self.stride, self.dilation, strict=True,
            )
        )  # fmt: skip
        return tuple(tuple(row * column for column in columns) for row in rows)

    @cached_property
    def pass_words(self) -> int:
        """Words read in one pass (T of the design)."""
        return self.taps * (1 if self.by_channel else self.channel_blocks)

    @property
    def tiles(self) -> bool:
        """Whether windows, read by channel, stand side by side: none overlap, nothing is padded."""
        sizes, positions = (self.height, self.width), (self.out_height, self.out_width)
        # A stride does not matter where there is room for one window only.
        side_by_side = all(
            count == size // extent and (stride == extent or count == 1)
            for size, extent, stride, count in zip(
                sizes, self.kernel, self.stride, positions, strict=True
            )
        )
        dense = self.reach == self.kernel and self.words == self.beats
        return self.by_channel and side_by_side and dense and not self.goes_on

    @cached_property
    def span(self) -> int:
        """Words from a window's first to its last, inclusive: what must be stored to read it."""
        rows, columns = self.reach
        return ((rows - 1) * self.padded_width + columns) * self.channel_blocks

    @property
    def column_step(self) -> int:
        """Words from a window to the next one of its row."""
        return self.stride[1] * self.channel_blocks

    @property
    def row_step(self) -> int:
        """Words from the last window of a row to the first of the next."""
        row = self.stride[0] * self.padded_width * self.channel_blocks
        return row - (self.out_width - 1) * self.column_step

    @property
    def frame_step(self) -> int:
        """Words from the last window of a frame to the first of the next frame."""
        rows = (self.out_height - 1) * self.stride[0] * self.padded_width * self.channel_blocks
        return self.words - rows - (self.out_width - 1) * self.column_step

    @property
    def starts_in_padding(self) -> bool:
        """Whether the first window needs no beat; the writer then waits for the frame's first one.

        Otherwise that window would leave ahead of its frame, even if none follows.
        """
        (top, _), (left, _) = self.padding
        return (
            self.past_words
            < self.span
            <= self.past_words + (top * self.padded_width + left) * self.channel_blocks
        )

    @property
    def leads(self) -> bool:
        """Whether the first window of a frame is in rows of those before: it leaves ahead of it."""
        return self.span <= self.past_words

    @property
    def min_depth(self) -> int:
        """Words of memory below which the window could never be read."""
        return self.span

    @property
    def overdraft(self) -> int:
        """Words a frame's end may release before they are written (rows no window reads)."""
        return max(0, max(self.frame_step, self.row_step, self.column_step) - self.span)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> Window:
        """Inverse of :meth:`to_json`."""
        (top, bottom), (left, right) = value["padding"]
        return cls(**{
            **value,
            "kernel": tuple(value["kernel"]),
            "stride": tuple(value["stride"]),
            "dilation": tuple(value["dilation"]),
            "padding": ((top, bottom), (left, right)),
        })


@cache
def _folded(window: Window, channel_blocks: int, passes: int) -> Window:
    return replace(window, channel_blocks=channel_blocks, passes=passes)
